// List query: which list an address means, and what it lacks.

package list_test

import (
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// Which list an address means, and what it asks upstream for.
func TestListsUnderRecords(t *testing.T) {
	const of = "/2010-04-01/Accounts/" + viewertest.Account
	h := viewertest.Open(t)
	for path, want := range map[string]string{
		"/twilio/participants?ConferenceSid=CF1": of + "/Conferences/CF1/Participants.json?PageSize=50",
		"/twilio/participants?ConferenceSid=CF1&Muted=true": of +
			"/Conferences/CF1/Participants.json?Muted=true&PageSize=50",
		"/twilio/recordings?CallSid=CA1":                           of + "/Recordings.json?CallSid=CA1&PageSize=50",
		"/twilio/recordings?understudy.list=of-a-call&CallSid=CA1": of + "/Calls/CA1/Recordings.json?PageSize=50",
		"/twilio/notifications?CallSid=CA1":                        of + "/Calls/CA1/Notifications.json?PageSize=50",
		"/twilio/notifications?CallSid=CA1&Log=0":                  of + "/Calls/CA1/Notifications.json?Log=0&PageSize=50",
		"/twilio/call_events?CallSid=CA1":                          of + "/Calls/CA1/Events.json?PageSize=50",
		"/twilio/media?MessageSid=SM1":                             of + "/Messages/SM1/Media.json?PageSize=50",
		"/twilio/media/ME1?MessageSid=SM1":                         of + "/Messages/SM1/Media/ME1.json",
		"/twilio/participants/CF1~CA1":                             of + "/Conferences/CF1/Participants/CA1.json",
		"/twilio/available_phone_numbers?CountryCode=US&InRegion=NY": of +
			"/AvailablePhoneNumbers/US/Local.json?InRegion=NY&PageSize=50",
		"/twilio/available_phone_numbers?understudy.list=toll-free&CountryCode=US": of +
			"/AvailablePhoneNumbers/US/TollFree.json?PageSize=50",
		"/twilio/alerts?LogLevel=error": "/v1/Alerts?LogLevel=error&PageSize=50",
		"/twilio/participants?understudy.AccountSid=AC2&ConferenceSid=CF1": "" +
			"/2010-04-01/Accounts/AC2/Conferences/CF1/Participants.json?PageSize=50",
		"/twilio/balance": of + "/Balance.json",
		"/twilio/recordings?IncludeSoftDeleted=true&CallSid=CA1&DateCreated=2026-05-01": of +
			"/Recordings.json?DateCreated=2026-05-01&CallSid=CA1&IncludeSoftDeleted=true&PageSize=50",
	} {
		h.Mirror.Lock()
		h.Mirror.Asked = nil
		h.Mirror.Unlock()
		status, body, head := h.Get(path, viewertest.All)
		h.Mirror.Lock()
		if len(h.Mirror.Asked) == 0 || !contains(h.Mirror.Asked, want) {
			t.Errorf("%s (%d %s): asked for %q, want %s: %.300s", path, status, head.Get("Location"), h.Mirror.Asked, want,
				regexp.MustCompile(`(?s)<main.*`).FindString(body))
		}
		h.Mirror.Unlock()
	}
	_, _, head := h.Get("/twilio/notifications?understudy.list=of-a-call&CallSid=CA1&Log=", viewertest.All)
	if at := head.Get("Location"); at != "/twilio/notifications?CallSid=CA1" {
		t.Errorf("an address that says too much leads to %q", at)
	}
}

func contains(all []string, want string) bool {
	for _, s := range all {
		if s == want {
			return true
		}
	}
	return false
}

// A list that needs a record asks for it; nothing is asked of the mirror.
func TestLacking(t *testing.T) {
	h := viewertest.Open(t)
	before := h.Mirror.Count()
	if _, _, head := h.Get("/twilio/participants?ConferenceSid=", viewertest.All); head.Get("Location") != "/twilio/participants" {
		t.Errorf("an empty input leads to %q", head.Get("Location"))
	}
	page := h.Page("/twilio/participants", viewertest.All)
	if !strings.Contains(page, `name="ConferenceSid" type="text" placeholder="CF…" required>`) ||
		!strings.Contains(page, `href="/twilio/conferences">Pick a conference`) {
		t.Error("no input, or no way to a conference")
	}
	if h.Mirror.Count() != before {
		t.Error("something was asked")
	}
	if status, body, _ := h.Get("/twilio/participants.json", viewertest.All); status != 400 || !strings.Contains(body, "ConferenceSid") {
		t.Errorf("as data: %d %s", status, body)
	}
	if status, _, _ := h.Get("/twilio/participants", viewertest.Counter); status != 403 {
		t.Errorf("a role without participants: %d", status)
	}
	if status, body, _ := h.Get("/twilio/media/ME1", viewertest.All); status != 400 || !strings.Contains(body, "MessageSid") {
		t.Errorf("a medium without its message: %d", status)
	}
}

// The range that a list is shown by is marked, also where the page was drawn before, for as long as it is that one.
func TestRangeOfAListIsMarked(t *testing.T) {
	var later atomic.Int64
	h := viewertest.Open(t, func(o *page.Options) {
		o.Now = func() time.Time { return viewertest.Noon.Add(time.Duration(later.Load())) }
	})
	mark := regexp.MustCompile(`<a href="[^"]*" aria-current="true">(Last hour|Today|7 days|30 days)</a>`)
	marked := func(path string) string {
		t.Helper()
		var all []string
		for _, m := range mark.FindAllStringSubmatch(h.Page(path, viewertest.Berlin), -1) {
			all = append(all, m[1])
		}
		return strings.Join(all, ", ")
	}
	for _, text := range []string{"Last hour", "Today", "7 days", "30 days"} {
		_, _, head := h.Get(viewertest.Href(h.Page("/twilio/calls?Status=busy", viewertest.Berlin), text), viewertest.Berlin)
		at := head.Get("Location")
		for range 2 {
			if got := marked(at); got != text {
				t.Errorf("%s at %s: %q is marked", text, at, got)
			}
		}
		if got := marked(at + "&StartTime%3C=2026-06-01T10%3A00%3A00Z"); got != "" {
			t.Errorf("%s to a moment: %q is marked", text, got)
		}
		later.Store(int64(25 * time.Hour))
		if got := marked(at); got != "" {
			t.Errorf("%s on another day: %q is marked", text, got)
		}
		later.Store(int64(2 * time.Minute))
		if got := marked(at); (got == text) != (text != "Last hour") {
			t.Errorf("%s two minutes later: %q is marked", text, got)
		}
		later.Store(0)
	}
	if got := marked("/twilio/calls"); got != "" {
		t.Errorf("without a range %q is marked", got)
	}
}
