// Places and terms under random histories, compared with a list.

package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy"
	"understudy/internal/query"
)

func terms(_ *testing.T, s *seeker) {
	a, b, c := second(1, 50), second(2, 40), second(3, 86_400*40)
	a.status, b.status, c.status = "busy", "completed", "completed"
	a.to, b.to, c.to = "+491711234567", "client:Anna", "+4915550100"
	b.parent, c.parent = sid(1), sid(2)
	s.save(placedPage(at(0), nil, true, c, a, b))
	ask := func(t ...query.Predicate) query.RecordQuery {
		return query.RecordQuery{Source: Source, Kinds: []string{"calls"}, Predicates: t}
	}
	for _, q := range []struct {
		query.RecordQuery
		want string
	}{
		{ask(query.Predicate{Field: "status", Any: []string{"completed"}}), "3 2"},
		{ask(query.Predicate{Field: "status", Any: []string{"completed", "busy"}}), "3 1 2"},
		{ask(query.Predicate{Field: "status", Any: []string{"failed"}}), ""},
		{ask(query.Predicate{Field: "status", Any: []string{"completed"}}, query.Predicate{Field: "parent_call_sid", Any: []string{sid(1)}}),
			"2"},
		{ask(query.Predicate{Field: "to", Any: []string{"+491711234567"}}), "1"},
		{ask(query.Predicate{Field: "to", Any: []string{"0171 1234567"}}), ""},
		{ask(query.Predicate{Field: "to", Number: "0171 1234567"}), "1"},
		{ask(query.Predicate{Number: "0049 171 123-4567"}), "1"},
		{ask(query.Predicate{Number: "(415) 555-0100"}), "3 1 2"},
		{ask(query.Predicate{Field: "to", Number: "CLIENT:anna"}), "2"},
		{ask(query.Predicate{Field: "start_time", From: Epoch.Unix() + 41, To: Epoch.Unix() + 86_400}), "1"},
		{ask(query.Predicate{Field: "end_time", From: Epoch.Unix() + 86_400}), "3"},
		{ask(query.Predicate{Field: "end_time", To: Epoch.Unix() + 50}), "2"},
		{ask(query.Predicate{Field: "end_time", To: Epoch.Unix() + 51}), "1 2"},
		{ask(query.Predicate{From: Epoch.Unix() + 41, To: Epoch.Unix() + 86_400}), "1"},
		{query.RecordQuery{Source: Source, Predicates: []query.Predicate{{To: Epoch.Unix() + 41}}}, "2"},
		{ask(query.Predicate{From: Epoch.Unix() + 51}, query.Predicate{Field: "status", Any: []string{"completed"}}), "3"},
		{ask(query.Predicate{Field: "nothing", Any: []string{"x"}}), ""},
		{ask(query.Predicate{Field: "sid", Any: []string{sid(2)}}), "2"},
	} {
		for _, up := range []bool{false, true} {
			q.OldestFirst = up
			want := strings.Fields(q.want)
			if up {
				slices.Reverse(want)
			}
			if got := numbers(s.seek(q.RecordQuery)); got != strings.Join(want, " ") {
				s.Errorf("seek %+v: %s, want %s", q.RecordQuery, got, want)
			}
		}
		if n, err := s.Count(s.Context(), q.RecordQuery, 0, time.Time{}); err != nil || n.N != int64(len(strings.Fields(q.want))) {
			s.Errorf("count %+v: %+v, %v, want %s", q.RecordQuery, n, err, q.want)
		}
	}
	// What changes, goes and comes again is found by what it says now.
	ids := func(t []query.Predicate, some ...string) query.RecordQuery {
		return query.RecordQuery{Source: Source, Kinds: []string{"calls"}, IDs: some, Predicates: t}
	}
	s.wantOf(ids(nil, sid(2), "CAunheard"), 2)
	s.wantOf(ids(nil, "CAunheard"))
	s.wantOf(ids([]query.Predicate{{Field: "status", Any: []string{"unheard"}}}, sid(2)))
	byNumber := ids(nil)
	for _, f := range s.seek(ids(nil, sid(1), sid(3))) {
		byNumber.Numbers = append(byNumber.Numbers, f.Record.Number)
	}
	s.wantOf(byNumber, 3, 1)
	byNumber.Predicates = []query.Predicate{{Field: "status", Any: []string{"unheard"}}}
	s.wantOf(byNumber)
	byNumber.Predicates, byNumber.Numbers = nil, []int64{1 << 40}
	s.wantOf(byNumber)
	status := func(word string) query.RecordQuery {
		return ask(query.Predicate{Field: "status", Any: []string{word}})
	}
	b.status = "busy"
	s.save(placedOne(at(10), b))
	s.wantOf(status("busy"), 1, 2)
	s.wantOf(status("completed"), 3)
	s.save(gone("/i", at(20), b.id(), 404))
	s.wantOf(status("busy"), 1)
	b.status = "failed"
	s.save(placedOne(at(30), b))
	s.wantOf(status("busy"), 1)
	s.wantOf(status("failed"), 2)
	last, err := s.ReadLastChange(s.Context(), Source)
	if err != nil {
		s.Fatal(err)
	}
	s.wantOf(query.RecordQuery{Source: Source, Since: last})
	s.wantOf(query.RecordQuery{Source: Source, Since: last - 1}, 2)
	a.status = "failed"
	s.save(placedOne(at(40), a))
	s.wantOf(query.RecordQuery{Source: Source, Since: last}, 1)
	s.wantOf(query.RecordQuery{Source: Source, Since: last - 1, Predicates: status("failed").Predicates}, 1, 2)
}

func walkWhileChanging(_ *testing.T, s *seeker) {
	const n = 700
	var rows []placed
	for i := range n {
		rows = append(rows, second(i+1, int64(-i)))
	}
	for from := 0; from < n; from += 100 {
		s.save(placedPage(at(0), before(rows, from), true, rows[from:from+100]...))
	}
	now := 0
	for _, up := range []bool{false, true} {
		seen, i := map[string]bool{}, 0
		err := s.Seek(s.Context(), query.RecordQuery{Source: Source, OldestFirst: up}, func(f query.Hit) bool {
			if seen[f.Record.ID] {
				s.Errorf("%s comes twice", f.Record.ID)
			}
			seen[f.Record.ID] = true
			if i++; i%50 == 0 && i < 2*n {
				now++ // others change, behind and ahead
				for _, one := range []int{i / 3, min(i, n-1), min(i+40, n-1), max(n-1-i/2, 0)} {
					rows[one].status = fmt.Sprint("s", now)
					s.save(placedOne(at(now), rows[one]))
				}
				s.save(placedOne(at(now), second(n+i, int64(i))))
			}
			return true
		})
		if err != nil {
			s.Fatal(err)
		}
		for i := range rows {
			if !seen[rows[i].id()] {
				s.Errorf("call %d is missing", i)
			}
		}
	}
}

func before(rows []placed, i int) *placed {
	if i == 0 {
		return nil
	}
	return &rows[i-1]
}

func kindsMerge(_ *testing.T, s *seeker) {
	for n := range 60 {
		r := second(n+1, int64(-n/4))
		p := placedOne(at(0), r)
		p.Kind, p.Shape = [...]string{"calls", "messages", "unheard"}[n%3], [...]string{"calls", "messages", "unheard"}[n%3]
		if n%5 == 0 {
			p.Key.Source = "another"
		}
		s.save(p)
	}
	if got := len(s.seek(query.RecordQuery{})); got != 60 {
		s.Errorf("%d of all", got)
	}
	if got := len(s.seek(query.RecordQuery{Source: Source})); got != 48 {
		s.Errorf("%d of a source", got)
	}
	if got := len(s.seek(query.RecordQuery{Kinds: []string{"messages", "unheard"}, OldestFirst: true})); got != 40 {
		s.Errorf("%d of two kinds", got)
	}
	all := s.seek(query.RecordQuery{})
	var parts []query.Hit
	for q := (query.RecordQuery{Limit: 7}); ; {
		some := s.seek(q)
		if len(some) == 0 {
			break
		}
		parts = append(parts, some...)
		q.Below = some[len(some)-1].Order
	}
	if numbers(parts) != numbers(all) {
		s.Errorf("in parts %s, at once %s", numbers(parts), numbers(all))
	}
}

func manyInOneSecond(_ *testing.T, s *seeker) {
	// Each between the first and the one that came before it.
	rows := []placed{second(1, 0), second(2, 0)}
	s.save(placedPage(at(0), nil, true, rows...))
	for n := range 60 {
		rows = slices.Insert(rows, 1, second(n+3, 0))
		s.save(placedPage(at(n), nil, true, rows[:3]...))
	}
	var want []int
	for _, r := range rows {
		want = append(want, r.n)
	}
	s.want(want...)
}

// anyList saves pages of a list that grows and changes at random, and compares the records found in the store with
// the list.
func anyList(t *testing.T, s *seeker) {
	rapid.Check(t, func(rt *rapid.T) {
		one := s.open(t)
		defer one.Close()
		w := &listing{s: one, t: rt, rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))}
		w.arrive(1 + w.rng.IntN(40))
		for range 1 + w.rng.IntN(25) {
			w.step()
		}
		w.walk(w.rng.IntN(3) == 0)
		w.compare()
		mustVerify(t, one)
	})
}

// listing is a list of the upstream, newest record first, whose pages are saved in the store.
type listing struct {
	s     Seeker
	t     *rapid.T
	rng   *rand.Rand
	rows  []placed
	n     int
	clock int64
	saves int
}

func (w *listing) ctx() context.Context { return context.Background() }

func (w *listing) arrive(n int) {
	for range n {
		if w.rng.IntN(3) > 0 {
			w.clock += int64(w.rng.IntN(3))
		}
		w.n++
		r := second(w.n, w.clock)
		r.status = [...]string{"queued", "busy", "completed"}[w.rng.IntN(3)]
		r.to = [...]string{"+14155550111", "+14155550112", "client:anna"}[w.rng.IntN(3)]
		switch w.rng.IntN(12) {
		case 0:
			r.start = 0
		case 1:
			r.start, r.created = 0, 0
		case 2:
			r.start += int64(w.rng.IntN(2_000_000)) - 1_000_000
		case 3:
			r.start += int64(w.rng.IntN(8000)) - 4000
		case 4:
			r.start += 1 << 30
		case 5:
			r.length = int64(w.rng.IntN(10_000))
		}
		w.rows = slices.Insert(w.rows, 0, r)
	}
}

func (w *listing) save(p *understudy.Page) {
	w.saves++
	p.At = at(w.saves)
	if _, err := w.s.Save(w.ctx(), p); err != nil {
		w.t.Fatalf("save %s: %v", p.Key, err)
	}
}

// page saves the page that begins at a row, and returns its number of rows.
func (w *listing) page(from, size int) int {
	rows := w.rows[from:min(from+size, len(w.rows))]
	if len(rows) > 0 {
		w.save(placedPage(at(0), before(w.rows, from), from+size < len(w.rows), rows...))
	}
	return len(rows)
}

func (w *listing) step() {
	if len(w.rows) == 0 {
		w.arrive(1)
	}
	one := w.rng.IntN(len(w.rows))
	switch w.rng.IntN(6) {
	case 0:
		w.arrive(1 + w.rng.IntN(5))
	case 1, 2:
		w.page(one, 1+w.rng.IntN(10))
	case 3:
		w.save(placedOne(at(0), w.rows[one]))
	case 4:
		r := &w.rows[one]
		r.status = fmt.Sprint("s", w.rng.IntN(3))
		if r.start == 0 && w.rng.IntN(2) == 0 {
			r.start = Epoch.Unix() + w.clock - int64(w.rng.IntN(3))*3000
		}
		w.save(placedOne(at(0), *r))
	case 5:
		p := gone("/i/"+w.rows[one].id(), at(0), w.rows[one].id(), 404)
		w.rows = slices.Delete(w.rows, one, one+1)
		w.save(p)
	}
}

// walk saves all pages from the newest to the oldest. If arrivals is true, new records are added meanwhile.
func (w *listing) walk(arrivals bool) {
	for from := 0; from < len(w.rows); {
		from += w.page(from, 1+w.rng.IntN(12))
		if arrivals && w.rng.IntN(4) == 0 {
			n := 1 + w.rng.IntN(3)
			w.arrive(n)
			from += n
		}
	}
	if arrivals {
		w.page(0, len(w.rows))
	}
}

func (w *listing) compare() {
	var all, busy, anna []int
	for _, r := range w.rows {
		all = append(all, r.n)
		if r.status == "s1" || r.status == "busy" {
			busy = append(busy, r.n)
		}
		if r.to == "client:anna" {
			anna = append(anna, r.n)
		}
	}
	w.want(all)
	w.want(busy, query.Predicate{Field: "status", Any: []string{"s1", "busy"}})
	w.want(anna, query.Predicate{Field: "to", Any: []string{"client:anna"}})
	for range 6 {
		w.window()
	}
}

// window searches a range of time around a random record, with and without another condition.
func (w *listing) window() {
	if len(w.rows) == 0 {
		return
	}
	field := []string{"start_time", "end_time", ""}[w.rng.IntN(3)]
	one := w.rows[w.rng.IntN(len(w.rows))]
	t := query.Predicate{Field: field, From: one.start + int64(w.rng.IntN(5)) - 2}
	if one.start == 0 {
		t.From = Epoch.Unix() + w.clock/2
	}
	switch w.rng.IntN(4) {
	case 0:
		t.To = t.From + int64(1+w.rng.IntN(8))
	case 1:
		t.To = t.From + int64(1+w.rng.IntN(3_000_000))
	case 2:
		t.From, t.To = 0, t.From
	}
	var all, busy []int
	for _, r := range w.rows {
		when := r.start
		switch {
		case field == "end_time":
			when = r.ended()
		case field == "" && when == 0: // of its clock or else of its order
			when = r.created
		}
		if when == 0 || when < t.From || t.To != 0 && when >= t.To {
			continue
		}
		if all = append(all, r.n); r.status == "busy" {
			busy = append(busy, r.n)
		}
	}
	w.want(all, t)
	w.want(busy, t, query.Predicate{Field: "status", Any: []string{"busy"}})
	if t.From == 0 || t.To == 0 {
		return
	}
	// The same in two terms, of which each is wider; and two that exclude each other.
	if field != "" {
		w.want(all, query.Predicate{Field: field, From: t.From, To: t.To + int64(w.rng.IntN(9))},
			query.Predicate{Field: field, From: int64(w.rng.IntN(2)) * (t.From - 7), To: t.To})
	}
	w.want(nil, query.Predicate{Field: "start_time", From: t.To}, query.Predicate{Field: "start_time", To: t.From})
}

func (w *listing) want(rows []int, terms ...query.Predicate) {
	up := w.rng.IntN(2) == 0
	rows = slices.Clone(rows)
	if up {
		slices.Reverse(rows)
	}
	q := query.RecordQuery{Source: Source, Predicates: terms, OldestFirst: up}
	var got []int
	for {
		q.Limit, q.ExpectedRows = 1+w.rng.IntN(20), w.rng.IntN(30)
		n := 0
		err := w.s.Seek(w.ctx(), q, func(f query.Hit) bool {
			n++
			var id int
			fmt.Sscanf(f.Record.ID[2:], "%x", &id)
			got = append(got, id/7919)
			q.Below = f.Order
			return true
		})
		if err != nil {
			w.t.Fatal(err)
		}
		if n < q.Limit {
			break
		}
	}
	if !slices.Equal(got, rows) {
		w.t.Fatalf("terms %v, up %v:\n got %v\nwant %v", terms, up, got, rows)
	}
}
