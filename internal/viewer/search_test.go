// Search: what is typed leads to one page, to a choice, or to what can be typed.

package viewer

import (
	"encoding/json"
	"encoding/xml"
	"net/url"
	"strings"
	"testing"

	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

func TestSearch(t *testing.T) {
	h := open(t)
	call := h.firstID("/twilio/calls", `CA[0-9a-f]{32}`)
	alert := h.firstID("/twilio/alerts", `NO[0-9a-f]{32}`)
	conference := h.firstID("/twilio/conferences", `CF[0-9a-f]{32}`)
	for typed, want := range map[string]string{
		call: "/twilio/calls/" + call, "  " + call + "\n": "/twilio/calls/" + call, account: "/twilio/accounts/" + account,
		conference + "~" + call: "/twilio/participants/" + conference + "~" + call, alert: "/twilio/alerts/" + alert,
		"+1 (212) 555-0100": "/twilio/number/+12125550100", "0049 30 1234567": "/twilio/number/+49301234567", "72975": "/twilio/number/72975",
		"+49.30/123-45 67":    "/twilio/number/+49301234567",
		strings.ToUpper(call): "/twilio/calls/" + call, strings.ToLower(conference + "~" + call): "/twilio/participants/" + conference + "~" +
			call,
	} {
		status, body, head := h.get("/search?q="+url.QueryEscape(typed), all)
		if status != 303 || head.Get("Location") != want {
			t.Errorf("%q: %d, %s, want %s: %.200s", typed, status, head.Get("Location"), want, body)
		}
	}
	for _, typed := range []string{"", "hello there", "CA123", "+12", "CA" + strings.Repeat("g", 32), "XX" + strings.Repeat("0", 32), call +
		"~" + call, "<script>", "+1+2"} {
		status, body, _ := h.get("/search?q="+url.QueryEscape(typed), all)
		if status != 200 || !strings.Contains(body, "CA…") || !strings.Contains(body, "+15551234567") || strings.Contains(body, "<script>") {
			t.Errorf("%q: %d", typed, status)
		}
		wellFormed(t, typed, body)
	}
	if status, _, _ := h.get("/search?q="+strings.Repeat("a", 500), all); status != 400 {
		t.Errorf("too long: %d", status)
	}
}

// National digits are completed by the country codes of our own numbers.
func TestNationalNumbers(t *testing.T) {
	h := open(t)
	_, body, _ := h.get("/search.json?q=212+555+0100", all)
	var found struct{ Matches []struct{ Href string } }
	must(t, json.Unmarshal([]byte(body), &found))
	if len(found.Matches) < 2 || found.Matches[0].Href != "/twilio/number/+12125550100" {
		t.Errorf("%s", body) // our own numbers are of several countries, most of them of +1
	}
	page := h.page("/search?q=212+555+0100", all)
	if !strings.Contains(page, "Which one?") {
		t.Error("no choice")
	}
	status, _, head := h.get("/search?q=0800123", as{token: "clerktoken"})
	if status != 200 && status != 303 {
		t.Errorf("%d %s", status, head.Get("Location"))
	}
}

// A jump tells nothing that its page does not: nothing is asked for ids of one
// kind, hidden kinds are not offered, and a number is no jump for a role that
// does not see numbers.
func TestSearchTellsNothing(t *testing.T) {
	h := open(t)
	message := h.firstID("/twilio/messages", `SM[0-9a-f]{32}`)
	number := h.ownNumber()
	before := h.mirror.count()
	for _, c := range []struct{ token, typed string }{
		{"clerktoken", message}, {"clerktoken", "SM" + strings.Repeat("0", 32)}, {"supporttoken", number}, {"supporttoken", "+15550001111"},
		{"countertoken", account},
	} {
		status, body, _ := h.get("/search?q="+url.QueryEscape(c.typed), as{token: c.token})
		if status != 200 || strings.Contains(body, `href="/twilio/messages"`) && c.token == "clerktoken" ||
			!strings.Contains(body, "is no id and no number") {
			t.Errorf("%s as %s: %d", c.typed, c.token, status)
		}
	}
	a, _, headA := h.get("/search?q="+message, all)
	b, _, headB := h.get("/search?q=SM"+strings.Repeat("0", 32), all)
	if a != 303 || b != 303 || headA.Get("Location") == headB.Get("Location") {
		t.Errorf("%d %d", a, b)
	}
	if h.mirror.count() != before {
		t.Error("something was asked")
	}
	if status, body, _ := h.get("/search?q="+message, as{}); status != 401 || strings.Contains(body, `id="q"`) {
		t.Errorf("a stranger: %d", status)
	}
}

func TestOpenSearch(t *testing.T) {
	for public, want := range map[string]string{"": "http://example.com/search?q={searchTerms}",
		"https://tools.example/": "https://tools.example/search?q={searchTerms}"} {
		h := open(t, func(o *page.Options) { o.PublicURL = strings.TrimSuffix(public, "/") })
		status, body, head := h.get("/opensearch.xml", as{})
		var doc struct {
			ShortName string
			URL       struct {
				Template string `xml:"template,attr"`
			} `xml:"Url"`
		}
		if err := xml.Unmarshal([]byte(body), &doc); err != nil || status != 200 || doc.ShortName != "Understudy" || doc.URL.Template != want ||
			head.Get("Content-Type") != "application/opensearchdescription+xml" {
			t.Errorf("%q: %d %s (%v)", public, status, body, err)
		}
	}
}

// Whatever is typed, the answer is a page or a move to a page of ours.
func FuzzSearch(f *testing.F) {
	for _, s := range []string{"", "CA0123", account, account + "~" + account, "+1 212 555 0100", "(0)30", "00", "+", "~", "٣٤٥", "\x00",
		"NO" + strings.Repeat("0", 32)} {
		f.Add(s)
	}
	h := open(f)
	h.mirror.fetch = nothing
	f.Fuzz(func(t *testing.T, typed string) {
		status, body, to := h.fuzzed("/search?q=" + url.QueryEscape(typed))
		switch {
		case status == 303 && strings.HasPrefix(to, "/twilio/") && !strings.ContainsAny(to, " \t\r\n<>\"\\"):
			if u, err := url.Parse(to); err != nil || u.Host != "" {
				t.Fatalf("%q leads to %q", typed, to)
			}
			if status, _, _ := h.fuzzed(to); status == 500 {
				t.Fatalf("%q leads to %q: 500", typed, to)
			}
		case status == 200 && to == "" && strings.Contains(body, "</html>"), status == 400 && len(typed) > 200:
		default:
			t.Fatalf("%q: %d, %q", typed, status, to)
		}
	})
}

// FuzzDialled: digits alone come out, in order.
func FuzzDialled(f *testing.F) {
	for _, s := range []string{"+1 212", "0049", "(030) 12-3", "++1", "1+2", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		digits, plus, ok := page.Dialled(text)
		if !ok {
			return
		}
		if strings.Trim(digits, "0123456789") != "" || len(digits) < 3 || len(digits) > 41 {
			t.Fatalf("%q: %q %v", text, digits, plus)
		}
		if !plus && plan.IsNumber("+"+digits) && !strings.HasSuffix(strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, text), digits) {
			t.Fatalf("%q: %q", text, digits)
		}
	})
}
