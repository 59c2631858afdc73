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
	trail.AddPage(nil)
	if !trail.HasNoPages() || trail.HasRowOf(page("a").Rows) {
		t.Error("something was seen")
	}
	trail.AddPage([]string{"a", "b"})
	if trail.HasNoPages() || !trail.HasRowOf(page("x", "b", "c").Rows) || trail.HasRowOf(page("x", "c").Rows) {
		t.Error("a and b were seen, x and c were not")
	}
	if !trail.IsLastPage([]string{"a", "b"}) || trail.IsLastPage([]string{"b", "a"}) {
		t.Error("the last page was a and b")
	}
	given := page("x", "b", "c")
	if only := trail.NewRows(given); len(only.Rows) != 2 || only.Rows[0].ID != "x" || only.Status != 200 || len(given.Rows) != 3 {
		t.Errorf("new: %+v", only.Rows)
	}
	// It forgets what was seen long ago, and nothing of the last pages.
	for n := range 3 * maxRows {
		trail.AddPage([]string{fmt.Sprint(n)})
	}
	if len(trail.recent)+len(trail.older) > maxRows || trail.HasRowOf(page("a").Rows) ||
		!trail.HasRowOf(page(fmt.Sprint(3*maxRows-maxRows/2)).Rows) {
		t.Errorf("%d and %d rows remembered", len(trail.recent), len(trail.older))
	}
	for n := range MaxBack {
		if err := trail.CountBack(understudy.Key{}); err != nil {
			t.Fatalf("%d times: %v", n+1, err)
		}
	}
	if err := trail.CountBack(understudy.Key{URI: "/a"}); err == nil || !strings.Contains(err.Error(), "/a: 200 times") {
		t.Errorf("one time more: %v", err)
	}
}
