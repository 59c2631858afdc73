// Twilio's spec against what docs/reference/twilio.md says its lists are.

package upstream

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/spec"
)

// listed is one list as the page tells it.
type listed struct {
	path, key string
	filters   []string
}

var (
	inParentheses = regexp.MustCompile(`\([^)]*\)`)
	inBraces      = regexp.MustCompile(`\{[^}]*\}`)
)

// pageLists reads the first table of the page: a row holds paths in full, the
// key, and filters, where "<" stands for the filter before it with that sign.
func pageLists(t *testing.T) []listed {
	t.Helper()
	data, err := os.ReadFile("../docs/reference/twilio.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(data), "|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var out []listed
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			t.Fatalf("a row with %d cells: %s", len(cells), line)
		}
		var filters []string
		last := ""
		for name := range strings.SplitSeq(inParentheses.ReplaceAllString(cells[3], ""), ",") {
			switch name = strings.TrimSpace(name); name {
			case "none":
				continue
			case "<", ">":
				name = last + name
			default:
				last = name
			}
			filters = append(filters, name)
		}
		for path := range strings.SplitSeq(cells[1], ",") {
			path = strings.Replace(strings.TrimSpace(path), "~", "/2010-04-01/Accounts/"+account, 1)
			out = append(out, listed{inBraces.ReplaceAllString(path, "X1"), strings.Trim(cells[2], " *"), filters})
		}
	}
	return out
}

// Every list the page tells of is found under its path, with that key and
// those filters in that order, and no other is there.
func TestTwilioListsAreThoseOfThePage(t *testing.T) {
	sp := builtInSpec(t, "twilio")
	told := map[*spec.List]bool{}
	for _, want := range pageLists(t) {
		target, err := sp.Resolve("twilio", want.path, "")
		if err != nil || target.List == nil {
			t.Errorf("%s: no list: %v", want.path, err)
			continue
		}
		told[target.List] = true
		if target.List.Key != want.key {
			t.Errorf("%s: key %q, want %q", want.path, target.List.Key, want.key)
		}
		var have []string
		for _, f := range target.List.Filters {
			have = append(have, f.Name)
		}
		if !slices.Equal(have, want.filters) {
			t.Errorf("%s: filters\n%q, want\n%q", want.path, have, want.filters)
		}
		monitor := strings.HasPrefix(want.path, "/v1/")
		if p := sp.PagingOf(target.List); (p.Next == "meta.next_page_url") != monitor || p.Size != "PageSize" {
			t.Errorf("%s: paging %+v", want.path, p)
		}
		host := "https://api.twilio.com"
		if monitor {
			host = "https://monitor.twilio.com"
		}
		if url, err := sp.BuildURL(target.Key, ""); err != nil || url != host+target.Key.URI {
			t.Errorf("%s is asked at %s: %v", want.path, url, err)
		}
	}
	if len(told) < 40 {
		t.Errorf("only %d lists are told", len(told))
	}
	for _, k := range sp.Kinds {
		for _, l := range k.Lists {
			if !told[l] {
				t.Errorf("%s: list %s is not told", k.Name, l.Path)
			}
		}
	}
}

// The kinds that other packages and people know by name, and what names their records.
func TestTwilioKinds(t *testing.T) {
	want := map[string]string{
		"accounts": "sid", "calls": "sid", "messages": "sid", "incoming_phone_numbers": "sid", "recordings": "sid", "media": "sid",
		"conferences": "sid", "participants": "conference_sid~call_sid", "notifications": "sid", "call_events": "", "transcriptions": "sid",
		"queues": "sid", "queue_members": "queue_sid~call_sid", "applications": "sid", "outgoing_caller_ids": "sid", "usage_records": "",
		"keys": "sid", "signing_keys": "sid", "addresses": "sid", "countries": "", "available_phone_numbers": "", "balance": "",
		"alerts": "sid", "monitor_events": "sid",
	}
	sp := builtInSpec(t, "twilio")
	for _, k := range sp.Kinds {
		if id, ok := want[k.Name]; !ok || k.JoinID(k.ID) != id {
			t.Errorf("%s: id %v, want %q", k.Name, k.ID, id)
		}
		delete(want, k.Name)
		for _, in := range k.Instances {
			if len(in.ID) != len(k.ID) {
				t.Errorf("%s: instance %s has id %v", k.Name, in.Path, in.ID)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// A row answers for an instance only where both look the same.
func TestTwilioShapes(t *testing.T) {
	sp := builtInSpec(t, "twilio")
	const base = "/2010-04-01/Accounts/" + account
	for _, c := range []struct {
		path, kind, id, shape string
	}{
		{base + "/Recordings.json", "recordings", "", "recordings"},
		{base + "/Recordings/RE1.json", "recordings", "RE1", "recordings"},
		{base + "/Calls/CA1/Recordings.json", "recordings", "", "call_recordings"},
		{base + "/Calls/CA1/Recordings/RE1.json", "recordings", "RE1", "call_recordings"},
		{base + "/Conferences/CF1/Recordings.json", "recordings", "", "conference_recordings"},
		{base + "/Conferences/CF1/Recordings/RE1.json", "recordings", "RE1", "conference_recordings"},
		{base + "/Notifications.json", "notifications", "", "notifications"},
		{base + "/Notifications/NO1.json", "notifications", "NO1", "notification"},
		{base + "/Calls/CA1/Notifications.json", "notifications", "", "call_notifications"},
		{base + "/Calls/CA1/Notifications/NO1.json", "notifications", "NO1", "call_notification"},
		{"/v1/Alerts", "alerts", "", "alerts"},
		{"/v1/Alerts/NO1", "alerts", "NO1", "alert"},
		{"/v1/Events/AE1", "monitor_events", "AE1", "monitor_events"},
		{base + "/Conferences/CF1/Participants/CA1.json", "participants", "CF1~CA1", "participants"},
		{base + "/Queues/QU1/Members/CA1.json", "queue_members", "QU1~CA1", "queue_members"},
		{base + "/Balance.json", "balance", "", "balance"},
		{base + "/AvailablePhoneNumbers/US.json", "countries", "", "countries"},
		{base + "/IncomingPhoneNumbers/Local.json", "incoming_phone_numbers", "", "incoming_phone_numbers"},
		{base + "/IncomingPhoneNumbers/PN1.json", "incoming_phone_numbers", "PN1", "incoming_phone_numbers"},
		{base + "/Recordings/RE1", "recordings", "RE1", ""},
		{base + "/Recordings/RE1.wav", "recordings", "RE1", ""},
		{base + "/Recordings/RE1.mp3", "recordings", "RE1", ""},
		{base + "/Messages/MM1/Media/ME1", "media", "ME1", ""},
		{base + "/Messages/MM1/Media/ME1.json", "media", "ME1", "media"},
	} {
		target, err := sp.Resolve("twilio", c.path, "")
		if err != nil || target.Kind == nil {
			t.Errorf("%s: %v, no kind", c.path, err)
			continue
		}
		checktest.Equal(t, target.Kind.Name, c.kind, "%s: target.Kind.Name", c.path)
		checktest.Equal(t, target.ID, c.id, "%s: target.ID", c.path)
		checktest.Equal(t, target.Shape(), c.shape, "%s: target.Shape()", c.path)
		checktest.Equal(t, (target.Media != nil), (c.shape == ""), "%s: (target.Media != nil)", c.path)
	}
}

// What quotes numbers or message bodies is a body, for a role that may read
// neither; new keys and tokens come without their secret.
func TestTwilioClasses(t *testing.T) {
	sp := builtInSpec(t, "twilio")
	for class, names := range map[string][]string{
		spec.ClassBody: {
			"alerts.alert_text", "alerts.request_url", "alerts.request_variables", "alerts.request_headers", "alerts.response_headers",
			"alerts.response_body",
			"notifications.message_text", "notifications.request_url", "notifications.request_variables", "notifications.response_headers",
			"notifications.response_body", "call_events.request", "call_events.response", "monitor_events.event_data", "monitor_events.description",
			"transcriptions.transcription_text", "recordings.audio", "media.content", "messages.body",
		},
		spec.ClassSecret: {"accounts.auth_token", "keys.secret", "signing_keys.secret", "keys.password"},
		spec.ClassPhone: {
			"calls.from", "calls.to_formatted", "calls.forwarded_from", "incoming_phone_numbers.friendly_name", "outgoing_caller_ids.phone_number",
			"outgoing_caller_ids.friendly_name", "available_phone_numbers.phone_number", "available_phone_numbers.friendly_name",
		},
	} {
		for _, name := range names {
			kind, field, _ := strings.Cut(name, ".")
			if f := sp.Kind(kind).Field(field); f == nil || f.Class != class {
				t.Errorf("%s: %+v, want class %s", name, f, class)
			}
		}
	}
	for _, name := range []string{"alerts.url", "monitor_events.url", "monitor_events.links.actor", "recordings.media_url"} {
		kind, field, _ := strings.Cut(name, ".")
		if f := sp.Kind(kind).Field(field); f == nil || !f.AbsoluteURL {
			t.Errorf("%s: %+v, want it absolute", name, f)
		}
	}
	for _, name := range []string{"messages.error_code", "recordings.error_code", "notifications.error_code", "alerts.error_code"} {
		kind, field, _ := strings.Cut(name, ".")
		if f := sp.Kind(kind).Field(field); f == nil || f.Type != spec.TypeCode {
			t.Errorf("%s: %+v, want a code", name, f)
		}
	}
	for _, code := range []string{"11200", "12100", "20429", "21610", "30003", "30034"} {
		if sp.Errors.Meanings[code] == "" {
			t.Errorf("code %s has no meaning", code)
		}
	}
}
