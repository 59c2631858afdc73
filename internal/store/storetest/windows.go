// The rules of windows: records by their clock, now and at a time.

package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
)

// clocked is a record with a clock and a parent of its own.
type clocked struct {
	row    row
	clock  int64
	parent string
}

// timed makes a list page of records with clocks.
func timed(uri string, when time.Time, rows ...clocked) *understudy.Page {
	var plain []row
	for _, r := range rows {
		plain = append(plain, r.row)
	}
	p := list(uri, when, plain...)
	for i, r := range rows {
		p.Rows[i].Clock, p.Rows[i].Parent = r.clock, r.parent
	}
	return p
}

func window(w query.RangeScan) query.RangeScan {
	w.Source, w.Kind = Source, "calls"
	if w.Shape == "" {
		w.Shape = "calls"
	}
	return w
}

// rows reads a window.
func (s *suite) rows(w query.RangeScan) (ids []string, rows []understudy.Row) {
	s.Helper()
	rows, err := s.ReadRows(s.Context(), window(w))
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range rows {
		if r.Start != 0 || r.End != 0 || r.Record == 0 || r.Version == 0 {
			s.Fatalf("row %+v", r)
		}
		ids = append(ids, r.ID)
	}
	return ids, rows
}

// wantRows reads a window, and as it is now by RecordsAt.
func (s *suite) wantRows(w query.RangeScan, want ...string) {
	s.Helper()
	got, _ := s.rows(w)
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		s.Fatalf("rows of %+v:\n got %s\nwant %s", w, strings.Join(got, ", "), strings.Join(want, ", "))
	}
	s.wantRecords(w, time.Time{}, want...)
}

// wantRecords reads a window at a time.
func (s *suite) wantRecords(w query.RangeScan, when time.Time, want ...string) {
	s.Helper()
	var got []string
	err := s.ScanRecordsAt(s.Context(), window(w), when, func(rec *understudy.Record, clock int64) bool {
		if one, err := s.RecordAt(s.Context(), Source, "calls", rec.Shape, rec.ID, when); err != nil || one.Version != rec.Version ||
			string(one.Body) != string(rec.Body) || one.Number != rec.Number {
			s.Fatalf("record %+v, by itself %+v, %v", rec, one, err)
		}
		got = append(got, rec.ID)
		return true
	})
	if err != nil || strings.Join(got, ", ") != strings.Join(want, ", ") {
		s.Fatalf("records of %+v at %v, %v:\n got %s\nwant %s", w, when, err, strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

func windows(t *testing.T, s *suite) {
	one := func(id, state string, clock int64, parent string) clocked {
		return clocked{row{id: id, body: fmt.Sprintf(`{"id": %q, "state": %q}`, id, state), final: state == "done"}, clock, parent}
	}
	w := query.RangeScan{}
	s.wantRows(w)
	s.save(timed("/l", at(0), one("b", "open", 200, ""), one("a", "done", 100, "P"), one("c", "open", 0, "P"), one("d", "open", 200, "Q"),
		one("e", "done", 300, "P")))
	s.wantRows(w, "e", "d", "b", "a")
	s.wantRows(query.RangeScan{Limit: 2}, "e", "d")
	s.wantRows(query.RangeScan{From: 200}, "e", "d", "b")
	s.wantRows(query.RangeScan{From: 101, To: 300}, "d", "b")
	s.wantRows(query.RangeScan{To: 200}, "a")
	s.wantRows(query.RangeScan{NoClock: true}, "c")
	s.wantRows(query.RangeScan{NotFinal: true}, "d", "b")
	s.wantRows(query.RangeScan{Parent: "P"}, "e", "a")
	s.wantRows(query.RangeScan{Parent: "P", NoClock: true}, "c")
	s.wantRows(query.RangeScan{Parent: "unheard"})
	s.wantRows(query.RangeScan{Shape: "brief"})
	_, rows := s.rows(w)
	if r := rows[3]; r.Clock != 100 || r.Parent != "P" || !r.Final {
		t.Errorf("row %+v", r)
	}
	if got := s.page(timed("/l", at(0), one("b", "open", 200, ""), one("a", "done", 100, "P"), one("c", "open", 0, "P"),
		one("d", "open", 200, "Q"), one("e", "done", 300, "P"))); got.Rows[1].Parent != "P" || got.Rows[0].Parent != "" {
		t.Errorf("rows %+v", got.Rows)
	}
	// Part by part.
	var all []string
	for part := (query.RangeScan{Limit: 1}); ; {
		ids, some := s.rows(part)
		if len(some) == 0 {
			break
		}
		all = append(all, ids...)
		part.Below.Clock, part.Below.Record = some[0].Clock, some[0].Record
	}
	if fmt.Sprint(all) != "[e d b a]" {
		t.Errorf("part by part: %v", all)
	}
	// A clock that is set, one that moves, another parent, a going.
	s.save(timed("/l", at(10), one("c", "begun", 250, "P")))
	s.wantRows(w, "e", "c", "d", "b", "a")
	s.wantRows(query.RangeScan{NoClock: true})
	s.wantRecords(query.RangeScan{NoClock: true}, at(9), "c")
	s.wantRecords(w, at(9), "e", "d", "b", "a")
	s.save(timed("/l", at(20), one("e", "moved", 50, "Q"), one("c", "open", 0, "P")))
	s.wantRows(w, "d", "b", "a", "e")
	s.wantRows(query.RangeScan{Parent: "Q"}, "d", "e")
	s.wantRows(query.RangeScan{Parent: "P"}, "a")
	s.wantRecords(query.RangeScan{Parent: "P"}, at(19), "e", "c", "a")
	s.save(gone("/g", at(30), "a", 404))
	s.wantRows(w, "d", "b", "e")
	s.wantRecords(w, at(29), "d", "b", "a", "e")
	s.wantRecords(w, at(30), "d", "b", "e")
	s.wantRecords(w, at(-1))
	s.save(timed("/l", at(40), one("a", "back", 400, "P"), one("f", "open", 1, "")))
	s.wantRows(w, "a", "d", "b", "e", "f")
	s.wantRecords(query.RangeScan{Limit: 2}, at(50), "a", "d")
	s.wantRecords(w, at(35), "d", "b", "e")
	s.wantRecords(query.RangeScan{NotFinal: true}, at(5), "d", "b")
	n := 0
	two := func(*understudy.Record, int64) bool { n++; return n < 2 }
	if err := s.ScanRecordsAt(t.Context(), window(w), at(50), two); err != nil || n != 2 {
		t.Errorf("%d records, %v", n, err)
	}
	mustVerify(t, s.Store)
}

// Windows larger than what is read at once.
func wideWindows(t *testing.T, s *suite) {
	const n = 1200
	var want []string
	for from := 0; from < n; from += 100 {
		var rows []clocked
		for i := from; i < from+100; i++ {
			rows = append(rows, clocked{call(i, "x"), int64(1 + (i*7919)%n/3), ""})
		}
		s.save(timed(fmt.Sprint("/", from), at(1), rows...))
	}
	_, rows := s.rows(query.RangeScan{Limit: 10_000})
	for i, r := range rows {
		if i > 0 && (r.Clock > rows[i-1].Clock || r.Clock == rows[i-1].Clock && r.Record >= rows[i-1].Record) {
			t.Fatalf("%+v comes after %+v", r, rows[i-1])
		}
		want = append(want, r.ID)
	}
	if len(want) != n {
		t.Fatalf("%d rows", len(want))
	}
	if usual, _ := s.rows(query.RangeScan{}); len(usual) != 1000 {
		t.Errorf("%d rows by default", len(usual))
	}
	s.wantRecords(query.RangeScan{}, at(1), want...)
	for from := 0; from < n; from += 200 { // every other hundred moves
		var rows []clocked
		for i := from; i < from+100; i++ {
			rows = append(rows, clocked{call(i, "y"), int64(5000 + i), ""})
		}
		s.save(timed(fmt.Sprint("/", from), at(2), rows...))
	}
	s.wantRecords(query.RangeScan{}, at(1), want...)
	s.wantRecords(query.RangeScan{From: 5000}, at(1))
}
