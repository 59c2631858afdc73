// The rules of records: versions, shapes, coming and going, ids.

package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"understudy"
	"understudy/request"
)

func recordIsNewest(t *testing.T, s *suite) {
	a, b := call(1, "queued"), call(1, "completed")
	b.final = true
	s.save(list("/1", at(1), a))
	first := s.record(a)
	if !first.Seen.Equal(at(1)) {
		t.Errorf("seen %v, want %v", first.Seen, at(1))
	}
	saved := s.save(list("/1", at(2), b))
	s.wantChanges(saved.Changes, "changed "+a.id)
	second := s.record(b)
	if second.Number != first.Number || second.Version == first.Version || !second.Seen.Equal(at(2)) ||
		saved.Changes[0].Version != second.Version || saved.Changes[0].Record != second.Number {
		t.Errorf("first %+v, then %+v, change %+v", first, second, saved.Changes[0])
	}
	s.noRecord("other", a.id)
	s.noRecord("calls", sid(2))
}

func bodyReturns(t *testing.T, s *suite) {
	a, b := call(1, "x"), call(1, "y")
	pa := list("/1", at(1), a)
	s.save(pa)
	first := s.record(a)
	s.save(list("/2", at(2), b))
	s.superseded(pa, true)
	saved := s.save(instance("/3", at(3), a))
	s.wantChanges(saved.Changes, "changed "+a.id)
	third := s.record(a)
	if third.Version != first.Version {
		t.Errorf("the body that returned is version %d, was %d", third.Version, first.Version)
	}
	s.superseded(pa, false)
	for n := 4; n < 20; n++ {
		s.save(instance("/3", at(n), call(1, fmt.Sprint(n%5))))
		s.save(instance("/3", at(n), a))
	}
	if last := s.record(a); last.Version != first.Version {
		t.Errorf("after many changes it is version %d, was %d", last.Version, first.Version)
	}
}

func versionsPerShape(t *testing.T, s *suite) {
	full, brief := call(1, "x"), row{id: sid(1), body: `{"s":"x"}`}
	saved := s.save(list("/full", at(1), full))
	s.wantChanges(saved.Changes, "came "+full.id)
	p := list("/brief", at(2), brief)
	p.Shape = "brief"
	saved = s.save(p)
	s.wantChanges(saved.Changes)
	s.recordIn("calls", full)
	other := s.recordIn("brief", brief)
	if other.Number != s.record(full).Number {
		t.Errorf("one record has two numbers")
	}
	brief2 := row{id: sid(1), body: `{"s":"y"}`}
	p2 := list("/brief", at(3), brief2)
	p2.Shape = "brief"
	saved = s.save(p2)
	s.wantChanges(saved.Changes, "changed "+full.id)
	s.recordIn("calls", full)
	s.superseded(list("/full", at(1), full), false)
	// It goes in every shape and comes again in the one it is seen in.
	saved = s.save(gone("/i", at(4), full.id, 410))
	s.wantChanges(saved.Changes, "went "+full.id)
	s.noRecord("calls", full.id)
	s.noRecord("brief", full.id)
	p3 := list("/brief", at(5), brief2)
	p3.Shape = "brief"
	saved = s.save(p3)
	s.wantChanges(saved.Changes, "came "+full.id)
	s.noRecord("calls", full.id)
	saved = s.save(list("/full", at(6), full))
	s.wantChanges(saved.Changes)
	s.recordIn("calls", full)
	if k := s.kind("calls"); k.Records != 1 || k.Changes != 4 {
		t.Errorf("kind %+v", k)
	}
}

func goesAndComes(t *testing.T, s *suite) {
	for i, status := range []int{404, 410, 204} {
		r := call(i, "x")
		s.save(list("/l", at(10*i), r))
		version := s.record(r).Version
		saved := s.save(gone(fmt.Sprint("/i", i), at(10*i+1), r.id, status))
		s.wantChanges(saved.Changes, "went "+r.id)
		if saved.Changes[0].Version != version {
			t.Errorf("it went with version %d, want %d", saved.Changes[0].Version, version)
		}
		s.noRecord("calls", r.id)
		if k := s.kind("calls"); k.Records != int64(i) {
			t.Errorf("%d: kind %+v", i, k)
		}
		s.wantChanges(s.save(gone(fmt.Sprint("/i", i), at(10*i+2), r.id, status)).Changes)
		_, err := s.ReadPage(t.Context(), key(fmt.Sprint("/i", i)))
		if kept := err == nil; kept != (status != 204) {
			t.Errorf("status %d: page %v", status, err)
		}
		s.wantChanges(s.save(list("/l", at(10*i+3), r)).Changes, "came "+r.id)
		if again := s.record(r); again.Version != version {
			t.Errorf("it came back as version %d, was %d", again.Version, version)
		}
	}
	s.wantChanges(s.save(gone("/never", at(50), sid(99), 404)).Changes)
}

func twiceInAPage(t *testing.T, s *suite) {
	same := list("/same", at(1), call(1, "x"), call(2, "x"), call(1, "x"))
	s.wantChanges(s.save(same).Changes, "came "+sid(1), "came "+sid(2))
	if got := s.page(same); got.Superseded || got.Rows[0].Version != got.Rows[2].Version {
		t.Errorf("superseded %v, rows %+v", got.Superseded, got.Rows)
	}
	other := list("/other", at(2), call(3, "x"), call(3, "y"))
	s.wantChanges(s.save(other).Changes, "came "+sid(3))
	s.superseded(other, false)
	s.record(call(3, "y"))
	third := list("/third", at(3), call(3, "z"), call(3, "x"))
	s.wantChanges(s.save(third).Changes, "changed "+sid(3))
	if got := s.page(third); got.Superseded || got.Rows[1].Version != s.page(other).Rows[0].Version {
		t.Errorf("superseded %v, rows %+v", got.Superseded, got.Rows)
	}
	s.superseded(other, true)
	s.wantChanges(s.save(list("/fourth", at(4), call(3, "q"), call(3, "x"))).Changes)
	s.superseded(third, false)
}

func idsOfAnyForm(t *testing.T, s *suite) {
	hex := strings.Repeat("0123456789abcdef", 2)
	ids := []string{
		"CA" + hex, "SM" + hex, "CA" + strings.ToUpper(hex), "ca" + hex, "CA" + hex + "0", "CA" + hex[1:], "1", "", "~", "a~b",
		"CF" + hex + "~CA" + hex, "CA" + hex + "~CA" + hex, "CA" + hex + "~", "\x00", "\x01" + hex[:16], "+15005550006", "日本", "a b/c?d",
		hex[:16], hex[:17],
	}
	var rows []row
	for i, id := range ids {
		if id != "" {
			rows = append(rows, row{id: id, body: fmt.Sprintf(`{"n":%d}`, i)})
		}
	}
	p := list("/ids", at(1), rows...)
	if saved := s.save(p); len(saved.Changes) != len(rows) {
		t.Fatalf("%d changes for %d ids", len(saved.Changes), len(rows))
	}
	s.superseded(p, false)
	for _, r := range rows {
		s.record(r)
	}
	for i, c := range s.changes() {
		if c.ID != rows[i].id {
			t.Errorf("change %d is of %q, want %q", i, c.ID, rows[i].id)
		}
	}
}

func lostRace(t *testing.T, s *suite) {
	s.save(list("/new", at(10), call(1, "new")))
	late := list("/late", at(8), call(1, "old"), call(2, "x"))
	s.wantChanges(s.save(late).Changes, "came "+sid(2))
	s.record(call(1, "new"))
	s.superseded(late, true)
	s.wantChanges(s.save(gone("/i", at(7), sid(1), 404)).Changes)
	s.record(call(1, "new"))
	// The bytes that lost are a version all the same.
	saved := s.save(list("/new", at(11), call(1, "old")))
	s.wantChanges(saved.Changes, "changed "+sid(1))
	if got := s.page(late); got.Superseded || got.Rows[0].Version != saved.Changes[0].Version {
		t.Errorf("superseded %v, rows %+v, change %+v", got.Superseded, got.Rows, saved.Changes[0])
	}
	s.wantChanges(s.save(gone("/i", at(20), sid(1), 404)).Changes, "went "+sid(1))
	s.wantChanges(s.save(list("/late2", at(19), call(1, "old"))).Changes)
	s.noRecord("calls", sid(1))
	other := list("/late3", at(19), row{id: sid(1), body: `{}`})
	other.Shape = "brief"
	s.wantChanges(s.save(other).Changes)
	s.noRecord("brief", sid(1))
	s.superseded(other, true)
}

func clockSetBack(t *testing.T, s *suite) {
	s.save(list("/a", at(100_000), call(1, "x")))
	s.wantChanges(s.save(list("/b", at(0), call(1, "y"))).Changes, "changed "+sid(1))
	if r := s.record(call(1, "y")); !r.Seen.Equal(at(0)) {
		t.Errorf("seen %v", r.Seen)
	}
	// The same for pages: one from the future does not keep others out.
	p := list("/a", at(1), call(1, "y"))
	s.save(p)
	s.superseded(p, false)
}

func writeAnswer(t *testing.T, s *suite) {
	p := instance("", at(1), call(1, "queued"))
	saved := s.save(p)
	s.wantChanges(saved.Changes, "came "+sid(1))
	if saved.Page.Version != 0 || saved.Page.Rows[0].Version == 0 {
		t.Errorf("page version %d, row %+v", saved.Page.Version, saved.Page.Rows[0])
	}
	s.record(call(1, "queued"))
	if _, err := s.ReadPage(t.Context(), p.Key); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("page: %v", err)
	}
	s.wantChanges(s.save(gone("", at(2), sid(1), 204)).Changes, "went "+sid(1))
	s.noRecord("calls", sid(1))
}

// writeAnswerWins checks rule H1: the record in the answer of a write is saved even if another write was made
// since. A fetch that read the record before the write, but ended after it, does not replace it.
func writeAnswerWins(t *testing.T, s *suite) {
	s.save(list("/l", at(9), call(1, "x"), call(2, "x")))
	if _, err := s.Touch(t.Context(), request.Invalidation{Source: Source, Kind: "calls", ID: sid(3)}); err != nil {
		t.Fatal(err)
	}
	s.wantChanges(s.save(instance("", at(8), call(1, "redacted"))).Changes, "changed "+sid(1))
	s.record(call(1, "redacted"))
	s.wantChanges(s.save(gone("", at(8), sid(2), 204)).Changes, "went "+sid(2))
	s.noRecord("calls", sid(2))
	late := list("/l2", at(7), call(1, "x")) // a fetch loses the same race
	late.Generation = 1
	s.wantChanges(s.save(late).Changes)
	s.record(call(1, "redacted"))
}

func seenMoves(t *testing.T, s *suite) {
	open, done := call(1, "x"), call(2, "x")
	done.final = true
	for i, want := range []struct{ at, open, done int }{{0, 0, 0}, {60, 60, 0}, {3000, 3000, 0}, {3601, 3601, 3601}, {3700, 3700, 3601}} {
		s.wantChanges(s.save(list("/l", at(want.at), open, done)).Changes,
			[][]string{{"came " + sid(1), "came " + sid(2)}, nil, nil, nil, nil}[i]...)
		if r := s.record(open); !r.Seen.Equal(at(want.open)) {
			t.Errorf("%d: open record seen %v, want %v", i, r.Seen, at(want.open))
		}
		if r := s.record(done); !r.Seen.Equal(at(want.done)) {
			t.Errorf("%d: final record seen %v, want %v", i, r.Seen, at(want.done))
		}
	}
}

// noPage makes sure that nothing is held under the key of p.
func (s *suite) noPage(p *understudy.Page) {
	s.Helper()
	if _, err := s.ReadPage(s.Context(), p.Key); !errors.Is(err, understudy.ErrNotFound) {
		s.Fatalf("page %s: %v, want not found", p.Key, err)
	}
}

func (s *suite) forgetRecord(id string, pages, versions int) {
	s.Helper()
	p, v, err := s.ForgetRecord(s.Context(), Source, "calls", id)
	if err != nil || p != pages || v != versions {
		s.Fatalf("forget %s: %d pages, %d versions, %v, want %d and %d", id, p, v, err, pages, versions)
	}
}

func pageForgotten(t *testing.T, s *suite) {
	a, b := list("/a", at(1), call(1, "x")), list("/b", at(1), call(1, "x"), call(2, "x"))
	s.save(a)
	s.save(b)
	for _, want := range []bool{true, false} {
		if held, err := s.ForgetPage(t.Context(), a.Key); held != want || err != nil {
			t.Fatalf("forget: %v, %v, want %v", held, err, want)
		}
	}
	if held, err := s.ForgetPage(t.Context(), understudy.Key{Source: "unheard", URI: "/a"}); held || err != nil {
		t.Fatalf("of a source nobody heard of: %v, %v", held, err)
	}
	s.noPage(a)
	s.superseded(b, false)
	s.record(call(1, "x"))
	s.wantChanges(s.save(list("/a", at(2), call(1, "x"))).Changes)
	s.superseded(list("/a", at(2), call(1, "x")), false)
}

func recordForgotten(t *testing.T, s *suite) {
	s.forgetRecord(sid(1), 0, 0)
	both, other := list("/both", at(1), call(1, "x"), call(2, "x")), list("/other", at(1), call(2, "x"), call(3, "x"))
	brief := list("/brief", at(1), row{id: sid(1), body: `{"brief": 1}`})
	brief.Shape = "brief"
	s.save(both)
	s.save(other)
	s.save(brief)
	one := instance("/1", at(2), call(1, "y"))
	s.save(one)
	missing := gone("/m", at(2), sid(9), 404)
	s.save(missing)
	before := s.changes()

	s.forgetRecord(sid(1), 3, 3)
	s.noPage(both)
	s.noPage(brief)
	s.noPage(one)
	s.noRecord("calls", sid(1))
	s.noRecord("brief", sid(1))
	s.superseded(other, false)
	s.record(call(2, "x"))
	s.forgetRecord(sid(9), 1, 0)
	s.noPage(missing)
	s.forgetRecord(sid(1), 0, 0)

	// To a reader of changes nothing has happened, ids included.
	after := s.changes()
	if len(after) != len(before) {
		t.Fatalf("%d changes, then %d", len(before), len(after))
	}
	for i := range after {
		if after[i] != before[i] {
			t.Fatalf("change %+v is now %+v", before[i], after[i])
		}
	}
	// What comes back is no change, unless it is another body.
	s.wantChanges(s.save(list("/both", at(3), call(1, "y"), call(2, "x"))).Changes)
	s.record(call(1, "y"))
	s.noRecord("brief", sid(1))
	s.forgetRecord(sid(1), 1, 1)
	s.wantChanges(s.save(instance("/1", at(4), call(1, "z"))).Changes, "changed "+sid(1))
	s.record(call(1, "z"))
	s.wantChanges(s.save(instance("/1", at(5), call(1, "x"))).Changes, "changed "+sid(1))
	s.page(instance("/1", at(5), call(1, "x")))
	s.wantChanges(s.save(gone("/1", at(6), sid(1), 404)).Changes, "went "+sid(1))
	s.forgetRecord(sid(1), 1, 2)
	s.wantChanges(s.save(instance("/1", at(7), call(1, "x"))).Changes, "came "+sid(1))
	s.record(call(1, "x"))
	mustVerify(t, s.Store)
}

// mustVerify verifies a store.
func mustVerify(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, s Store) {
	t.Helper()
	if r, err := s.Verify(context.Background()); err != nil || len(r.Problems) > 0 {
		t.Fatalf("verify: %v, %v", r.Problems, err)
	}
}
