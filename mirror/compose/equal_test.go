// Equal: filters whose value stands for another one.

package compose_test

import (
	"strings"
	"testing"
	"time"

	"understudy/internal/query"
	"understudy/mirror/compose"
	"understudy/request"
)

func TestAFilterThatStandsForAnother(t *testing.T) {
	r := newRig(t, 1, nil)
	var found []query.Hit
	err := r.world.Seek(t.Context(), query.RecordQuery{Kinds: []string{"calls"}, Shape: "calls"}, func(f query.Hit) bool {
		found = append(found, f)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	aim, err := r.src.Spec.ResolveLink("twilio", root+"/Calls.json?From=h:abc&PageSize=2")
	if err != nil {
		t.Fatal(err)
	}
	busy := query.Equality{Test: query.OneOf{Prefixes: []string{"+"}}, Predicate: &query.Predicate{Field: "from", Number: "+14155550100"}}
	for _, scan := range []bool{false, true} {
		local := &request.LocalQuery{Conditions: map[string]query.Equality{"From": busy}, NoIndex: scan}
		l, err := compose.New(r.src, aim, compose.Options{Now: func() time.Time { return epoch }, Local: local})
		if err != nil {
			t.Fatal(err)
		}
		indexed := len(l.Seek().Predicates) == 1 && l.Seek().Predicates[0].Number == "+14155550100"
		if indexed == scan {
			t.Errorf("scan is %v, and the store is asked for %+v", scan, l.Seek().Predicates)
		}
		for _, f := range found {
			if !l.Take(f) {
				break
			}
		}
		p, err := l.BuildPage(epoch)
		if err != nil || len(p.Rows) != 2 {
			t.Fatalf("%d rows, %v", len(p.Rows), err)
		}
		if !strings.Contains(string(p.Body), "From=h%3Aabc") || strings.Contains(p.Next.URI, "4155550100") {
			t.Errorf("links do not keep what was asked: %s", p.Body)
		}
	}
}
