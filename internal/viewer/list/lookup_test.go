// Lookups: a role that is not shown numbers finds a caller by the whole number, and learns nothing else.

package list_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/spec"
)

// lookedUp is a viewer whose roles support and analyst may look up numbers, its log and its clock.
func lookedUp(t *testing.T, rows map[string]map[string]access.RowRules) (*viewertest.Fixture, *viewertest.AuditLog, *time.Time) {
	t.Helper()
	log, now := &viewertest.AuditLog{}, viewertest.Noon
	h := viewertest.Open(t, func(o *page.Options) {
		var err error
		o.Gate, err = access.NewWith(access.Options{Specs: map[string]*spec.Spec{"twilio": o.Sources[0].Spec}, Roles: viewertest.Roles,
			Rows: rows,
			Do:   access.Permissions{"support": {"twilio": {access.PermitLookup}}, "analyst": {"twilio": {access.PermitLookup}}}})
		viewertest.Must(t, err)
		o.Audit, o.Now = log, func() time.Time { return now }
	}, viewertest.WithSearch(t))
	return h, log, &now
}

// lookUp sends a number in a field of the form, and returns where the answer leads and who may go there.
func lookUp(h *viewertest.Fixture, field, text string, who viewertest.Browser) (status int, to string, next viewertest.Browser) {
	h.Helper()
	status, body, head := h.Do("POST", "/-/lookup", url.Values{field: {text}}.Encode(), who)
	if digits := strings.TrimPrefix(text, "+"); len(digits) > 6 && strings.Contains(body+head.Get("Location"), digits) {
		h.Errorf("the answer to %s holds it: %d %s", text, status, head.Get("Location"))
	}
	cookie, _, _ := strings.Cut(head.Get("Set-Cookie"), ";")
	return status, head.Get("Location"), who.WithCookie(cookie)
}

var recordLink = regexp.MustCompile(`href="(/twilio/(?:calls|messages|recordings|conferences)/[A-Z]{2}[0-9a-f]{32})"`)

// links are the records that a page leads to.
func links(body string) []string {
	var all []string
	for _, m := range recordLink.FindAllStringSubmatch(body, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestLookupFindsACallerByTheWholeNumber(t *testing.T) {
	h, log, now := lookedUp(t, nil)
	number := h.OwnNumber()
	found, err := h.Viewer.Visitor.Options.Search.Find(t.Context(),
		understudy.Caller{Name: "all", Grant: &understudy.Grant{Role: understudy.RoleAll}}, query.SearchRequest{Text: "number:" + number})
	viewertest.Must(t, err)
	status, to, who := lookUp(h, "number", " "+number[:2]+" ("+number[2:5]+") "+number[5:], viewertest.Support)
	if status != http.StatusSeeOther || !regexp.MustCompile(`^/-/lookup/[A-Za-z0-9_-]+$`).MatchString(to) {
		t.Fatalf("%d to %q", status, to)
	}
	body, digits := h.Page(to, who), strings.TrimPrefix(number, "+")
	viewertest.CheckHTML(t, to, body)
	if strings.Contains(body, digits) || !strings.Contains(body, "••••••••"+digits[len(digits)-4:]) {
		t.Error("the number is shown, or not masked as the role is shown it")
	}
	if len(links(body)) < 10 || len(found.Hits) < 10 {
		t.Errorf("%d records lead on, of %d", len(links(body)), len(found.Hits))
	}
	for _, hit := range found.Hits {
		if !strings.Contains(body, hit.ID) {
			t.Errorf("%s %s is not found", hit.Kind, hit.ID)
		}
	}
	for _, side := range []string{`<li class="turn"`, `<li class="turn ours`} {
		if !strings.Contains(body, side) {
			t.Errorf("no record stands on the side of %q", side)
		}
	}
	last := log.Last()
	checktest.Equal(t, last.Action, understudy.ActionSearch, "the audit log has: last.Action")
	checktest.Equal(t, last.What, "lookup", "the audit log has: last.What")
	checktest.True(t, slices.Equal(last.Values, []string{number}), "the audit log has: last.Values is %v",
		last.Values)
	checktest.Equal(t, last.Rows, len(found.Hits), "the audit log has: last.Rows")
	checktest.Equal(t, last.Caller.Name, "masked", "the audit log has: last.Caller.Name")
	if older := viewertest.Href(body, "Older"); older == "" {
		t.Error("there is no way on")
	} else if next := h.Page(strings.ReplaceAll(older, "&amp;", "&"), who); slices.Equal(links(next), links(body)) || len(links(next)) == 0 {
		t.Error("the way on leads to the same records")
	}
	for name, other := range map[string]viewertest.Browser{"without the session": viewertest.Support,
		"another caller": viewertest.Analyst.WithCookie(who.Headers["Cookie"]),
		"the role all":   viewertest.All.WithCookie(who.Headers["Cookie"])} {
		if status, body, _ := h.Get(to, other); status < 400 || len(links(body)) > 0 {
			t.Errorf("%s: %d", name, status)
		}
	}
	if status, _, _ := h.Get(to+"?q=x", who); status != 400 {
		t.Errorf("narrowed by words: %d", status)
	}
	if *now = viewertest.Noon.Add(31 * time.Minute); true {
		if status, body, _ := h.Get(to, who); status != 404 || !strings.Contains(body, "works for 30 minutes") {
			t.Errorf("half an hour later: %d %s", status, body)
		}
	}
	_, to, who = lookUp(h, "number", "+15550001111", viewertest.Support)
	if body := h.Page(to, who); !strings.Contains(body, "Nothing found.") {
		t.Error("a number that nobody has")
	}
	_, to, who = lookUp(h, "number", number, viewertest.Analyst)
	if body := h.Page(to, who); len(links(body)) < 10 || strings.Contains(body, digits) {
		t.Error("a role that sees hashes finds nothing, or is shown the number")
	}
}

// TestNationalNumbersAreToldTheCountrysCode looks up a number as it is dialled inside a country.
func TestNationalNumbersAreToldTheCountrysCode(t *testing.T) {
	h, _, _ := lookedUp(t, nil)
	status, body, _ := h.Do("POST", "/-/lookup", url.Values{"number": {"020 7946 0123"}}.Encode(), viewertest.Support)
	if status != 400 || !strings.Contains(body, "Leave out the 0 at the start of a national number") {
		t.Errorf("a number with the 0 of its country: %d %s", status, body)
	}
}

// TestTheBoxOfAListTakesNumbers types a number, and words, into the box of a list.
func TestTheBoxOfAListTakesNumbers(t *testing.T) {
	h, _, _ := lookedUp(t, nil)
	form := regexp.MustCompile(`(?s)<form method="post" action="/-/lookup"[^>]*>\s*<input type="hidden" name="list" value="([^"]*)">`)
	found := form.FindStringSubmatch(h.Page("/twilio/calls?Status=busy", viewertest.Support))
	if found == nil || found[1] != "/twilio/calls" {
		t.Fatalf("the form of a list leads to %q", found)
	}
	leads := map[string]string{h.OwnNumber(): "/-/lookup/", "duration>9": "/twilio/calls?Status=busy&understudy.q=duration%3E9"}
	for text, want := range leads {
		sent := url.Values{"list": {found[1]}, "Status": {"busy"}, "understudy.q": {text}}
		status, _, head := h.Do("POST", "/-/lookup", sent.Encode(), viewertest.Support)
		if status != 303 || !strings.HasPrefix(head.Get("Location"), want) {
			t.Errorf("%q: %d %s", text, status, head.Get("Location"))
		}
	}
	sent := url.Values{"list": {"//evil.example/x"}, "understudy.q": {"late"}}
	if _, _, head := h.Do("POST", "/-/lookup", sent.Encode(), viewertest.Support); head.Get("Location") != "/?understudy.q=late" {
		t.Errorf("a form that names another host leads to %s", head.Get("Location"))
	}
}

// The box of searches takes a whole number as well, and puts no number in an address.
func TestTheBoxOfSearchesTakesNumbers(t *testing.T) {
	h, _, _ := lookedUp(t, nil)
	number := h.OwnNumber()
	for _, path := range []string{"/", "/search", "/twilio/calls"} {
		if !strings.Contains(h.Page(path, viewertest.Support), `method="post" action="/-/lookup"`) {
			t.Errorf("the box of %s puts what is typed in an address", path)
		}
		if strings.Contains(h.Page(path, viewertest.All), `action="/-/lookup"`) {
			t.Errorf("%s: who sees numbers looks them up", path)
		}
	}
	if status, to, who := lookUp(h, "q", number, viewertest.Support); status != 303 || len(links(h.Page(to, who))) < 10 {
		t.Errorf("a number: %d %s", status, to)
	}
	for _, text := range []string{"tel:" + number, "\u202a" + number + "\u202c", strings.Map(func(r rune) rune {
		if r == '+' {
			return '\uff0b'
		}
		return r - '0' + '\uff10'
	}, number)} {
		if status, to, _ := lookUp(h, "q", text, viewertest.Support); status != 303 || !strings.HasPrefix(to, "/-/lookup/") {
			t.Errorf("%q: %d %s", text, status, to)
		}
	}
	for text, want := range map[string]string{"late delivery": "/search?q=late+delivery", "": "/search?q=", "4176": "/search?q=4176",
		"status:failed": "/search?q=status%3Afailed", "id:4155550123": "/search?q=id%3A4155550123"} {
		if status, to, _ := lookUp(h, "q", text, viewertest.Support); status != 303 || to != want {
			t.Errorf("%q: %d %s, want %s", text, status, to, want)
		}
	}
	for _, text := range []string{number[1:], "from:" + number, "number:" + number, number + " failed",
		`"` + number + `"`} {
		status, to, _ := lookUp(h, "q", text, viewertest.Support)
		if status == 303 && !strings.HasPrefix(to, "/-/lookup/") || status != 303 && status != 400 {
			t.Errorf("%q: %d %s", text, status, to)
		}
	}
	for _, text := range []string{"", "4176", number[2:], "anna", number + ",+15550001111", number + "*", number + "1234567890"} {
		if status, to, _ := lookUp(h, "number", text, viewertest.Support); status != 400 || to != "" {
			t.Errorf("%q: %d %s", text, status, to)
		}
	}
	for _, address := range []string{"/-/lookup?number=" + url.QueryEscape(number), "/-/lookup?q=x"} {
		for _, method := range []string{"GET", "POST"} {
			if status, _, head := h.Do(method, address, "", viewertest.Support); status != 400 || head.Get("Location") != "" {
				t.Errorf("%s %s: %d", method, address, status)
			}
		}
	}
	saved := url.Values{"name": {"a caller"}, "q": {number}}.Encode()
	if status, body, _ := h.Do("POST", "/search/save", saved, viewertest.Support); status != 403 ||
		!strings.Contains(body, "search by phone number") {
		t.Errorf("the search by a number is saved: %d", status)
	}
}

func TestAllCallersShareOneLimitOfLookups(t *testing.T) {
	h, log, now := lookedUp(t, nil)
	number := h.OwnNumber()
	for i := range 10 { // hits and misses, of two callers
		one, who := number, viewertest.Support
		if i%2 == 0 {
			one, who = "+1555000111"+string(rune('0'+i)), viewertest.Analyst
		}
		if status, _, _ := lookUp(h, "number", one, who); status != 303 {
			t.Fatalf("number %d: %d", i, status)
		}
	}
	for _, who := range []viewertest.Browser{viewertest.Support, viewertest.Analyst} {
		for _, one := range []string{number, "+15550001111"} {
			for _, field := range []string{"number", "q"} {
				status, body, head := h.Do("POST", "/-/lookup", url.Values{field: {one}}.Encode(), who)
				checktest.Equal(t, status, 429, "one more: status")
				checktest.Equal(t, head.Get("Retry-After"), "2", `one more: head.Get("Retry-After")`)
				checktest.Contains(t, body, "shares one limit", "one more: body")
			}
		}
	}
	last := log.Last()
	checktest.Equal(t, last.Status, 429, "the audit log has: last.Status")
	checktest.Equal(t, last.What, "lookup", "the audit log has: last.What")
	checktest.Equal(t, last.Source, "twilio", "the audit log has: last.Source")
	checktest.Equal(t, len(last.Values), 1, "the audit log has: len(last.Values)")
	if status, _, _ := lookUp(h, "number", "123", viewertest.Support); status != 400 {
		t.Errorf("what is no number: %d", status)
	}
	*now = now.Add(2 * time.Second)
	if status, _, _ := lookUp(h, "number", number, viewertest.Support); status != 303 {
		t.Errorf("two seconds later: %d", status)
	}
	if status, _, _ := lookUp(h, "number", number, viewertest.Analyst); status != 429 {
		t.Errorf("another caller, at once: %d", status)
	}
}

func TestNobodyLooksUpWithoutPermissionAndAudit(t *testing.T) {
	h, log, _ := lookedUp(t, nil)
	number := h.OwnNumber()
	status, to, who := lookUp(h, "number", number, viewertest.Support)
	if status != 303 {
		t.Fatal(status)
	}
	log.Fail(understudy.ErrNotAudited)
	if status, body, _ := h.Get(to, who); status != 503 || len(links(body)) > 0 {
		t.Errorf("the audit log cannot be written: %d", status)
	}
	for _, token := range []string{"clerktoken", "alltoken", "nobodytoken"} {
		for _, at := range [][2]string{{"GET", "/-/lookup"}, {"POST", "/-/lookup"}, {"GET", to}} {
			if status, _, head := h.Do(at[0], at[1], map[string]string{"POST": "number=%2B15550001111"}[at[0]],
				viewertest.Browser{Token: token}); status != 403 ||
				head.Get("Location") != "" {
				t.Errorf("%s %s as %s: %d", at[0], at[1], token, status)
			}
		}
	}
	plain := viewertest.Open(t, func(o *page.Options) { o.Gate = h.Viewer.Visitor.Options.Gate }, viewertest.WithSearch(t)) // no audit log
	for _, at := range [][2]string{{"GET", "/-/lookup"}, {"POST", "/-/lookup"}, {"GET", "/-/lookup/x"}} {
		if status, _, _ := plain.Do(at[0], at[1], map[string]string{"POST": "number=%2B15550001111"}[at[0]], viewertest.Support); status != 404 {
			t.Errorf("%s %s without an audit log: %d", at[0], at[1], status)
		}
	}
	if strings.Contains(plain.Page("/", viewertest.Support), "/-/lookup") {
		t.Error("lookups are offered without an audit log")
	}
}

// A number that only hidden records have is answered as one that nobody has, byte for byte.
func TestLookupOfHiddenRecordsIsAnsweredAsNone(t *testing.T) {
	h, _, _ := lookedUp(t, map[string]map[string]access.RowRules{"support": {"twilio": {
		"calls": {Where: map[string]access.Match{"sid": {In: []string{"CA" + strings.Repeat("0", 32)}}}}, "messages": {Word: access.FindNone},
		"*": {Word: access.FindAll}, "recordings": {Word: access.FindParent}}}})
	var bodies []string
	for _, number := range []string{h.OwnNumber(), "+15550001111"} {
		status, to, who := lookUp(h, "number", number, viewertest.Support)
		if status != 303 {
			t.Fatal(status)
		}
		body := h.Page(to, who)
		if !strings.Contains(body, "Nothing found.") {
			t.Errorf("%v are found", links(body))
		}
		bodies = append(bodies, strings.ReplaceAll(body, strings.TrimPrefix(to, "/-/lookup/"), strings.Repeat("x", len(to))))
	}
	if bodies[0] != bodies[1] {
		t.Errorf("one answer has %d bytes and the other %d, or they differ", len(bodies[0]), len(bodies[1]))
	}
}
