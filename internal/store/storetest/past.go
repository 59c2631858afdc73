// The rules of the past: what a record was, when, and what changed in it.

package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
)

// told returns a history in words, the newest version first. "calls 20-" means that the version was seen from 20 s
// on. "gone 10-20" means that the record was deleted from 10 s to 20 s.
func told(all []understudy.Version) (words []string) {
	second := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return fmt.Sprint(int(t.Sub(Epoch) / time.Second))
	}
	for _, v := range all {
		word := v.Shape
		if v.Gone {
			word = "gone"
		}
		words = append(words, word+" "+second(v.From)+"-"+second(v.Until))
	}
	return words
}

func (s *suite) history(id string, want ...string) []understudy.Version {
	s.Helper()
	all, err := s.ReadHistory(s.Context(), Source, "calls", id, 0)
	if err != nil {
		s.Fatalf("history of %s: %v", id, err)
	}
	if got := told(all); fmt.Sprint(got) != fmt.Sprint(want) {
		s.Fatalf("history of %s:\n got %q\nwant %q", id, got, want)
	}
	for _, v := range all {
		if v.Gone != (v.Number == 0) || v.Gone && (v.Body != nil || v.Shape != "") {
			s.Fatalf("history of %s: %+v", id, v)
		}
	}
	return all
}

// then checks how a record looked at a time. The body "" means that it must not be found.
func (s *suite) then(shape, id string, seconds int, body string) *understudy.Record {
	s.Helper()
	rec, err := s.RecordAt(s.Context(), Source, "calls", shape, id, at(seconds))
	switch {
	case body == "" && !errors.Is(err, understudy.ErrNotFound):
		s.Fatalf("record %s at %d s: %+v, %v, want not found", id, seconds, rec, err)
	case body != "" && err != nil:
		s.Fatalf("record %s at %d s: %v", id, seconds, err)
	case body != "" && (string(rec.Body) != body || rec.ID != id || rec.Shape != shape || rec.Kind != "calls" || rec.Source != Source ||
		rec.Number == 0 || rec.Version == 0):
		s.Fatalf("record %s at %d s: %+v %s, want %s", id, seconds, rec, rec.Body, body)
	}
	return rec
}

func versionsRemembered(t *testing.T, s *suite) {
	a, b := call(1, "queued"), call(1, "busy")
	b.final = true
	s.save(list("/l", at(10), a))
	if rec := s.record(a); !rec.Since.Equal(at(10)) {
		t.Errorf("since %v", rec.Since)
	}
	s.save(list("/l", at(20), a))
	s.history(sid(1), "calls 10-")
	s.save(list("/l", at(30), b))
	s.save(list("/l", at(40), a))
	all := s.history(sid(1), "calls 40-", "calls 30-40", "calls 10-30")
	if all[0].Number != all[2].Number || string(all[1].Body) != b.body || string(all[2].Body) != a.body || string(all[0].Body) != a.body {
		t.Errorf("%+v", all)
	}
	if rec := s.record(a); !rec.Since.Equal(at(40)) || !rec.Seen.Equal(at(40)) {
		t.Errorf("since %v, seen %v", rec.Since, rec.Seen)
	}
	s.then("calls", sid(1), 9, "")
	if rec := s.then("calls", sid(1), 29, a.body); !rec.Since.Equal(at(10)) || rec.Final {
		t.Errorf("%+v", rec)
	}
	if rec := s.then("calls", sid(1), 30, b.body); !rec.Final || !rec.Since.Equal(at(30)) {
		t.Errorf("%+v", rec)
	}
	s.then("calls", sid(1), 39, b.body)
	s.then("calls", sid(1), 4000, a.body)
	if some, err := s.ReadHistory(t.Context(), Source, "calls", sid(1), 2); err != nil || fmt.Sprint(told(some)) != "[calls 40- calls 30-40]" {
		t.Errorf("%v, %v", told(some), err)
	}
	for _, id := range []string{sid(2), ""} {
		if all, err := s.ReadHistory(t.Context(), Source, "calls", id, 0); !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("of %q: %v, %v", id, all, err)
		}
	}
	if all, err := s.ReadHistory(t.Context(), "unheard", "calls", sid(1), 0); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("of a source nobody heard of: %v, %v", all, err)
	}
	mustVerify(t, s.Store)
}

func goingsRemembered(t *testing.T, s *suite) {
	a, b := call(1, "x"), call(1, "y")
	brief := row{id: sid(1), body: `{"b": 1}`}
	s.save(list("/l", at(10), a))
	p := list("/b", at(20), brief)
	p.Shape = "brief"
	s.save(p)
	s.save(gone("/i", at(30), sid(1), 404))
	s.save(gone("/i", at(35), sid(1), 404))
	s.history(sid(1), "gone 30-", "brief 20-30", "calls 10-30")
	s.save(list("/l", at(40), b))
	s.history(sid(1), "calls 40-", "gone 30-40", "brief 20-30", "calls 10-30")
	s.then("calls", sid(1), 29, a.body)
	s.then("brief", sid(1), 29, brief.body)
	s.then("brief", sid(1), 10, "")
	s.then("calls", sid(1), 30, "")
	s.then("brief", sid(1), 45, "")
	s.then("calls", sid(1), 40, b.body)
	s.save(gone("/i", at(50), sid(1), 410))
	p = list("/b", at(60), brief)
	p.Shape = "brief"
	s.save(p)
	s.history(sid(1), "brief 60-", "gone 50-60", "calls 40-50", "gone 30-40", "brief 20-30", "calls 10-30")
	s.then("calls", sid(1), 60, "")
	s.then("brief", sid(1), 60, brief.body)
	s.then("brief", sid(1), 55, "")
	mustVerify(t, s.Store)
}

// oddSightsRemembered saves rows that lost a race, rows below the same record in one page, and rows from a time
// when the clock was ahead. None of them may get a place of its own in the history.
func oddSightsRemembered(t *testing.T, s *suite) {
	s.save(list("/a", at(100), call(1, "x")))
	s.save(list("/b", at(90), call(1, "late")))
	s.history(sid(1), "calls 100-")
	s.save(list("/c", at(110), call(1, "upper"), call(1, "y")))
	s.history(sid(1), "calls 110-", "calls 100-110")
	s.save(list("/d", at(120), call(1, "upper")))
	s.save(list("/d", at(130), call(1, "late")))
	s.history(sid(1), "calls 130-", "calls 120-130", "calls 110-120", "calls 100-110")
	s.then("calls", sid(1), 99, "")
	s.then("calls", sid(1), 125, call(1, "upper").body)
	s.save(list("/e", at(100_000), call(2, "ahead")))
	s.save(list("/e", at(5), call(2, "now")))
	s.then("calls", sid(2), 5, call(2, "now").body)
	s.then("calls", sid(2), 200_000, call(2, "now").body)
	s.then("calls", sid(2), 4, "")
	s.history(sid(2), "calls 5-", "calls 5-5")
	mustVerify(t, s.Store)
}

func fieldsOfChanges(t *testing.T, s *suite) {
	body := func(text string) row { return row{id: "a", body: text} }
	for i, c := range []struct {
		body string
		want understudy.Names
	}{
		{`{"id": "a", "status": "queued", "price": null, "sub": {"x": 1, "y": [1]}}`, ""},
		{`{"id": "a", "status": "done", "price": null, "sub": {"x": 1, "y": [1]}}`, "status"},
		{`{"id": "a", "status": "done", "price": "-1", "sub": {"x": 2, "y": [1]}}`, "price\nsub.x"},
		{`{"id": "a", "sub": {"x": 2, "y": [1, 2]}, "price": "-1", "new": true}`, "new\nstatus\nsub.y"},
		{`{"id":"a","sub":{"x":2,"y":[1,2]},"price":"-1","new":true}`, ""}, // only spaces
		{`no object`, ""},
		{`{"id": "a"}`, ""},
	} {
		saved := s.save(list("/l", at(i), body(c.body)))
		if len(saved.Changes) != 1 || saved.Changes[0].Fields != c.want {
			t.Errorf("%s: %+v, want fields %q", c.body, saved.Changes, c.want)
		}
	}
	s.save(list("/m", at(20), call(1, "x"), call(2, "x"), call(3, "x")))
	s.save(list("/m", at(21), call(1, "y"), call(2, "y"), row{id: sid(3), body: `{}`}))
	s.save(gone("/g", at(22), sid(1), 404))
	all := s.changes()
	if n := len(all); n != 14 || all[10].Fields != "status" || all[11].Fields != "status" || all[12].Fields != "sid\nstatus" ||
		all[13].Fields != "" || all[1].Fields != "status" {
		t.Errorf("changes %+v", all)
	}
	// Names too many to be told are told by their outermost parts, or not at all.
	long := func(outer, inner int, v string) row {
		b := []byte("{")
		for i := range outer {
			b = fmt.Appendf(b, `"outer%04d": {`, i)
			for j := range inner {
				b = fmt.Appendf(b, `"inner%04d": %s, `, j, v)
			}
			b = append(b, `"z": 0}, `...)
		}
		return body(string(append(b, `"z": 0}`...)))
	}
	s.save(list("/l", at(30), long(3, 500, "1")))
	saved := s.save(list("/l", at(31), long(3, 500, "2")))
	if got := saved.Changes[0].Fields; got != "outer0000\nouter0001\nouter0002" {
		t.Errorf("fields %q", got)
	}
	s.save(list("/l", at(32), long(700, 1, "1")))
	saved = s.save(list("/l", at(33), long(700, 1, "2")))
	if got := saved.Changes[0].Fields; got != "" {
		t.Errorf("fields %q", got)
	}
}

// forgottenPast checks that a forgotten record has no history.
func forgottenPast(t *testing.T, s *suite) {
	for i, state := range []string{"a", "b", "c", "b", "d"} {
		s.save(list("/l", at(10*i), call(1, state), call(2, state)))
	}
	if _, versions, err := s.ForgetRecord(t.Context(), Source, "calls", sid(1)); err != nil || versions != 4 {
		t.Fatalf("%d versions, %v", versions, err)
	}
	if all, err := s.ReadHistory(t.Context(), Source, "calls", sid(1), 0); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("%v, %v", told(all), err)
	}
	for n := range 5 {
		s.then("calls", sid(1), 10*n, "")
	}
	s.then("calls", sid(2), 20, call(2, "c").body)
	s.wantRows(query.RangeScan{}, sid(2))
	s.save(list("/l", at(100), call(1, "e")))
	s.history(sid(1), "calls 100-")
	s.then("calls", sid(1), 99, "")
	s.wantRows(query.RangeScan{}, sid(2), sid(1))
	mustVerify(t, s.Store)
}
