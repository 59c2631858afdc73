// Charsets: for every encoding of upstream's responses, programs get its bytes
// and people get text.

package answers

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"understudy/e2e/rig"
	"understudy/kit/charset"
)

// payload is one line of the corpus of upstream/testdata.
type payload struct {
	name, contentType, body, outcome string
	to                               string // the filter under which upstream answers so
}

func payloads(t *testing.T) []payload {
	t.Helper()
	data, err := os.ReadFile("../../upstream/testdata/charsets.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []payload
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), " | ")
		if strings.HasPrefix(line, "#") || len(cells) != 4 {
			continue
		}
		body, err := strconv.Unquote(cells[2])
		if err != nil {
			t.Fatal(err)
		}
		outcome, _, _ := strings.Cut(cells[3], ":")
		all = append(all, payload{cells[0], cells[1], body, outcome, fmt.Sprintf("+1415555%04d", len(all))})
	}
	if len(all) < 40 {
		t.Fatalf("only %d payloads", len(all))
	}
	return all
}

// Each payload of the corpus is a list of calls that upstream answers. Programs
// get its bytes, fetched and held, and after a restart; no page of the viewer
// holds a byte that is no UTF-8, or says that a list it cannot read is empty.
func TestCharsetsOnEveryFace(t *testing.T) {
	t.Parallel()
	all := payloads(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, p := range all {
			if r.URL.Query().Get("To") == p.to {
				w.Header()["Content-Type"] = []string{p.contentType}
				_, _ = w.Write([]byte(p.body))
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer upstream.Close()
	s, dir := rig.StartServer(t, rig.Settings{Upstream: upstream.URL, Role: "all"})
	list := func(p payload) string { return rig.Base + "/Calls.json?To=" + strings.ReplaceAll(p.to, "+", "%2B") }
	same := func(when, drop string, p payload) {
		t.Helper()
		r := rig.Get(t, rig.Account+":"+rig.DemoToken, drop+list(p))
		if string(r.Body) != p.body || r.Header.Get("Content-Type") != p.contentType {
			t.Errorf("%s, %s: %q %q, want %q %q", p.name, when, r.Header.Get("Content-Type"), r.Body, p.contentType, p.body)
		}
	}
	for _, p := range all {
		if p.outcome == "unusable" {
			continue
		}
		same("fetched", s.URL("twilio"), p)
		same("held", s.URL("twilio"), p)
		zipped := rig.Get(t, rig.Account+":"+rig.DemoToken, s.URL("twilio")+list(p), "Accept-Encoding", "gzip")
		if body, err := zipped.Decode(); err != nil || string(body) != p.body {
			t.Errorf("%s, compressed: %q, %v", p.name, body, err)
		}
		for _, face := range []string{"", ".json", ".csv", ".jsonl"} {
			r := rig.Get(t, "", s.URL("viewer")+"/twilio/calls"+face+"?To="+strings.ReplaceAll(p.to, "+", "%2B"))
			unreadable := p.outcome == "passes" && r.Status == http.StatusServiceUnavailable && strings.Contains(html.UnescapeString(string(r.Body)), "can't be shown")
			switch text := string(r.Body); {
			case r.Status != http.StatusOK && !unreadable:
				t.Errorf("%s, calls%s: %d", p.name, face, r.Status)
			case !utf8.Valid(r.Body):
				t.Errorf("%s, calls%s is no UTF-8", p.name, face)
			case strings.Contains(text, "0 rows"):
				t.Errorf("%s, calls%s says that there are no rows", p.name, face)
			case p.outcome == "stored" && !strings.Contains(text, "CA1"):
				t.Errorf("%s, calls%s lacks the call", p.name, face)
			case face == ".json" && r.Header.Get("Content-Type") != "application/json":
				t.Errorf("%s, calls%s is called %q", p.name, face, r.Header.Get("Content-Type"))
			}
		}
	}
	var found struct {
		Hits []struct{ ID string }
	}
	rig.Await(t, func() string {
		r := rig.Get(t, "", s.URL("viewer")+"/-/search?q=CA1")
		if err := json.Unmarshal(r.Body, &found); err != nil || len(found.Hits) != 1 {
			return fmt.Sprintf("%s %v", r.Body, err)
		}
		return ""
	})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	upstream.Close()
	s = rig.Start(t, dir, "serve")
	for _, p := range all {
		if p.outcome == "stored" {
			same("after a restart", s.URL("twilio"), p)
		}
	}
}

// Every message's text says in how many segments it is sent, as upstream counts
// them; the page of one shows it, and what forces it into UCS-2.
func TestSegments(t *testing.T) {
	t.Parallel()
	api := rig.StartAPI(t, "--latency", "0s", "--records", "5000")
	var forced struct{ sid, char string }
	n := 0
	for next := rig.Base + "/Messages.json?PageSize=1000"; next != ""; {
		var page struct {
			Messages []struct {
				Sid, Body string
				Segments  string `json:"num_segments"`
			}
			Next *string `json:"next_page_uri"`
		}
		if err := json.Unmarshal(rig.Get(t, rig.Account+":"+rig.APIToken, api.URL("slowapi")+next).Body, &page); err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Messages {
			n++
			s := charset.CountSMS(m.Body)
			if strconv.Itoa(s.Segments) != m.Segments {
				t.Errorf("%s: %d segments, upstream says %s: %q", m.Sid, s.Segments, m.Segments, m.Body)
			}
			if len(s.NonGSM7) == 1 {
				forced.sid, forced.char = m.Sid, string(s.NonGSM7[0].Char)
			}
		}
		next = ""
		if page.Next != nil {
			next = *page.Next
		}
	}
	if n < 10000 || forced.sid == "" {
		t.Fatalf("%d messages, of which %q is in UCS-2", n, forced.sid)
	}
	s, _ := rig.StartServer(t, rig.Settings{Upstream: api.URL("slowapi"), Role: "all"})
	page := string(rig.Get(t, "", s.URL("viewer")+"/twilio/messages/"+forced.sid).Body)
	for _, want := range []string{" segment", "characters (UCS-2), because of " + forced.char + " (U+", "<mark>" + forced.char + "</mark>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the message's page lacks %q:\n%s", want, page)
		}
	}
}
