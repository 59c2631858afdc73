package table

import (
	"slices"
	"testing"
	"time"
)

func TestSelectOrdersByValueThenNewestFirst(t *testing.T) {
	w := &World{Now: time.Now}
	w.Begin("things")
	k := w.Kinds["things"]
	k.Add("a", Values{"n": int64(2)})
	k.Add("b", Values{"n": Stamp(1)})
	k.Add("c", Values{"n": int64(2)})
	k.Delete(k.Add("d", Values{"n": int64(3)}))
	for _, c := range []struct {
		by        string
		ascending bool
		want      []string
	}{
		{"", false, []string{"c", "b", "a"}},
		{"", true, []string{"a", "b", "c"}},
		{"n", false, []string{"c", "a", "b"}},
		{"n", true, []string{"b", "a", "c"}},
	} {
		var got []string
		for _, r := range k.Select(func(*Row) bool { return true }, c.by, c.ascending) {
			got = append(got, r.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("by %q, ascending %v: %v, want %v", c.by, c.ascending, got, c.want)
		}
	}
	if k.Find("d") != nil {
		t.Error("a deleted record is found")
	}
}
