// The rules of forgetting: as if it had never been seen, but for changes.

package storetest

import (
	"context"
	"errors"
	"testing"

	"understudy"
)

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
