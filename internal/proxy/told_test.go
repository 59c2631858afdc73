// What headers tell of what is hidden.

package proxy

import (
	"testing"

	"understudy"
)

// M4: the Link to the page after is made of ids, and goes with them.
func TestLinkGoesWithTheIDs(t *testing.T) {
	b := newBed(t)
	list := b.o.Source.Spec.Kind("calls").Lists[0]
	b.o.Source.Spec.PagingOf(list).Style = "header"
	p := page("calls", true, 200, `{"calls":[{"sid":"CA00000000000000000000000000000001","status":"busy"}]}`)
	p.Next = understudy.Key{Source: "twilio", URI: root + "/Calls.json?PageToken=PACA00000000000000000000000000000001"}
	b.answers(p)
	if link := b.ask("GET", root+"/Calls.json", demo).Header().Get("Link"); link == "" {
		t.Error("who sees ids has no link")
	}
	for _, target := range []string{"/Calls.json", "/Calls.json?PageSize=1"} {
		w := b.ask("GET", root+target, blind)
		if link := w.Header().Get("Link"); link != "" || w.Code != 200 {
			t.Errorf("%s: %d, Link: %s", target, w.Code, link)
		}
	}
}

// M2: for a caller that does not see the final state, a final record is asked for like
// one that is not final.
func TestFinalIsNotAskedForWhoDoesNotSeeIt(t *testing.T) {
	b := newBed(t)
	b.answers(page("calls", false, 200, `{"sid":"CA00000000000000000000000000000001","status":"busy"}`))
	for secret, hidden := range map[string]bool{demo: false, reader: false, masked: false, blind: true} {
		b.script.asked = nil
		if w := b.ask("GET", root+"/Calls/CA00000000000000000000000000000001.json", secret); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if got := b.script.asked[0].NotFinal; got != hidden {
			t.Errorf("%s: not final %v, want %v", secret, got, hidden)
		}
	}
}
