// The rules of the edges: change numbers, sources, worlds, contexts, the end.

package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
)

func changesNumbered(t *testing.T, s *suite) {
	var want []understudy.Change
	for n := range 30 {
		rows := []row{call(n, "x"), call(n/2, fmt.Sprint(n)), call(1000+n, "x"), call(1001+n, "x")}
		want = append(want, s.save(list(fmt.Sprint("/", n%7), at(n), rows...)).Changes...)
		if n%5 == 4 {
			s.saveIs(list(fmt.Sprint("/", n%7), at(n-6), call(5000+n, "x")), understudy.ErrOutdated)
			want = append(want, s.save(gone("/g", at(n), sid(n), 404)).Changes...)
		}
	}
	got := s.changes()
	if last, err := s.ReadLastChange(t.Context(), Source); err != nil || last != int64(len(want)) {
		t.Errorf("the last change is %d, %v; want %d", last, err, len(want))
	}
	if last, err := s.ReadLastChange(t.Context(), "nowhere"); err != nil || last != 0 {
		t.Errorf("the last change of no source is %d, %v", last, err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d changes read, %d made", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] || got[i].N != int64(i+1) {
			t.Fatalf("change %d: read %+v, made %+v", i, got[i], want[i])
		}
	}
	for after := range int64(len(want) + 2) {
		for _, limit := range []int{0, 1, 3, 1000} {
			part, err := s.ReadChanges(t.Context(), Source, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			expect := want[min(int(after), len(want)):]
			expect = expect[:min(limit, len(expect))]
			if len(part) != len(expect) || len(part) > 0 && (part[0] != expect[0] || part[len(part)-1] != expect[len(expect)-1]) {
				t.Fatalf("after %d, limit %d: %v, want %v", after, limit, part, expect)
			}
		}
	}
}

func sourcesApart(t *testing.T, s *suite) {
	a, b := list("/l", at(1), call(1, "x")), list("/l", at(1), call(1, "y"))
	b.Key.Source = "other"
	s.save(a)
	saved := s.save(b)
	if len(saved.Changes) != 1 || saved.Changes[0].N != 1 || saved.Changes[0].Source != "other" ||
		saved.Changes[0].Type != understudy.Appeared {
		t.Errorf("changes %+v", saved.Changes)
	}
	s.page(a)
	s.page(b)
	s.record(call(1, "x"))
	if _, err := s.Touch(t.Context(), request.Invalidation{Source: "other", Kind: "calls", ID: sid(1)}); err != nil {
		t.Fatal(err)
	}
	s.superseded(a, false)
	if k := s.kind("calls"); k.Generation != 0 || k.Records != 1 {
		t.Errorf("kind %+v", k)
	}
	all, err := s.ReadChanges(t.Context(), "other", 0, 10)
	if err != nil || len(all) != 1 || all[0] != saved.Changes[0] {
		t.Errorf("changes %+v, %v", all, err)
	}
}

func worlds(t *testing.T, s *suite) {
	for i, step := range []struct {
		source, world string
		ok            bool
	}{{"a", "one", true}, {"a", "one", true}, {"a", "two", false}, {"b", "two", true}, {"a", "one", true}} {
		err := s.KeepOrigin(t.Context(), step.source, step.world)
		if (err == nil) != step.ok {
			t.Fatalf("%d: %v", i, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "one") || !strings.Contains(err.Error(), "--data")) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func manyAtOnce(t *testing.T, s *suite) {
	w := NewWorld(3, 400)
	each(8, func(g int) {
		for n := range 8 {
			p, _ := w.List(50, n, n*50, at(n))
			p.Key.URI += fmt.Sprint("&g=", g)
			if _, err := s.Save(t.Context(), p); err != nil {
				t.Errorf("save: %v", err)
				return
			}
			got, err := s.ReadPage(t.Context(), p.Key)
			if err != nil || string(got.Body) != string(p.Body) {
				t.Errorf("page: %v", err)
				return
			}
			if _, err := s.Record(t.Context(), Source, "calls", "calls", w.ID(n*50+g)); err != nil {
				t.Errorf("record: %v", err)
			}
		}
	})
	if k := s.kind("calls"); k.Records != 400 || k.Changes != 400 {
		t.Errorf("kind %+v", k)
	}
	for i, c := range s.changes() {
		if c.N != int64(i+1) {
			t.Fatalf("change %d has number %d", i, c.N)
		}
	}
}

func contexts(t *testing.T, s *suite) {
	s.save(list("/l", at(1), call(1, "x")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Save(ctx, list("/l", at(2), call(2, "x"))); !errors.Is(err, context.Canceled) {
		t.Errorf("save: %v", err)
	}
	if _, err := s.ReadPage(ctx, key("/l")); !errors.Is(err, context.Canceled) {
		t.Errorf("page: %v", err)
	}
	if _, err := s.Record(ctx, Source, "calls", "calls", sid(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("record: %v", err)
	}
	if _, err := s.Touch(ctx, request.Invalidation{Source: Source, Kind: "calls"}); !errors.Is(err, context.Canceled) {
		t.Errorf("touch: %v", err)
	}
	if _, err := s.ReadChanges(ctx, Source, 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("changes: %v", err)
	}
	if _, err := s.ReadKinds(ctx, Source); !errors.Is(err, context.Canceled) {
		t.Errorf("kinds: %v", err)
	}
	if k := s.kind("calls"); k.Generation != 0 || k.Records != 1 {
		t.Errorf("kind %+v", k)
	}
}

func closed(t *testing.T, s *suite) {
	s.save(list("/l", at(1), call(1, "x")))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	_, e1 := s.Save(t.Context(), list("/l", at(2), call(2, "x")))
	_, e2 := s.ReadPage(t.Context(), key("/l"))
	_, e3 := s.Record(t.Context(), Source, "calls", "calls", sid(1))
	_, e4 := s.Touch(t.Context(), request.Invalidation{Source: Source, Kind: "calls"})
	_, e5 := s.ReadChanges(t.Context(), Source, 0, 1)
	_, e6 := s.ReadKinds(t.Context(), Source)
	e7 := s.KeepOrigin(t.Context(), Source, "x")
	for i, err := range []error{e1, e2, e3, e4, e5, e6, e7} {
		if !errors.Is(err, understudy.ErrClosed) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// manyInAPage saves pages whose changes of the indexes alone are as many as otherwise wait together.
func manyInAPage(t *testing.T, s *suite) {
	w := NewWorld(4, 2000)
	for n := range 2 {
		p, _ := w.List(1000, n, n*1000, at(n))
		s.save(p)
		got, err := s.ReadPage(t.Context(), p.Key)
		checktest.MustNoError(t, err, "read page %d", n)
		checktest.Equal(t, string(got.Body), string(p.Body), "body of page %d", n)
	}
	checktest.Equal(t, s.kind("calls").Records, 2000, "records")
	mustVerify(t, s.Store)
}
