// Tokens: walks by them while records arrive and go, whatever the order of
// events.

package compose_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/mirror/compose"
	"understudy/mirror/compose/composetest"
	"understudy/spec"
	"understudy/upstream"
)

// desk is a list as upstream has it, and a store that is told of it.
type desk struct {
	t     *rapid.T
	src   *spec.Source
	store *store.DB
	order []string // every id there ever was, newest first
	gone  map[string]bool
	clock time.Time // of the newest
	ticks int
}

func newDesk(t *rapid.T, path string, sp *spec.Spec) *desk {
	s := &desk{t: t, gone: map[string]bool{}, clock: epoch, src: &spec.Source{Name: "twilio", Spec: sp, User: account,
		PublicURL: "http://slow.test"}}
	db, err := store.Open(t.Context(), store.Options{Path: path, Specs: map[string]*spec.Spec{"twilio": sp},
		Now: func() time.Time { s.ticks++; return epoch.Add(time.Duration(s.ticks) * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	s.store = db
	return s
}

// arrive lets calls begin, some in the same second, and a page of the list show
// them with some that were there before.
func (s *desk) arrive(n, known int) {
	times := map[string]time.Time{}
	for range n {
		s.clock = s.clock.Add(time.Duration(rapid.IntRange(0, 2).Draw(s.t, "seconds")) * time.Second)
		id := fmt.Sprintf("CA%032x", len(s.order))
		times[id] = s.clock
		s.order = slices.Insert(s.order, 0, id)
	}
	var rows []understudy.Row
	body := []byte(`{"calls":[`)
	for _, id := range s.order {
		clock, fresh := times[id]
		if s.gone[id] || !fresh && known == 0 {
			continue
		}
		if !fresh {
			known--
			rec, err := s.store.Record(s.t.Context(), "twilio", "calls", "calls", id)
			if err != nil {
				s.t.Fatal(err)
			}
			if clock, err = time.Parse(time.RFC1123Z, composetest.Text(rec.Body, "start_time")); err != nil {
				s.t.Fatal(err)
			}
		}
		start := len(body)
		body = fmt.Appendf(body, `{"sid":%q,"account_sid":%q,"start_time":%q,"status":"completed"}`, id, account,
			clock.UTC().Format(time.RFC1123Z))
		rows = append(rows, understudy.Row{ID: id, Start: start, End: len(body), Clock: clock.Unix()})
		body = append(body, ',')
	}
	body = append(body[:len(body)-1], "]}"...)
	s.save(&understudy.Page{Key: understudy.Key{Source: "twilio", URI: root + "/Calls.json"}, Kind: "calls", Shape: "calls", List: true,
		Status: 200, ContentType: "application/json", Body: body, Rows: rows})
}

// remove lets a record go.
func (s *desk) remove(id string) {
	s.gone[id] = true
	s.save(&understudy.Page{Key: understudy.Key{Source: "twilio", URI: root + "/Calls/" + id + ".json"}, Kind: "calls", Shape: "calls", ID: id,
		Status: 404, ContentType: "application/json", Body: []byte("{}")})
}

func (s *desk) save(p *understudy.Page) {
	p.At = epoch.Add(time.Duration(s.ticks) * time.Hour)
	if _, err := s.store.Save(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
}

// page is what a link leads to: ids and the next link.
func (s *desk) page(target string) (ids []string, next, previous string) {
	aim, err := s.src.Spec.ResolveLink("twilio", target)
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := compose.New(s.src, aim, compose.Options{Now: func() time.Time { return s.clock }})
	if err == nil {
		err = l.Fill(s.t.Context(), s.store)
	}
	if err != nil {
		s.t.Fatalf("%s: %v", target, err)
	}
	p, err := l.BuildPage(s.clock)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, row := range p.Rows {
		ids = append(ids, row.ID)
	}
	return ids, composetest.Text(p.Body, "next_page_uri"), composetest.Text(p.Body, "previous_page_uri")
}

// after are the records present now that come after one, all for "".
func (s *desk) after(id string) (ids []string) {
	for _, other := range s.order[slices.Index(s.order, id)+1:] {
		if !s.gone[other] {
			ids = append(ids, other)
		}
	}
	return ids
}

// A walk shows, page by page, the records that come after the last one it
// showed and are there then, and ends where there is none: nothing twice and
// nothing left out, whatever arrives or goes meanwhile, also the very record the
// token names. A link asked for again is answered again.
func TestTokensOfAWalk(t *testing.T) {
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	storetest.FewerChecks(t, 4)
	outer, path := t, storetest.File(t)
	rapid.Check(t, func(t *rapid.T) {
		storetest.Renew(outer, path)
		s := newDesk(t, path, sp)
		defer s.store.Close()
		s.arrive(rapid.IntRange(1, 30).Draw(t, "calls"), 0)
		size := rapid.IntRange(1, 6).Draw(t, "size")
		target, last, seen := fmt.Sprintf("%s/Calls.json?PageSize=%d", root, size), "", map[string]bool{}
		for target != "" {
			want := s.after(last)
			ids, next, previous := s.page(target)
			if !slices.Equal(ids, want[:min(size, len(want))]) || (next != "") != (len(want) > size) {
				t.Fatalf("after %q: %v and next %q, want %d of %v", last, ids, next, size, want)
			}
			for _, id := range ids {
				if seen[id] {
					t.Fatalf("%s twice", id)
				}
				seen[id], last = true, id
			}
			if again, _, _ := s.page(target); !slices.Equal(again, ids) {
				t.Fatalf("%s: %v, then %v", target, ids, again)
			}
			if len(seen) > len(ids) && len(ids) > 0 {
				s.goesBack(previous, ids[0], size)
			}
			for range rapid.IntRange(0, 3).Draw(t, "events") {
				s.event(last)
			}
			target = next
		}
	})
}

// goesBack checks the page before one that begins with a record.
func (s *desk) goesBack(previous, first string, size int) {
	var before []string
	for _, id := range s.order[:slices.Index(s.order, first)] {
		if !s.gone[id] {
			before = append(before, id)
		}
	}
	if len(before) == 0 {
		return
	}
	if ids, _, _ := s.page(previous); !slices.Equal(ids, before[max(0, len(before)-size):]) {
		s.t.Fatalf("before %s: %v, want the last %d of %v", first, ids, size, before)
	}
}

// event is an arrival or the end of a record, perhaps the last one shown.
func (s *desk) event(last string) {
	present := s.after("")
	switch kind := rapid.IntRange(0, 3).Draw(s.t, "event"); {
	case kind < 2 || len(present) == 0:
		s.arrive(rapid.IntRange(1, 3).Draw(s.t, "new"), rapid.IntRange(0, 5).Draw(s.t, "known"))
	case kind == 2 && last != "" && !s.gone[last]:
		s.remove(last)
	default:
		s.remove(rapid.SampledFrom(present).Draw(s.t, "gone"))
	}
}
