package understudy

import (
	"testing"

	"understudy/internal/checktest"
)

// FuzzKeptWhole reads any header: rows lie behind one another. What Whole writes is read as it was.
func FuzzKeptWhole(f *testing.F) {
	for _, seed := range []string{"", "Etag=1", "Whole%3Brows=it+was%0A1+9+a%0A-3+4+b%0A9+7+c%0A8+20+d", "Whole%3Brows=%0A&Whole%3Brows=x"} {
		f.Add(seed, "it was asked otherwise", "a\n0 99 b")
	}
	f.Fuzz(func(t *testing.T, header, why, id string) {
		rows, _ := OutageRows(header)
		last := 0
		for _, r := range rows {
			if r.Start < last || r.End <= r.Start {
				t.Fatalf("rows %+v", rows)
			}
			last = r.End
		}
		p := Page{NotStored: why, Header: "Etag=1", Rows: []Row{{ID: "x", Start: 2, End: 9}, {ID: id, Start: 9, End: 11}}}
		whole := p.OutageCopy()
		if whole.HeaderField("Etag") != "1" || whole.NotStored != "" {
			t.Fatalf("stored as %q, %q", whole.Header, whole.NotStored)
		}
		again, text := OutageRows(whole.Header)
		if why == "" {
			return // it is no page that is stored whole
		}
		if text != why {
			t.Fatalf("the reason is %q, want %q", text, why)
		}
		checktest.MustEqual(t, len(again), 2, "read again: len(again)")
		checktest.MustEqual(t, again[1].ID, id, "read again: again[1].ID")
		checktest.MustEqual(t, again[0].Start, 2, "read again: again[0].Start")
		checktest.MustEqual(t, again[1].End, 11, "read again: again[1].End")
	})
}
