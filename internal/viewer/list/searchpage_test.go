// Search: what is typed leads to one page, to a choice, or to what can be typed.

package list_test

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// An id two kinds could have leads to the one that has it.
func TestAmbiguousIDs(t *testing.T) {
	h := viewertest.Open(t)
	own := h.FirstID("/twilio/incoming_phone_numbers", `PN[0-9a-f]{32}`)
	caller := h.FirstID("/twilio/outgoing_caller_ids", `PN[0-9a-f]{32}`)
	for id, want := range map[string]string{own: "/twilio/incoming_phone_numbers/" + own, caller: "/twilio/outgoing_caller_ids/" + caller} {
		if status, _, head := h.Get("/search?q="+id, viewertest.All); status != http.StatusSeeOther || head.Get("Location") != want {
			t.Errorf("%s: %d %s", id, status, head.Get("Location"))
		}
	}
	if page := h.Page("/search?q=PN"+strings.Repeat("0", 32), viewertest.All); !strings.Contains(page, "Which one?") ||
		strings.Count(page, "<li><a href=\"/twilio/") < 2 {
		t.Error("an id nobody has is not offered as either")
	}
	if status, _, head := h.Get("/search?q="+caller, viewertest.Counter); status != 303 ||
		head.Get("Location") != "/twilio/incoming_phone_numbers/"+caller {
		t.Errorf("to a role that sees one of the two kinds: %d %s", status, head.Get("Location"))
	}
}

func TestSearch(t *testing.T) {
	h := viewertest.Open(t)
	call := h.FirstID("/twilio/calls", `CA[0-9a-f]{32}`)
	alert := h.FirstID("/twilio/alerts", `NO[0-9a-f]{32}`)
	conference := h.FirstID("/twilio/conferences", `CF[0-9a-f]{32}`)
	for typed, want := range map[string]string{
		call: "/twilio/calls/" + call, "  " + call + "\n": "/twilio/calls/" + call, viewertest.Account: "/twilio/accounts/" + viewertest.Account,
		conference + "~" + call: "/twilio/participants/" + conference + "~" + call, alert: "/twilio/alerts/" + alert,
		"+1 (212) 555-0100": "/twilio/number/+12125550100", "0049 30 1234567": "/twilio/number/+49301234567", "72975": "/twilio/number/72975",
		"+49.30/123-45 67":    "/twilio/number/+49301234567",
		strings.ToUpper(call): "/twilio/calls/" + call, strings.ToLower(conference + "~" + call): "/twilio/participants/" + conference + "~" +
			call,
	} {
		status, body, head := h.Get("/search?q="+url.QueryEscape(typed), viewertest.All)
		if status != 303 || head.Get("Location") != want {
			t.Errorf("%q: %d, %s, want %s: %.200s", typed, status, head.Get("Location"), want, body)
		}
	}
	for _, typed := range []string{"", "hello there", "CA123", "+12", "CA" + strings.Repeat("g", 32), "XX" + strings.Repeat("0", 32), call +
		"~" + call, "<script>", "+1+2"} {
		status, body, _ := h.Get("/search?q="+url.QueryEscape(typed), viewertest.All)
		checktest.Equal(t, status, 200, "%q: status", typed)
		checktest.Contains(t, body, "CA…", "%q: body", typed)
		checktest.Contains(t, body, "+15551234567", "%q: body", typed)
		checktest.Lacks(t, body, "<script>", "%q: body", typed)
		viewertest.CheckHTML(t, typed, body)
	}
	if status, _, _ := h.Get("/search?q="+strings.Repeat("a", 500), viewertest.All); status != 400 {
		t.Errorf("too long: %d", status)
	}
}

// National digits are completed by the country codes of our own numbers.
func TestNationalNumbers(t *testing.T) {
	h := viewertest.Open(t)
	_, body, _ := h.Get("/search.json?q=212+555+0100", viewertest.All)
	var found struct{ Matches []struct{ Href string } }
	viewertest.Must(t, json.Unmarshal([]byte(body), &found))
	if len(found.Matches) < 2 || found.Matches[0].Href != "/twilio/number/+12125550100" {
		t.Errorf("%s", body) // our own numbers are of several countries, most of them of +1
	}
	page := h.Page("/search?q=212+555+0100", viewertest.All)
	if !strings.Contains(page, "Which one?") {
		t.Error("no choice")
	}
	status, _, head := h.Get("/search?q=0800123", viewertest.Clerk)
	if status != 200 && status != 303 {
		t.Errorf("%d %s", status, head.Get("Location"))
	}
}

// A jump tells nothing that its page does not: nothing is asked for ids of one
// kind, hidden kinds are not offered, and a number is no jump for a role that
// does not see numbers.
func TestSearchTellsNothing(t *testing.T) {
	h := viewertest.Open(t)
	message := h.FirstID("/twilio/messages", `SM[0-9a-f]{32}`)
	number := h.OwnNumber()
	before := h.Mirror.Count()
	for _, c := range []struct{ token, typed string }{
		{"clerktoken", message}, {"clerktoken", "SM" + strings.Repeat("0", 32)}, {"supporttoken", number}, {"supporttoken", "+15550001111"},
		{"countertoken", viewertest.Account},
	} {
		status, body, _ := h.Get("/search?q="+url.QueryEscape(c.typed), viewertest.Browser{Token: c.token})
		checktest.Equal(t, status, 200, "%s as %s: status", c.typed, c.token)
		checktest.True(t, !(strings.Contains(body, `href="/twilio/messages"`) && c.token == "clerktoken"),
			"%s as %s: c.token is %q", c.typed, c.token, c.token)
		checktest.Contains(t, body, "is not an id or a phone number", "%s as %s: body", c.typed, c.token)
	}
	a, _, headA := h.Get("/search?q="+message, viewertest.All)
	b, _, headB := h.Get("/search?q=SM"+strings.Repeat("0", 32), viewertest.All)
	checktest.Equal(t, a, 303, "a")
	checktest.Equal(t, b, 303, "b")
	checktest.True(t, headA.Get("Location") != headB.Get("Location"), `headA.Get("Location") is %q`,
		headA.Get("Location"))
	if h.Mirror.Count() != before {
		t.Error("something was asked")
	}
	if status, body, _ := h.Get("/search?q="+message, viewertest.Browser{}); status != 401 || strings.Contains(body, `id="q"`) {
		t.Errorf("a stranger: %d", status)
	}
}

func TestOpenSearch(t *testing.T) {
	for public, want := range map[string]string{"": "http://example.com/search?q={searchTerms}",
		"https://tools.example/": "https://tools.example/search?q={searchTerms}"} {
		h := viewertest.Open(t, func(o *page.Options) { o.PublicURL = strings.TrimSuffix(public, "/") })
		status, body, head := h.Get("/opensearch.xml", viewertest.Browser{})
		var doc struct {
			ShortName string
			URL       struct {
				Template string `xml:"template,attr"`
			} `xml:"Url"`
		}
		err := xml.Unmarshal([]byte(body), &doc)
		checktest.MustNoError(t, err, "%q; body %s", public, body)
		checktest.Equal(t, status, 200, "%q: status; body %s", public, body)
		checktest.Equal(t, doc.ShortName, "Understudy", "%q: doc.ShortName; body %s", public, body)
		checktest.Equal(t, doc.URL.Template, want, "%q: doc.URL.Template; body %s", public, body)
		checktest.Equal(t, head.Get("Content-Type"), "application/opensearchdescription+xml",
			`%q: head.Get("Content-Type"); body %s`, public, body)
	}
}

// Whatever is typed, the answer is a page or a move to a page of ours.
func FuzzSearch(f *testing.F) {
	for _, s := range []string{"", "CA0123", viewertest.Account, viewertest.Account + "~" + viewertest.Account, "+1 212 555 0100", "(0)30",
		"00", "+", "~", "٣٤٥", "\x00",
		"NO" + strings.Repeat("0", 32)} {
		f.Add(s)
	}
	h := viewertest.Open(f)
	h.Mirror.Fetch = viewertest.FetchNothing
	f.Fuzz(func(t *testing.T, typed string) {
		status, body, to := h.GetAndForget("/search?q=" + url.QueryEscape(typed))
		switch {
		case status == 303 && strings.HasPrefix(to, "/twilio/") && !strings.ContainsAny(to, " \t\r\n<>\"\\"):
			if u, err := url.Parse(to); err != nil || u.Host != "" {
				t.Fatalf("%q leads to %q", typed, to)
			}
			if status, _, _ := h.GetAndForget(to); status == 500 {
				t.Fatalf("%q leads to %q: 500", typed, to)
			}
		case status == 200 && to == "" && strings.Contains(body, "</html>"), status == 400 && len(typed) > 200:
		default:
			t.Fatalf("%q: %d, %q", typed, status, to)
		}
	})
}
