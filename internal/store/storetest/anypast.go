// Any past: random observations, goings and times, late and set back, against a list
// of what was seen.

package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store"
)

// sight is one observation: from then on a record looks so in a shape, or is deleted.
type sight struct {
	step, at  int // at in seconds
	shape, id string
	row       *clocked // nil: gone
}

// hold is what the oracle knows of a record in one shape.
type hold struct {
	body        string
	seen        int
	gone, final bool
}

// pastOracle keeps in plain form what a store must remember.
type pastOracle struct {
	source  string
	now     int
	step    int
	sights  []sight
	held    map[string]map[string]*hold // by id and shape
	numbers map[string]int64
	words   []string
	times   []int
}

var pastShapes = []string{"calls", "brief"}

// anyPast saves random histories, and compares the store with the oracle at the end of each.
func anyPast(t *testing.T, s *suite) {
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		if run++; run%500 == 0 { // a store keeps 1,023 shapes, and each run has two
			mustVerify(t, s.Store)
			s.Store = s.anew()
		}
		o := &pastOracle{source: fmt.Sprint("run", run), now: 1_000_000, held: map[string]map[string]*hold{}, numbers: map[string]int64{}}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			o.step++
			o.now += rapid.SampledFrom([]int{1, 1, 10, 10, 1000, 5000, -100, -5000}).Draw(rt, "seconds")
			o.times = append(o.times, o.now)
			if rapid.IntRange(0, 4).Draw(rt, "going") == 0 {
				o.goes(rt, s, drawPast(rt).row.id)
			} else {
				o.save(rt, s)
			}
		}
		o.compare(rt, s)
	})
	mustVerify(t, s.Store)
}

// drawPast draws a record; its clock, its parent and whether it is final follow
// from its body.
func drawPast(rt *rapid.T) clocked {
	id := fmt.Sprint("id", rapid.IntRange(0, 5).Draw(rt, "id"))
	a, b := rapid.IntRange(0, 3).Draw(rt, "a"), rapid.IntRange(0, 2).Draw(rt, "b")
	body := fmt.Sprintf(`{"id": %q, "a": %d, "pad": %q, "b": %q}`, id, a, strings.Repeat("0123456789", 20), []string{"", "P", "Q"}[b])
	return clocked{row{id: id, body: body, final: a == 3}, []int64{0, 100, 200, -7}[a], []string{"", "P", "Q"}[b]}
}

func (o *pastOracle) save(rt *rapid.T, s *suite) {
	var rows []clocked
	for range rapid.IntRange(1, 5).Draw(rt, "rows") {
		rows = append(rows, drawPast(rt))
	}
	p := timed(fmt.Sprint("/", o.step), at(o.now), rows...)
	p.Key.Source, p.Shape = o.source, rapid.SampledFrom(append(pastShapes, "calls")).Draw(rt, "shape")
	saved, err := s.Save(s.Context(), p)
	if err != nil {
		rt.Fatal(err)
	}
	for _, r := range saved.Page.Rows {
		o.numbers[r.ID] = r.Record
	}
	last := map[string]clocked{}
	var order []string
	for _, r := range rows {
		if _, again := last[r.row.id]; !again {
			order = append(order, r.row.id)
		}
		last[r.row.id] = r
	}
	for _, id := range order {
		r := last[id]
		o.seen(p.Shape, &r)
	}
}

// late reports whether an observation lost a race.
func (o *pastOracle) late(last int) bool { return o.now < last && last-o.now <= 300 }

func (o *pastOracle) present(id string) bool {
	for _, h := range o.held[id] {
		if !h.gone {
			return true
		}
	}
	return false
}

func (o *pastOracle) seen(shape string, r *clocked) {
	if o.held[r.row.id] == nil {
		o.held[r.row.id] = map[string]*hold{}
	}
	h, present, last := o.held[r.row.id][shape], o.present(r.row.id), 0
	if h != nil {
		last = h.seen
	}
	for _, other := range o.held[r.row.id] {
		if !present {
			last = max(last, other.seen)
		}
	}
	if last != 0 && o.late(last) {
		return
	}
	switch {
	case !present:
		o.words = append(o.words, "came "+r.row.id)
	case h != nil && h.body != r.row.body:
		o.words = append(o.words, "changed "+r.row.id+" "+fieldsApart(h.body, r.row.body))
	}
	same := h != nil && !h.gone && h.body == r.row.body
	if same && r.row.final && o.now >= h.seen && o.now-h.seen <= 3600 {
		return
	}
	o.held[r.row.id][shape] = &hold{body: r.row.body, seen: o.now, final: r.row.final}
	if !same {
		o.sights = append(o.sights, sight{o.step, o.now, shape, r.row.id, r})
	}
}

// fieldsApart returns the names of the fields in which two of the random bodies differ.
func fieldsApart(a, b string) string {
	var names []string
	if a[:strings.Index(a, "pad")] != b[:strings.Index(b, "pad")] {
		names = append(names, "a")
	}
	if a[strings.LastIndex(a, `"b"`):] != b[strings.LastIndex(b, `"b"`):] {
		names = append(names, "b")
	}
	return strings.Join(names, ",")
}

func (o *pastOracle) goes(rt *rapid.T, s *suite, id string) {
	p := gone(fmt.Sprint("/", o.step), at(o.now), id, 404)
	p.Key.Source = o.source
	if _, err := s.Save(s.Context(), p); err != nil {
		rt.Fatal(err)
	}
	last := 0
	for _, h := range o.held[id] {
		last = max(last, h.seen)
	}
	if !o.present(id) || o.late(last) {
		return
	}
	for _, shape := range pastShapes {
		if h := o.held[id][shape]; h != nil {
			if !h.gone {
				o.sights = append(o.sights, sight{o.step, o.now, shape, id, nil})
			}
			h.gone, h.seen = true, o.now
		}
	}
	o.words = append(o.words, "went "+id)
}

// at returns how a record looked in a shape at a time. It returns nil if the record was unknown or deleted then.
func (o *pastOracle) at(shape, id string, at int) (found *clocked) {
	for _, one := range o.sights {
		if one.shape == shape && one.id == id && one.at <= at {
			found = one.row
		}
	}
	return found
}

// history returns the history of a record in the words of the function told.
func (o *pastOracle) history(id string) (words []string) {
	type line struct {
		sight      sight
		from, next int // next: when it was replaced, 0: never
	}
	var lines []line
	for i, one := range o.sights {
		if one.id != id {
			continue
		}
		l := line{one, one.at, 0}
		for _, later := range o.sights[i+1:] {
			if later.id == id && later.shape == one.shape {
				if l.from = min(l.from, later.at); l.next == 0 || later.at < l.next {
					l.next = later.at
				}
			}
		}
		if n := len(lines); n > 0 && one.row == nil && lines[n-1].sight.row == nil && lines[n-1].sight.step == one.step {
			lines[n-1].from = min(lines[n-1].from, l.from) // the same going in another shape
			continue
		}
		lines = append(lines, l)
	}
	for i, l := range lines {
		word := l.sight.shape
		if l.sight.row == nil {
			word, l.next = "gone", 0
			for _, later := range lines[i+1:] {
				if l.next == 0 || later.from < l.next {
					l.next = later.from
				}
			}
		}
		if word = fmt.Sprintf("%s %d-", word, l.from); l.next != 0 {
			word += fmt.Sprint(l.next)
		}
		words = append(words, word)
	}
	slices.Reverse(words)
	return words
}

// window returns the ids of the records that a range scan must find as of a time.
func (o *pastOracle) window(w query.RangeScan, when int) (ids []string) {
	clocks := map[string]int64{}
	for id := range o.held {
		r := o.at(w.Shape, id, when)
		if r == nil || (r.clock == 0) != w.NoClock || w.Parent != "" && r.parent != w.Parent || w.NotFinal && r.row.final || w.From != 0 &&
			r.clock < w.From || w.To != 0 && r.clock >= w.To {
			continue
		}
		clocks[id] = r.clock
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(clocks[b], clocks[a]), cmp.Compare(o.numbers[b], o.numbers[a]))
	})
	return ids
}

func (o *pastOracle) compare(rt *rapid.T, s *suite) {
	o.compareChanges(rt, s)
	for id := range o.held {
		all, err := s.ReadHistory(s.Context(), o.source, "calls", id, 0)
		want := o.history(id)
		if len(want) == 0 && err != nil {
			continue
		}
		if got := told(all); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("history of %s, %v:\n got %q\nwant %q", id, err, got, want)
		}
		for _, v := range all {
			if !v.Gone && !strings.Contains(string(v.Body), fmt.Sprintf("%q", id)) {
				rt.Fatalf("history of %s: %s", id, v.Body)
			}
		}
	}
	last := slices.Max(o.times) + 1
	for range 6 {
		when := rapid.SampledFrom(append(o.times, last)).Draw(rt, "when") + rapid.IntRange(-1, 0).Draw(rt, "before")
		for id := range o.held {
			for _, shape := range pastShapes {
				rec, err := s.RecordAt(s.Context(), o.source, "calls", shape, id, at(when))
				want := o.at(shape, id, when)
				if (err == nil) != (want != nil) || err == nil && (string(rec.Body) != want.row.body || rec.Final != want.row.final ||
					rec.Number != o.numbers[id]) {
					rt.Fatalf("record %s %s at %d: %+v, %v, want %+v", shape, id, when, rec, err, want)
				}
			}
		}
		o.compareWindow(rt, s, when)
	}
	o.compareWindow(rt, s, 0)
}

// compareWindow compares a window at a time; 0: now.
func (o *pastOracle) compareWindow(rt *rapid.T, s *suite, when int) {
	w := query.RangeScan{Source: o.source, Kind: "calls", Shape: rapid.SampledFrom(pastShapes).Draw(rt, "shape"),
		Parent: rapid.SampledFrom([]string{"", "", "P", "Q"}).Draw(rt, "parent"), NoClock: rapid.IntRange(0, 3).Draw(rt, "unclocked") == 0,
		NotFinal: rapid.Bool().Draw(rt, "open")}
	if !w.NoClock {
		w.From, w.To = rapid.SampledFrom([]int64{0, 0, 100, 150}).Draw(rt, "from"), rapid.SampledFrom([]int64{0, 0, 200, 201}).Draw(rt, "to")
	}
	moment, then := time.Time{}, 1<<60
	if when != 0 {
		moment, then = at(when), when
	}
	want := o.window(w, then)
	var got []string
	err := s.ScanRecordsAt(s.Context(), w, moment, func(rec *understudy.Record, clock int64) bool {
		if r := o.at(w.Shape, rec.ID, then); r == nil || r.row.body != string(rec.Body) || r.clock != clock {
			rt.Fatalf("record %s at %d: %s, clock %d", rec.ID, when, rec.Body, clock)
		}
		got = append(got, rec.ID)
		return true
	})
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		rt.Fatalf("records of %+v at %d: %v, %v, want %v", w, when, got, err, want)
	}
	if when != 0 {
		return
	}
	rows, err := s.ReadRows(s.Context(), w)
	got = nil
	for _, r := range rows {
		if c := o.at(w.Shape, r.ID, then); c == nil || c.clock != r.Clock || c.parent != r.Parent || c.row.final != r.Final ||
			o.numbers[r.ID] != r.Record {
			rt.Fatalf("row %+v, want %+v", r, c)
		}
		got = append(got, r.ID)
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		rt.Fatalf("rows of %+v: %v, %v, want %v", w, got, err, want)
	}
}

func (o *pastOracle) compareChanges(rt *rapid.T, s *suite) {
	all, err := s.ReadChanges(s.Context(), o.source, 0, store.MaxChanges)
	if err != nil {
		rt.Fatal(err)
	}
	var got []string
	for i, c := range all {
		word := c.Type.String() + " " + c.ID
		if c.Type == understudy.Changed {
			word += " " + strings.ReplaceAll(string(c.Fields), "\n", ",")
		}
		if got = append(got, word); c.N != int64(i+1) {
			rt.Fatalf("change %d has number %d", i+1, c.N)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(o.words) {
		rt.Fatalf("changes:\n got %v\nwant %v", got, o.words)
	}
}
