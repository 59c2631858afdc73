// Sixteen writers at once on SQLite and on PostgreSQL: each finds its own records alike on both, and afterwards every list
// and every search is what the bodies say.

package store_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/storetest"
	"understudy/kit/tokenizer"
	"understudy/request"
)

// writers is how many write at the same time.
const writers = 16

// writer is one of many writers. Its records are sent to an address of its own, and have times that no other record has.
type writer struct {
	number int
	steps  int64 // each is a second after the one before; the clock of the stores stands still
}

func (w *writer) word() string    { return fmt.Sprintf("w%02d", w.number) }
func (w *writer) address() string { return "client:" + w.word() }

// own makes a new record the writer's. n is how many records it had.
func (w *writer) own(x *thing, n int) {
	x.id = fmt.Sprintf("%s%032x", strings.ToUpper(x.kind[:2]), n*writers+w.number)
	x.created = storetest.Epoch.Unix() - 86_400 + int64((n*7919%5000)*writers+w.number)
	x.clock = x.created
}

// endingTB ends the goroutine that fails. A testing.T may end only the goroutine of its test.
type endingTB struct{ testing.TB }

func (e endingTB) Fatalf(format string, args ...any) {
	e.Errorf(format, args...)
	runtime.Goexit()
}

// TestEnginesAnswerTheSameUnderWriters lets 16 writers make random calls to both stores. After each call the writer asks
// both for a list and for a search of its own records.
func TestEnginesAnswerTheSameUnderWriters(t *testing.T) {
	seed := sample.Seed(t)
	asked := 0
	for round := range sample.Count(1, 5) {
		steps := sample.Count(3, 25)
		t.Run(fmt.Sprint("round-", round), func(t *testing.T) { compareWriters(t, seed+uint64(round), steps) })
		asked += writers * steps
	}
	t.Logf("%d lists and %d searches of %d writers", asked, asked, writers)
}

// compareWriters lets the writers make so many steps each, and then compares the whole stores.
func compareWriters(t *testing.T, seed uint64, steps int) {
	e := newEngines(t, rand.New(rand.NewPCG(seed, 0)), 1+seed%2)
	all := make([]*engines, writers)
	for i := range all {
		all[i] = &engines{t: endingTB{t}, rng: rand.New(rand.NewPCG(seed, uint64(i+1))), all: e.all, now: e.now,
			vocabulary: e.vocabulary, shapes: e.shapes, changes: map[string]int64{}, writer: &writer{number: i}}
	}
	var running sync.WaitGroup
	for _, w := range all {
		running.Go(func() {
			for range steps {
				w.stepOwn()
				w.compareOwn(nil)
				w.compareOwn(w.drawText(w.rng.IntN(3)))
			}
		})
	}
	running.Wait()
	if t.Failed() {
		return
	}
	e.compareFeeds()
	e.each("erase what is listed", func(s engine) error { _, err := s.EraseListed(t.Context(), erase.Job{}); return err })
	e.compareFeeds()
	for _, w := range all {
		w.compareOwn(nil)
	}
	for range 4 * steps {
		e.compareWithScan()
	}
	for _, s := range e.all {
		if r, err := s.Verify(t.Context()); err != nil || len(r.Problems) > 0 {
			t.Errorf("verify: %q, %v", r.Problems, err)
		}
	}
}

// each calls do with both stores.
func (e *engines) each(what string, do func(s engine) error) {
	for _, s := range e.all {
		if err := do(s); err != nil {
			e.t.Fatalf("%s: %v", what, err)
		}
	}
}

// stepOwn changes some of the writer's own records in both stores.
func (e *engines) stepOwn() {
	e.writer.steps++
	ctx, of := e.t.Context(), thingKinds[e.rng.IntN(3)] // calls and messages
	what := e.rng.IntN(10)
	if len(e.things) == 0 {
		what = -1 // a save: a source without records can't be asked to erase any
	}
	x := e.drawThing(of.source, of.kind)
	switch what {
	default:
		p := e.drawList(of.source, of.kind, of.path)
		p.Key.URI += "&To=" + e.writer.address()
		e.each("save", func(s engine) error { _, err := s.Save(ctx, p); return err })
	case 0, 1, 2:
		p := e.drawInstance(x)
		e.each("save", func(s engine) error { _, err := s.Save(ctx, p); return err })
	case 3:
		x.deleted = true
		p := e.newPage(x.source, x.kind, "/gone/"+x.id)
		p.ID, p.Status = x.id, 404
		e.each("save", func(s engine) error { _, err := s.Save(ctx, p); return err })
	case 4:
		e.each("touch", func(s engine) error {
			_, err := s.Touch(ctx, request.Invalidation{Source: x.source, Kind: x.kind, ID: x.id})
			return err
		})
	case 5:
		x.deleted = true
		e.each("forget", func(s engine) error { _, _, err := s.ForgetRecord(ctx, x.source, x.kind, x.id); return err })
	case 6:
		x.deleted = true
		e.each("erase", func(s engine) error { _, _, err := s.EraseNumber(ctx, x.source, x.kind+"/"+x.id); return err })
	case 7:
		e.each("erase what is listed", func(s engine) error { _, err := s.EraseListed(ctx, erase.Job{}); return err })
	}
}

// compareOwn asks both stores for a list of the writer's records, or for a search of them. Numbers are left out, because
// they follow from the order in which the writers had their turns.
func (e *engines) compareOwn(text *query.Text) {
	q := query.RecordQuery{Source: "twilio", OldestFirst: e.rng.IntN(2) == 0, Limit: e.rng.IntN(2) * (1 + e.rng.IntN(9)),
		ExpectedRows: e.rng.IntN(30), ConstantEffort: e.rng.IntN(4) == 0}
	if e.rng.IntN(3) > 0 {
		q.Kinds = []string{pick(e.rng, []string{"calls", "messages"})}
	}
	if text == nil {
		q.Predicates = []query.Predicate{{Field: "to", Any: []string{e.writer.address()}}}
		if e.rng.IntN(2) == 0 {
			q.Predicates = append(q.Predicates, e.drawPredicate())
		}
	} else {
		q.Text = &query.Text{Op: query.TextAnd, Parts: []*query.Text{{Words: []string{e.writer.word()}}, text}}
		if e.rng.IntN(3) == 0 {
			q.Text = q.Text.Parts[0]
		}
	}
	e.compare(fmt.Sprintf("seek %+v, text %s", q, showText(q.Text)), func(s engine) (string, error) {
		var b strings.Builder
		err := s.Seek(e.t.Context(), q, func(h query.Hit) bool {
			r := *h.Record
			r.Number, r.Version = 0, 0
			fmt.Fprintf(&b, "%s clock %d\n", showRecord(&r), h.Clock)
			return true
		})
		if err != nil {
			return "", err
		}
		n, err := s.Count(e.t.Context(), q, 0, time.Time{})
		return fmt.Sprintf("%scount %+v", &b, n), err
	})
}

// compareFeeds compares what the changes say of each record. In each store their numbers have no gaps.
func (e *engines) compareFeeds() {
	e.compare("changes", func(s engine) (string, error) {
		all, err := s.ReadChanges(e.t.Context(), "twilio", 0, store.MaxChanges)
		if err != nil {
			return "", err
		}
		for i, c := range all {
			if c.N != int64(i+1) {
				return "", fmt.Errorf("change %d has number %d", i+1, c.N)
			}
			all[i].N, all[i].Record, all[i].Version = 0, 0, 0
		}
		slices.SortStableFunc(all, func(a, b understudy.Change) int { return cmp.Compare(a.Kind+a.ID, b.Kind+b.ID) })
		return fmt.Sprintf("%#v", all), nil
	})
}

// compareWithScan compares a list and a search of each store with the bodies of all its records.
func (e *engines) compareWithScan() {
	kind := pick(e.rng, []string{"calls", "messages"})
	all := query.RecordQuery{Source: "twilio", Kinds: []string{kind}, Shape: pick(e.rng, []string{kind, kind, "brief"}),
		OldestFirst: e.rng.IntN(2) == 0}
	list, search, text := all, all, e.drawText(e.rng.IntN(3))
	list.Predicates, search.Text = []query.Predicate{e.drawPredicate()}, text
	if list.Check() != nil {
		list.Predicates = nil // of the empty text
	}
	matcher := list.Matcher(storetest.Specs(e.t)["twilio"].Kind(kind))
	holds := storetest.Condition(text, kind)
	for _, s := range e.all {
		seek := func(q query.RecordQuery) (found []string, bodies [][]byte) {
			err := s.Seek(e.t.Context(), q, func(h query.Hit) bool {
				found, bodies = append(found, fmt.Sprint(h.Record.ID, h.Order)), append(bodies, h.Record.Body)
				return true
			})
			if err != nil {
				e.t.Fatalf("seek %+v: %v", q, err)
			}
			return found, bodies
		}
		var listed, searched []string
		found, bodies := seek(all)
		for i, body := range bodies {
			if matcher.Match(body) {
				listed = append(listed, found[i])
			}
			if holds.Match(slices.Values(textFields(e.t, body))) {
				searched = append(searched, found[i])
			}
		}
		if got, _ := seek(list); !slices.Equal(got, listed) {
			e.t.Errorf("list %+v:\n got %q\nwant %q", list, got, listed)
		}
		if got, _ := seek(search); !slices.Equal(got, searched) {
			e.t.Errorf("search %s in %s:\n got %q\nwant %q", showText(text), kind, got, searched)
		}
	}
}

// textFields returns the fields of a body that are searched by words.
func textFields(t testing.TB, body []byte) (fields []tokenizer.Field) {
	var members map[string]any
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("body %q: %v", body, err)
	}
	for _, name := range []string{"body", "status", "direction", "error_message", "caller_name", "from", "to", "unheard"} {
		switch v := members[name].(type) {
		case string:
			fields = append(fields, tokenizer.Field{Name: name, Text: v})
		case float64:
			fields = append(fields, tokenizer.Field{Name: name, Text: fmt.Sprint(v)})
		case map[string]any:
			fields = append(fields, tokenizer.Field{Name: name, Text: v["a"].(string)})
		}
	}
	return fields
}
