// The rules, one function each.

package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"understudy"
)

func pageComesBack(t *testing.T, s *suite) {
	w := NewWorld(1, 120)
	var pages []*understudy.Page
	for n, from := 0, 0; from < w.N; n++ {
		p, next := w.List(50, n, from, at(n))
		saved := s.save(p)
		if len(saved.Changes) != len(p.Rows) {
			t.Fatalf("page %d: %d changes, want %d", n, len(saved.Changes), len(p.Rows))
		}
		got := s.page(p)
		if got.Superseded {
			t.Fatalf("page %d is superseded at once", n)
		}
		if saved.Page.Version != got.Version || saved.Page.Rows[0] != got.Rows[0] {
			t.Fatalf("page %d: saved says version %d and %+v, loaded %d and %+v", n, saved.Page.Version, saved.Page.Rows[0], got.Version, got.Rows[0])
		}
		pages, from = append(pages, p), next
	}
	for _, p := range pages {
		s.superseded(p, false)
	}
	if k := s.kind("calls"); k.Records != 120 || k.Changes != 120 || k.Generation != 0 {
		t.Fatalf("kind %+v", k)
	}
}

func oddPages(t *testing.T, s *suite) {
	whole := func(uri, kind, body string, status int) *understudy.Page {
		return &understudy.Page{Key: key(uri), Kind: kind, Shape: kind, Status: status, ContentType: "text/plain", Body: []byte(body), Sum: sum([]byte(body)), At: at(0)}
	}
	empty := list("/empty", at(0))
	adjacent := list("/adjacent", at(0), row{id: sid(1), body: `{"sid":1}`}, row{id: sid(2), body: `{"sid":2}`})
	adjacent.Body = []byte(`{"sid":1}{"sid":2}`)
	adjacent.Rows[0].Start, adjacent.Rows[0].End, adjacent.Rows[1].Start, adjacent.Rows[1].End = 0, 9, 9, 18
	adjacent.Sum = sum(adjacent.Body)
	uneven := list("/uneven", at(0), call(3, "a"))
	uneven.Body = append([]byte(strings.Repeat(" ", 300)), uneven.Body...)
	uneven.Rows[0].Start += 300
	uneven.Rows[0].End += 300
	uneven.Rows[0].Clock = -62135596800
	uneven.Sum = sum(uneven.Body)
	next := list("/next?a=1", at(0), call(4, "a"))
	next.Next = key("/not/in/the/body?b=2")
	text := list("/text", at(0), row{id: "h\u00e9ll\u00f6 \U0001f600", body: "{\"sid\":\"h\u00e9ll\u00f6 \U0001f600\",\"x\":\"\u0000\"}"})
	unnamed := list("/unnamed", at(0), call(5, "a"))
	unnamed.Generation = 0
	for _, p := range []*understudy.Page{
		empty, adjacent, uneven, next, text, unnamed,
		whole("/plain", "", "not JSON at all", 200),
		whole("/nothing", "", "", 200),
		whole("/error", "calls", `{"code":20404}`, 404),
		whole("/bad", "calls", `{"code":20001}`, 400),
		whole("/usage", "usage", `[1,2,3]`, 200),
		whole("/big", "", strings.Repeat("0123456789abcdef", 1<<17), 200),
	} {
		s.save(p)
		s.page(p)
	}
}

func twoKeys(t *testing.T, s *suite) {
	a, b := list("/list?a=1", at(0), call(1, "x")), list("/list?a=2", at(0), call(2, "y"))
	s.save(a)
	s.save(b)
	s.page(a)
	s.page(b)
	for _, k := range []understudy.Key{key("/list"), key("/list?a=3"), {Source: "other", URI: "/list?a=1"}} {
		if _, err := s.Page(t.Context(), k); !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("page %s: %v, want not found", k, err)
		}
	}
}

func nothingHeld(t *testing.T, s *suite) {
	if _, err := s.Page(t.Context(), key("/x")); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("page: %v", err)
	}
	s.noRecord("calls", sid(1))
	if c := s.changes(); len(c) != 0 {
		t.Errorf("changes %v", c)
	}
	if k, err := s.Kinds(t.Context(), Source); err != nil || len(k) != 0 {
		t.Errorf("kinds %v, %v", k, err)
	}
}

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
	if second.Number != first.Number || second.Version == first.Version || !second.Seen.Equal(at(2)) || saved.Changes[0].Version != second.Version || saved.Changes[0].Record != second.Number {
		t.Errorf("first %+v, then %+v, change %+v", first, second, saved.Changes[0])
	}
	s.noRecord("other", a.id)
	s.noRecord("calls", sid(2))
}

func newerSupersedes(t *testing.T, s *suite) {
	a, b := list("/a", at(1), call(1, "x"), call(2, "x")), list("/b", at(1), call(2, "x"), call(3, "x"))
	s.save(a)
	s.save(b)
	s.superseded(a, false)
	s.superseded(b, false)
	s.save(instance("/i", at(2), call(1, "y")))
	s.superseded(a, true)
	s.superseded(b, false)
	a = list("/a", at(3), call(1, "y"), call(2, "x"))
	s.save(a)
	s.superseded(a, false)
	s.save(gone("/i2", at(4), sid(2), 404))
	s.superseded(a, true)
	s.superseded(b, true)
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
		_, err := s.Page(t.Context(), key(fmt.Sprint("/i", i)))
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

func notFoundPage(t *testing.T, s *suite) {
	p := gone("/i", at(1), sid(1), 404)
	s.save(p)
	s.superseded(p, false)
	s.save(list("/l", at(2), call(1, "x")))
	s.superseded(p, true)
	p = gone("/i", at(3), sid(1), 404)
	s.save(p)
	s.superseded(p, false)
	if _, err := s.Touch(t.Context(), understudy.Touch{Source: Source, Kind: "calls", ID: sid(1)}); err != nil {
		t.Fatal(err)
	}
	s.superseded(p, true)
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
		"CF" + hex + "~CA" + hex, "CA" + hex + "~CA" + hex, "CA" + hex + "~", "\x00", "\x01" + hex[:16], "+15005550006", "日本", "a b/c?d", hex[:16], hex[:17],
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

func touches(t *testing.T, s *suite) {
	before := list("/l", at(1), call(1, "x"), call(2, "x"))
	inst := instance("/1", at(1), call(1, "x"))
	s.save(before)
	s.save(inst)
	g, err := s.Touch(t.Context(), understudy.Touch{Source: Source, Kind: "calls", ID: sid(1)})
	if err != nil || g != 1 {
		t.Fatalf("generation %d, %v", g, err)
	}
	if k := s.kind("calls"); k.Generation != 1 {
		t.Fatalf("kind %+v", k)
	}
	s.superseded(before, true)
	s.superseded(inst, true)
	if r := s.record(call(1, "x")); !r.Invalid {
		t.Errorf("the touched record is not invalid")
	}
	if r := s.record(call(2, "x")); r.Invalid {
		t.Errorf("another record is invalid")
	}
	s.saveIs(list("/l", at(2), call(1, "old")), understudy.ErrOutdated)
	s.saveIs(instance("/1", at(2), call(1, "old")), understudy.ErrOutdated)
	s.saveIs(gone("/1", at(2), sid(1), 404), understudy.ErrOutdated)
	s.record(call(1, "x"))
	after := list("/l", at(3), call(1, "x"), call(2, "x"))
	after.Generation = 1
	s.wantChanges(s.save(after).Changes)
	s.superseded(after, false)
	if r := s.record(call(1, "x")); r.Invalid {
		t.Errorf("a record saved again is still invalid")
	}
	if g, err := s.Touch(t.Context(), understudy.Touch{Source: Source, Kind: "calls"}); err != nil || g != 2 {
		t.Fatalf("generation %d, %v", g, err)
	}
	s.superseded(after, true)
	if r := s.record(call(1, "x")); r.Invalid {
		t.Errorf("a touch without an id made a record invalid")
	}
	if g, err := s.Touch(t.Context(), understudy.Touch{Source: Source, Kind: "unheard", ID: "x"}); err != nil || g != 1 {
		t.Fatalf("generation %d, %v", g, err)
	}
	for _, bad := range []understudy.Touch{{Kind: "calls"}, {Source: Source}} {
		if _, err := s.Touch(t.Context(), bad); err == nil {
			t.Errorf("touch %+v passed", bad)
		}
	}
}

func touchSparesOthers(t *testing.T, s *suite) {
	inst, whole := instance("/1", at(1), call(1, "x")), &understudy.Page{Key: key("/w"), Status: 200, Body: []byte("x"), Sum: sum([]byte("x")), At: at(1)}
	s.save(inst)
	s.save(whole)
	if _, err := s.Touch(t.Context(), understudy.Touch{Source: Source, Kind: "calls", ID: sid(2)}); err != nil {
		t.Fatal(err)
	}
	s.superseded(inst, false)
	s.superseded(whole, false)
}

func olderIsOutdated(t *testing.T, s *suite) {
	p := list("/l", at(10), call(1, "x"))
	s.save(p)
	s.saveIs(list("/l", at(9), call(1, "y")), understudy.ErrOutdated)
	s.saveIs(gone("/l", at(9), sid(1), 404), understudy.ErrOutdated)
	s.page(p)
	s.record(call(1, "x"))
	s.save(list("/l", at(10), call(1, "y")))
	s.record(call(1, "y"))
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
}

func notStored(t *testing.T, s *suite) {
	p := list("/l", at(1), call(1, "x"))
	p.NotStored = "invalid UTF-8"
	s.saveIs(p, understudy.ErrNotStored)
	if _, err := s.Save(t.Context(), p); err == nil || !strings.Contains(err.Error(), "invalid UTF-8") || !strings.HasPrefix(err.Error(), "store: save page") {
		t.Errorf("error %v", err)
	}
	if _, err := s.Page(t.Context(), p.Key); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("page: %v", err)
	}
	for name, spoil := range map[string]func(p *understudy.Page){
		"beyond the end": func(p *understudy.Page) { p.Rows[1].End = len(p.Body) + 1 },
		"overlapping":    func(p *understudy.Page) { p.Rows[1].Start = p.Rows[0].End - 1 },
		"backwards":      func(p *understudy.Page) { p.Rows[0].End = p.Rows[0].Start - 1 },
		"empty":          func(p *understudy.Page) { p.Rows[0].End = p.Rows[0].Start },
		"negative":       func(p *understudy.Page) { p.Rows[0].Start = -1 },
		"without shape":  func(p *understudy.Page) { p.Shape = "" },
		"without source": func(p *understudy.Page) { p.Key.Source = "" },
	} {
		p := list("/l", at(1), call(1, "x"), call(2, "x"))
		spoil(p)
		if _, err := s.Save(t.Context(), p); !errors.Is(err, understudy.ErrNotStored) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func writeAnswer(t *testing.T, s *suite) {
	p := instance("", at(1), call(1, "queued"))
	saved := s.save(p)
	s.wantChanges(saved.Changes, "came "+sid(1))
	if saved.Page.Version != 0 || saved.Page.Rows[0].Version == 0 {
		t.Errorf("page version %d, row %+v", saved.Page.Version, saved.Page.Rows[0])
	}
	s.record(call(1, "queued"))
	if _, err := s.Page(t.Context(), p.Key); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("page: %v", err)
	}
	s.wantChanges(s.save(gone("", at(2), sid(1), 204)).Changes, "went "+sid(1))
	s.noRecord("calls", sid(1))
}

func seenMoves(t *testing.T, s *suite) {
	open, done := call(1, "x"), call(2, "x")
	done.final = true
	for i, want := range []struct{ at, open, done int }{{0, 0, 0}, {60, 60, 0}, {3000, 3000, 0}, {3601, 3601, 3601}, {3700, 3700, 3601}} {
		s.wantChanges(s.save(list("/l", at(want.at), open, done)).Changes, [][]string{{"came " + sid(1), "came " + sid(2)}, nil, nil, nil, nil}[i]...)
		if r := s.record(open); !r.Seen.Equal(at(want.open)) {
			t.Errorf("%d: open record seen %v, want %v", i, r.Seen, at(want.open))
		}
		if r := s.record(done); !r.Seen.Equal(at(want.done)) {
			t.Errorf("%d: final record seen %v, want %v", i, r.Seen, at(want.done))
		}
	}
}

func pageVersions(t *testing.T, s *suite) {
	bodies := map[int64]string{}
	version := func(p *understudy.Page) int64 {
		v := s.save(p).Page.Version
		if held, ok := bodies[v]; ok && held != string(p.Body) || v == 0 {
			t.Fatalf("version %d is %q and %q", v, held, p.Body)
		}
		bodies[v] = string(p.Body)
		if got := s.page(p); got.Version != v {
			t.Fatalf("loaded version %d, saved %d", got.Version, v)
		}
		return v
	}
	a := version(list("/l", at(1), call(1, "x")))
	if again := version(list("/l", at(2), call(1, "x"))); again != a {
		t.Errorf("the same bytes are version %d, then %d", a, again)
	}
	if b := version(list("/l", at(3), call(1, "y"))); b == a {
		t.Errorf("other bytes are the same version")
	}
	version(list("/l", at(4), call(1, "x")))
}

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
			part, err := s.Changes(t.Context(), Source, after, limit)
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
	if len(saved.Changes) != 1 || saved.Changes[0].N != 1 || saved.Changes[0].Source != "other" || saved.Changes[0].What != understudy.Came {
		t.Errorf("changes %+v", saved.Changes)
	}
	s.page(a)
	s.page(b)
	s.record(call(1, "x"))
	if _, err := s.Touch(t.Context(), understudy.Touch{Source: "other", Kind: "calls", ID: sid(1)}); err != nil {
		t.Fatal(err)
	}
	s.superseded(a, false)
	if k := s.kind("calls"); k.Generation != 0 || k.Records != 1 {
		t.Errorf("kind %+v", k)
	}
	all, err := s.Changes(t.Context(), "other", 0, 10)
	if err != nil || len(all) != 1 || all[0] != saved.Changes[0] {
		t.Errorf("changes %+v, %v", all, err)
	}
}

func worlds(t *testing.T, s *suite) {
	for i, step := range []struct {
		source, world string
		ok            bool
	}{{"a", "one", true}, {"a", "one", true}, {"a", "two", false}, {"b", "two", true}, {"a", "one", true}} {
		err := s.World(t.Context(), step.source, step.world)
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
			got, err := s.Page(t.Context(), p.Key)
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
	if _, err := s.Page(ctx, key("/l")); !errors.Is(err, context.Canceled) {
		t.Errorf("page: %v", err)
	}
	if _, err := s.Record(ctx, Source, "calls", "calls", sid(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("record: %v", err)
	}
	if _, err := s.Touch(ctx, understudy.Touch{Source: Source, Kind: "calls"}); !errors.Is(err, context.Canceled) {
		t.Errorf("touch: %v", err)
	}
	if _, err := s.Changes(ctx, Source, 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("changes: %v", err)
	}
	if _, err := s.Kinds(ctx, Source); !errors.Is(err, context.Canceled) {
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
	_, e2 := s.Page(t.Context(), key("/l"))
	_, e3 := s.Record(t.Context(), Source, "calls", "calls", sid(1))
	_, e4 := s.Touch(t.Context(), understudy.Touch{Source: Source, Kind: "calls"})
	_, e5 := s.Changes(t.Context(), Source, 0, 1)
	_, e6 := s.Kinds(t.Context(), Source)
	e7 := s.World(t.Context(), Source, "x")
	for i, err := range []error{e1, e2, e3, e4, e5, e6, e7} {
		if !errors.Is(err, understudy.ErrClosed) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}
