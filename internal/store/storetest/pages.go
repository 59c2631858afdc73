// The rules of pages: they come back, and are superseded in time.

package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/store"
	"understudy/request"
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
			t.Fatalf("page %d: saved says version %d and %+v, loaded %d and %+v", n, saved.Page.Version, saved.Page.Rows[0], got.Version,
				got.Rows[0])
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
		return &understudy.Page{Key: key(uri), Kind: kind, Shape: kind, Status: status, ContentType: "text/plain", Body: []byte(body),
			Sum: sum([]byte(body)), At: at(0)}
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
		if _, err := s.ReadPage(t.Context(), k); !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("page %s: %v, want not found", k, err)
		}
	}
}

func nothingHeld(t *testing.T, s *suite) {
	if _, err := s.ReadPage(t.Context(), key("/x")); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("page: %v", err)
	}
	s.noRecord("calls", sid(1))
	if c := s.changes(); len(c) != 0 {
		t.Errorf("changes %v", c)
	}
	if k, err := s.ReadKinds(t.Context(), Source); err != nil || len(k) != 0 {
		t.Errorf("kinds %v, %v", k, err)
	}
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
	if got := s.page(a).Changed; got != "status" {
		t.Errorf("superseded by %q, want the status", got)
	}
	a = list("/a", at(3), call(1, "y"), call(2, "x"))
	s.save(a)
	s.superseded(a, false)
	if got := s.page(a).Changed; got != "" {
		t.Errorf("%q changed in a list as it is", got)
	}
	s.save(gone("/i2", at(4), sid(2), 404))
	s.superseded(a, true)
	s.superseded(b, true)
	if got := s.page(b).Changed; got != "sid" {
		t.Errorf("superseded by %q where a record went, want its id", got)
	}
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
	if _, err := s.Touch(t.Context(), request.Invalidation{Source: Source, Kind: "calls", ID: sid(1)}); err != nil {
		t.Fatal(err)
	}
	s.superseded(p, true)
}

func touches(t *testing.T, s *suite) {
	before := list("/l", at(1), call(1, "x"), call(2, "x"))
	inst := instance("/1", at(1), call(1, "x"))
	s.save(before)
	s.save(inst)
	g, err := s.Touch(t.Context(), request.Invalidation{Source: Source, Kind: "calls", ID: sid(1)})
	if err != nil || g != 1 {
		t.Fatalf("generation %d, %v", g, err)
	}
	if k := s.kind("calls"); k.Generation != 1 {
		t.Fatalf("kind %+v", k)
	}
	s.superseded(before, true)
	s.superseded(inst, true)
	if r := s.record(call(1, "x")); !r.Invalidated {
		t.Errorf("the touched record is not invalid")
	}
	if r := s.record(call(2, "x")); r.Invalidated {
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
	if r := s.record(call(1, "x")); r.Invalidated {
		t.Errorf("a record saved again is still invalid")
	}
	if g, err := s.Touch(t.Context(), request.Invalidation{Source: Source, Kind: "calls"}); err != nil || g != 2 {
		t.Fatalf("generation %d, %v", g, err)
	}
	s.superseded(after, true)
	if r := s.record(call(1, "x")); r.Invalidated {
		t.Errorf("a touch without an id made a record invalid")
	}
	if g, err := s.Touch(t.Context(), request.Invalidation{Source: Source, Kind: "unheard", ID: "x"}); err != nil || g != 1 {
		t.Fatalf("generation %d, %v", g, err)
	}
	for _, bad := range []request.Invalidation{{Kind: "calls"}, {Source: Source}} {
		if _, err := s.Touch(t.Context(), bad); err == nil {
			t.Errorf("touch %+v passed", bad)
		}
	}
}

func touchSparesOthers(t *testing.T, s *suite) {
	inst, whole := instance("/1", at(1), call(1, "x")), &understudy.Page{Key: key("/w"), Status: 200, Body: []byte("x"), Sum: sum([]byte("x")),
		At: at(1)}
	s.save(inst)
	s.save(whole)
	if _, err := s.Touch(t.Context(), request.Invalidation{Source: Source, Kind: "calls", ID: sid(2)}); err != nil {
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

func notStored(t *testing.T, s *suite) {
	p := list("/l", at(1), call(1, "x"))
	p.NotStored = "invalid UTF-8"
	s.saveIs(p, understudy.ErrNotStored)
	if _, err := s.Save(t.Context(), p); err == nil || !strings.Contains(err.Error(), "invalid UTF-8") ||
		!strings.HasPrefix(err.Error(), "store: save page") {
		t.Errorf("error %v", err)
	}
	if _, err := s.ReadPage(t.Context(), p.Key); !errors.Is(err, understudy.ErrNotFound) {
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

// ItemsPage returns a page of n rows, each step seconds before the one above it.
func ItemsPage(name string, n int, step int64) *understudy.Page {
	p := &understudy.Page{Key: understudy.Key{Source: "items", URI: "/v1/items?name=" + name}, Kind: "items", Shape: "items", List: true,
		Status: 200, At: time.Unix(1780000000, 0)}
	body := []byte(`{"items": [`)
	for i := range n {
		id, at, start := fmt.Sprintf("%s_%d", name, i), 1780000000-int64(i)*step, len(body)
		body = fmt.Appendf(body, `{"id": %q, "at": %q}`, id, time.Unix(at, 0).UTC().Format(time.RFC3339))
		p.Rows = append(p.Rows, understudy.Row{ID: id, Start: start, End: len(body), Clock: at})
		body = append(body, ", "...)
	}
	p.Body = append(body[:len(body)-2], `], "next": null}`...)
	return p
}

// SaveMessages saves messages from a number on, each with a word of its own.
func SaveMessages(t testing.TB, db *store.DB, from, n int) {
	t.Helper()
	p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: fmt.Sprint("/m", from)}, Kind: "messages", Shape: "messages", List: true,
		Status: 200, At: time.Unix(1_780_000_000, 0)}
	for i := from; i < from+n; i++ {
		at := len(p.Body)
		p.Body = fmt.Appendf(p.Body, `{"sid":"SM%032x","body":"zanzibar%06d speaks of everything","from":"+1415555%04d","status":"delivered"}`, i,
			i, max(i-1999, 0))
		p.Rows = append(p.Rows, understudy.Row{ID: fmt.Sprintf("SM%032x", i), Clock: int64(1_770_000_000 - i), Start: at, End: len(p.Body)})
	}
	if _, err := db.Save(context.Background(), p); err != nil {
		t.Fatal(err)
	}
}

// wholeErased stores pages whose records are not kept: they are no records, and go with one that is
// known, with any person, and when one of them is forgotten.
func wholeErased(t *testing.T, s *erasingSuite) {
	whole := func(uri string, rows ...row) *understudy.Page {
		p := list(uri, at(1), rows...)
		p.NotStored = "it was asked otherwise"
		return p.OutageCopy()
	}
	p := whole("/a?x=1", call(1, "x"), call(2, "x"))
	s.suite.wantChanges(s.suite.save(p).Changes)
	s.suite.noRecord("calls", sid(1))
	got, err := s.suite.ReadPage(t.Context(), p.Key)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Body, p.Body) {
		t.Errorf("the body is %s", got.Body)
	}
	if got.NotStored != "it was asked otherwise" || !got.Superseded {
		t.Errorf("it may be answered as fresh: %q, %v", got.NotStored, got.Superseded)
	}
	if len(got.Rows) != 2 || got.Rows[1].ID != sid(2) || got.Rows[1].Start != p.Rows[1].Start || got.Rows[1].End != p.Rows[1].End {
		t.Errorf("its rows are %+v", got.Rows)
	}
	mustVerify(s.suite.T, s.suite.Store)
	other := whole("/b?x=1", call(3, "x"))
	s.suite.save(other)
	s.suite.save(instance("/1", at(2), call(1, "x")))
	s.suite.save(gone("/1", at(3), sid(1), 404))
	s.suite.noPage(p)
	s.carry("deleted 1 1 1")
	s.suite.noPage(p)
	unknown := whole("/u?x=1", call(7, "x"))
	s.suite.save(unknown)
	s.suite.save(gone("/7", at(4), sid(7), 404))
	s.suite.noPage(unknown)
	if _, err := s.suite.ReadPage(t.Context(), other.Key); err != nil {
		t.Errorf("a page that shows other records went, too: %v", err)
	}
	s.suite.save(p)
	s.suite.save(instance("/1", at(1000), call(1, "x")))
	if n, _, err := s.suite.ForgetRecord(t.Context(), Source, "calls", sid(1)); err != nil || n != 2 {
		t.Fatalf("%d pages were forgotten, %v", n, err)
	}
	s.suite.noPage(p)
	if _, f, err := s.e.EraseNumber(t.Context(), Source, anna); err != nil || f.Records() != 0 {
		t.Fatalf("found %+v, %v", f, err)
	}
	s.suite.noPage(other)
	said := messages("/m?x=1", at(1), Epoch, message(1, anna, ours, "hi"))
	said.NotStored = "it was asked otherwise"
	if how := s.suite.save(said.OutageCopy()).Page.NotStored; how == "" {
		t.Error("a kind whose texts upstream takes back is stored whole")
	}
	s.suite.noPage(said)
}
