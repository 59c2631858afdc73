package overlap

import (
	"fmt"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
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
	checktest.True(t, !trail.HasNoPages(), "a and b were seen, x and c were not: trail.HasNoPages() is true")
	checktest.True(t, trail.HasRowOf(page("x", "b", "c").Rows),
		`a and b were seen, x and c were not: trail.HasRowOf(page("x", "b", "c").Rows) is false`)
	checktest.True(t, !trail.HasRowOf(page("x", "c").Rows),
		`a and b were seen, x and c were not: trail.HasRowOf(page("x", "c").Rows) is true`)
	if !trail.IsLastPage([]string{"a", "b"}) || trail.IsLastPage([]string{"b", "a"}) {
		t.Error("the last page was a and b")
	}
	given := page("x", "b", "c")
	only := trail.NewRows(given)
	checktest.MustEqual(t, len(only.Rows), 2, "new: len(only.Rows)")
	checktest.Equal(t, only.Rows[0].ID, "x", "new: only.Rows[0].ID")
	checktest.Equal(t, only.Status, 200, "new: only.Status")
	checktest.Equal(t, len(given.Rows), 3, "new: len(given.Rows)")
	// It forgets what was seen long ago, and nothing of the last pages.
	for n := range 3 * maxRows {
		trail.AddPage([]string{fmt.Sprint(n)})
	}
	checktest.True(t, len(trail.recent)+len(trail.older) <= maxRows, "len(trail.recent)+len(trail.older) is %v",
		len(trail.recent)+len(trail.older))
	checktest.True(t, !trail.HasRowOf(page("a").Rows), `trail.HasRowOf(page("a").Rows) is true`)
	checktest.True(t, trail.HasRowOf(page(fmt.Sprint(3*maxRows-maxRows/2)).Rows),
		"trail.HasRowOf(page(fmt.Sprint(3*maxRows-maxRows/2)).Rows) is false")
	for n := range MaxBack {
		if err := trail.CountBack(understudy.Key{}); err != nil {
			t.Fatalf("%d times: %v", n+1, err)
		}
	}
	if err := trail.CountBack(understudy.Key{URI: "/a"}); err == nil || !strings.Contains(err.Error(), "/a: 200 times") {
		t.Errorf("one time more: %v", err)
	}
}
