// What headers tell of what is hidden.

package proxy

import (
	"strings"
	"testing"

	"understudy"
	"understudy/spec/paging"
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

// What clients go by in links, results and cursor as Sentry has them, is written back with them.
func TestLinksKeepTheirParameters(t *testing.T) {
	b := newBed(t)
	list := b.o.Source.Spec.Kind("calls").Lists[0]
	b.o.Source.Spec.PagingOf(list).Style = "header"
	p := page("calls", true, 200, `{"calls":[{"sid":"CA00000000000000000000000000000001","status":"busy"}]}`)
	p.Next = understudy.Key{Source: "twilio", URI: root + "/Calls.json?PageToken=2"}
	p.Header = understudy.Query{
		{Name: paging.ParamsField("next"), Value: `; results="true"; cursor="0:2:0"`},
		{Name: paging.RelationField("previous"), Value: root + "/Calls.json?PageToken=0"},
		{Name: paging.ParamsField("previous"), Value: `; results="true"`},
	}.String()
	b.answers(p)
	link := b.ask("GET", root+"/Calls.json", demo).Header().Get("Link")
	for _, want := range []string{
		`PageToken=2>; rel="next"; results="true"; cursor="0:2:0", <`, `PageToken=0>; rel="previous"; results="true"`,
	} {
		if !strings.Contains(link, want) {
			t.Errorf("Link: %s, want %s", link, want)
		}
	}
}

// The links to other pages than the next one lead to this port, and go with the ids too.
func TestRelationsGoWithTheIDs(t *testing.T) {
	b := newBed(t)
	list := b.o.Source.Spec.Kind("calls").Lists[0]
	b.o.Source.Spec.PagingOf(list).Style = "header"
	at := understudy.Query{}
	for _, relation := range paging.Relations {
		at = append(at, understudy.Param{Name: paging.RelationField(relation), Value: root + "/Calls.json?Page=" + relation})
	}
	p := page("calls", true, 200, `{"calls":[{"sid":"CA00000000000000000000000000000001","status":"busy"}]}`)
	p.Next, p.Header = understudy.Key{Source: "twilio", URI: root + "/Calls.json?Page=next"}, at.String()
	b.answers(p)
	next := `</2010-04-01/Accounts/` + account + `/Calls.json?Page=next>; rel="next"`
	all := next
	for _, relation := range paging.Relations {
		all += `, <` + root + `/Calls.json?Page=` + relation + `>; rel="` + relation + `"`
	}
	if link := b.ask("GET", root+"/Calls.json", demo).Header().Get("Link"); link != all {
		t.Errorf("Link: %s, want %s", link, all)
	}
	if w := b.ask("GET", root+"/Calls.json", blind); w.Header().Get("Link") != "" || w.Code != 200 {
		t.Errorf("who sees no ids: %d, Link: %s", w.Code, w.Header().Get("Link"))
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
