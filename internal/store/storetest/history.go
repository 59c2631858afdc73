// Any history: random pages, updates, removals and touches against a map that
// knows the rules in the simplest way.

package storetest

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy"
	"understudy/internal/store"
	"understudy/request"
)

// oracle keeps in plain form what a store must know.
type oracle struct {
	pages      map[string]*understudy.Page
	body       map[string]string // by shape and id: the current body
	present    map[string]bool   // by id
	here       map[string]bool   // by shape and id: seen there since it last came
	invalid    map[string]bool   // by shape and id
	generation int64
	words      []string
	now        time.Time
}

// anyHistory draws histories and compares after each step. Times only rise and
// no two steps are a race; races have a rule of their own.
func anyHistory(t *testing.T, s *suite) {
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		base := fmt.Sprintf("%d-", run)
		changed := s.kind("calls").Changes
		o := &oracle{pages: map[string]*understudy.Page{}, body: map[string]string{}, present: map[string]bool{}, here: map[string]bool{},
			invalid:    map[string]bool{},
			generation: s.kind("calls").Generation, now: at(run * 1_000_000)}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			o.now = o.now.Add(time.Duration(rapid.IntRange(1, 10_000).Draw(rt, "seconds")) * time.Second)
			switch rapid.SampledFrom([]string{"list", "list", "list", "instance", "gone", "touch"}).Draw(rt, "step") {
			case "list":
				o.list(rt, s, base)
			case "instance":
				r := drawRow(rt, base)
				p := instance(base+"/i/"+r.id, o.now, r)
				o.save(rt, s, p, []row{r})
			case "gone":
				r := drawRow(rt, base)
				p := gone(base+"/i/"+r.id, o.now, r.id, rapid.SampledFrom([]int{404, 410, 204}).Draw(rt, "status"))
				o.save(rt, s, p, nil)
			case "touch":
				o.touch(rt, s, base)
			}
		}
		o.compare(rt, s, base, changed)
	})
}

func drawRow(rt *rapid.T, base string) row {
	id := base + fmt.Sprint(rapid.IntRange(0, 8).Draw(rt, "id"))
	state := rapid.IntRange(0, 3).Draw(rt, "state")
	return row{id: id, body: fmt.Sprintf(`{"id": %q, "state": %d}`, id, state), final: state == 3}
}

func (o *oracle) list(rt *rapid.T, s *suite, base string) {
	var rows []row
	for range rapid.IntRange(0, 6).Draw(rt, "rows") {
		rows = append(rows, drawRow(rt, base))
	}
	p := list(fmt.Sprint(base, "/l/", rapid.IntRange(0, 3).Draw(rt, "list")), o.now, rows...)
	p.Shape = rapid.SampledFrom([]string{"calls", "calls", "brief"}).Draw(rt, "shape")
	o.save(rt, s, p, rows)
}

// save saves p in the store and in the oracle and compares what changed.
func (o *oracle) save(rt *rapid.T, s *suite, p *understudy.Page, rows []row) {
	p.Generation = o.generation
	saved, err := s.Save(s.Context(), p)
	if err != nil {
		rt.Fatalf("save %s: %v", p.Key, err)
	}
	var words []string
	if len(rows) == 0 && !p.List {
		if o.present[p.ID] {
			words = append(words, "went "+p.ID)
		}
		delete(o.present, p.ID)
		delete(o.here, "calls "+p.ID)
		delete(o.here, "brief "+p.ID)
	}
	last := map[string]row{}
	var order []string
	for _, r := range rows {
		if _, again := last[r.id]; !again {
			order = append(order, r.id)
		}
		last[r.id] = r
	}
	for _, id := range order {
		name := p.Shape + " " + id
		switch {
		case !o.present[id]:
			words = append(words, "came "+id)
		case o.body[name] != "" && o.body[name] != last[id].body:
			words = append(words, "changed "+id)
		}
		o.present[id], o.here[name], o.body[name] = true, true, last[id].body
		delete(o.invalid, name)
	}
	if p.Status != 204 {
		o.pages[p.Key.URI] = p
	}
	o.words = append(o.words, words...)
	var got []string
	for _, c := range saved.Changes {
		got = append(got, c.Type.String()+" "+c.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(words) {
		rt.Fatalf("save %s: changes %v, want %v", p.Key, got, words)
	}
}

func (o *oracle) touch(rt *rapid.T, s *suite, base string) {
	touch := request.Invalidation{Source: Source, Kind: "calls"}
	if rapid.Bool().Draw(rt, "one record") {
		touch.ID = drawRow(rt, base).id
		for _, shape := range []string{"calls", "brief"} {
			if o.body[shape+" "+touch.ID] != "" {
				o.invalid[shape+" "+touch.ID] = true
			}
		}
	}
	g, err := s.Touch(s.Context(), touch)
	if o.generation++; err != nil || g != o.generation {
		rt.Fatalf("touch: generation %d, want %d, %v", g, o.generation, err)
	}
}

// superseded reports whether a page must be superseded. It computes the rule once more, independently of the
// store.
func (o *oracle) superseded(p *understudy.Page) bool {
	if (p.List || len(p.Rows) == 0) && p.Generation < o.generation {
		return true
	}
	if len(p.Rows) == 0 && !p.List {
		return o.present[p.ID]
	}
	last := map[string]string{}
	for _, r := range p.Rows {
		last[r.ID] = string(p.Body[r.Start:r.End])
	}
	for id, body := range last {
		if name := p.Shape + " " + id; !o.here[name] || o.body[name] != body || o.invalid[name] {
			return true
		}
	}
	return false
}

func (o *oracle) compare(rt *rapid.T, s *suite, base string, changed int64) {
	for uri, p := range o.pages {
		got, err := s.ReadPage(s.Context(), key(uri))
		if err != nil {
			rt.Fatalf("page %s: %v", uri, err)
		}
		s.same(got, p)
		if want := o.superseded(p); got.Superseded != want {
			rt.Fatalf("page %s: superseded %v, want %v", uri, got.Superseded, want)
		}
	}
	for n := range 9 {
		for _, shape := range []string{"calls", "brief"} {
			id := base + fmt.Sprint(n)
			name := shape + " " + id
			rec, err := s.Record(s.Context(), Source, "calls", shape, id)
			if (err == nil) != o.here[name] {
				rt.Fatalf("record %s: %v, want it held: %v", name, err, o.here[name])
			}
			if err == nil && (string(rec.Body) != o.body[name] || rec.Invalidated != o.invalid[name]) {
				rt.Fatalf("record %s: %s invalid %v, want %s, %v", name, rec.Body, rec.Invalidated, o.body[name], o.invalid[name])
			}
		}
	}
	all, err := s.ReadChanges(s.Context(), Source, changed, store.MaxChanges)
	if err != nil {
		rt.Fatal(err)
	}
	var got []string
	for _, c := range all {
		got = append(got, c.Type.String()+" "+c.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(o.words) {
		rt.Fatalf("changes %v, want %v", got, o.words)
	}
}
