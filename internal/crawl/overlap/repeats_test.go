package overlap

import (
	"testing"

	"understudy"
	"understudy/internal/checktest"
)

func rowsOf(link string, rows ...understudy.Row) *understudy.Page {
	return &understudy.Page{Key: understudy.Key{URI: link}, Status: 200, Rows: rows}
}

func TestSightsReturnTheRecordsWhoseContentIsAnother(t *testing.T) {
	var s Sights
	a1, a2 := understudy.Row{ID: "a", Record: 1, Version: 7, Clock: 5}, understudy.Row{ID: "a", Record: 1, Version: 8, Clock: 6}
	if all := s.Add(rowsOf("/1", a1, a1, understudy.Row{ID: "b"})); len(all) != 0 {
		t.Errorf("the same content again: %+v", all)
	}
	all := s.Add(rowsOf("/2", a2, understudy.Row{ID: "b"}))
	checktest.MustEqual(t, len(all), 1, "repeats: len(all)")
	checktest.MustEqual(t, all[0].ID, "a", "repeats: all[0].ID")
	checktest.MustEqual(t, all[0].Link, "/1", "repeats: all[0].Link")
	a := &all[0]
	if !a.IsUnchanged(rowsOf("/1", a1)) {
		t.Error("the page has the content of before: there are two records")
	}
	if a.IsUnchanged(rowsOf("/1", a2)) {
		t.Error("the page has the new content: the record has changed")
	}
	if !a.IsUnchanged(rowsOf("/1", understudy.Row{ID: "a", Version: 9, Clock: 5})) {
		t.Error("the page has the clock of before: there are two records, which change with each answer")
	}
	if !a.HasMoved(rowsOf("/1")) || a.HasMoved(rowsOf("/1", a2)) {
		t.Error("a record has moved when its page has it no more")
	}
	same := Repeat{ID: "a", clock: 5, newClock: 5}
	if same.HasMoved(rowsOf("/1")) {
		t.Error("a record of one clock is one record, wherever it stands")
	}
	if s.Forget(); len(s.Add(rowsOf("/1", a1))) != 0 {
		t.Error("what was forgotten came again")
	}
	rows := make([]understudy.Row, 100)
	for i := range int64(maxSights / 40) {
		for j := range rows {
			rows[j] = understudy.Row{ID: "c", Record: 100*i + int64(j), Version: 1}
		}
		s.Add(rowsOf("/3", rows...))
	}
	if n := len(s.recent) + len(s.older); n > maxSights+2*len(rows) {
		t.Errorf("%d rows are remembered", n)
	}
}
