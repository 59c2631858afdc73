package overlap

import (
	"fmt"
	"strings"
	"testing"

	"understudy"
)

func page(ids ...string) *understudy.Page {
	p := &understudy.Page{Status: 200}
	for _, id := range ids {
		p.Rows = append(p.Rows, understudy.Row{ID: id})
	}
	return p
}

func TestTrail(t *testing.T) {
	var trail Trail
	trail.Saw(nil)
	if !trail.Resumed() || trail.Joins(page("a").Rows) {
		t.Error("something was seen")
	}
	trail.Saw([]string{"a", "b"})
	if trail.Resumed() || !trail.Joins(page("x", "b", "c").Rows) || trail.Joins(page("x", "c").Rows) {
		t.Error("a and b were seen, x and c were not")
	}
	if !trail.Same([]string{"a", "b"}) || trail.Same([]string{"b", "a"}) {
		t.Error("the last page was a and b")
	}
	given := page("x", "b", "c")
	if only := trail.New(given); len(only.Rows) != 2 || only.Rows[0].ID != "x" || only.Status != 200 || len(given.Rows) != 3 {
		t.Errorf("new: %+v", only.Rows)
	}
	// It forgets what was seen long ago, and nothing of the last pages.
	for n := range 3 * most {
		trail.Saw([]string{fmt.Sprint(n)})
	}
	if len(trail.young)+len(trail.old) > most || trail.Joins(page("a").Rows) || !trail.Joins(page(fmt.Sprint(3*most-most/2)).Rows) {
		t.Errorf("%d and %d rows remembered", len(trail.young), len(trail.old))
	}
	for n := range MostBack {
		if err := trail.Back(understudy.Key{}); err != nil {
			t.Fatalf("%d times: %v", n+1, err)
		}
	}
	if err := trail.Back(understudy.Key{URI: "/a"}); err == nil || !strings.Contains(err.Error(), "/a: 200 times") {
		t.Errorf("one time more: %v", err)
	}
}
