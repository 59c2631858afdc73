// Looking up one record by its id.

package search

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
)

// watched is a store that notes what it is asked and what it hands out.
type watched struct {
	Store
	mu    sync.Mutex
	asked []query.RecordQuery
	given []string
}

func (w *watched) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	w.mu.Lock()
	w.asked = append(w.asked, q)
	w.mu.Unlock()
	return w.Store.Seek(ctx, q, func(f query.Hit) bool {
		w.mu.Lock()
		w.given = append(w.given, f.Kind+"/"+f.ID)
		w.mu.Unlock()
		return yield(f)
	})
}

// watch is a searcher whose reading is noted.
func (r *rig) watch(change func(*Options)) (*Searcher, *watched) {
	r.Helper()
	w := &watched{Store: r.store}
	return r.with(func(o *Options) { o.Store = w; change(o) }), w
}

// aMessage is an old message's id.
func (r *rig) aMessage() string {
	r.Helper()
	names := r.all("all", query.SearchRequest{Text: "kind:messages"})
	return strings.TrimPrefix(names[len(names)-3], "messages/")
}

// M1: a search for an id that takes longer than it may is a part, not a nil
// pointer; what comes after it has the record.
func TestALookupThatTakesTooLong(t *testing.T) {
	r := newRig(t, true)
	id := r.aMessage()
	late := r.with(func(o *Options) { o.Limits.Time = time.Nanosecond })
	for _, text := range []string{id, `"` + id + `"`, "id:" + id} {
		out, err := late.Find(t.Context(), as("all"), query.SearchRequest{Text: text})
		if err != nil || !out.Partial || len(out.Hits) != 0 || out.Next == "" || len(out.Notes) != 1 {
			t.Fatalf("%s: %+v, %v", text, out, err)
		}
		out, err = r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: text, Cursor: out.Next})
		if err != nil || out.Partial || len(out.Hits) != 1 || out.Hits[0].ID != id {
			t.Errorf("%s, gone on: %+v, %v", text, out, err)
		}
	}
}

// M5: looking up an id costs one index read: only what has the id is read.
func TestAnIDIsLookedUpByName(t *testing.T) {
	r := newRig(t, true)
	id := r.aMessage()
	s, w := r.watch(func(*Options) {})
	for _, text := range []string{id, "id:" + id, "kind:messages id:" + id, "status:* id:" + id, "kind:messages id:" + id +
		",SM00000000000000000000000000000fff", "kind:calls OR " + id} {
		w.asked, w.given = nil, nil
		out, err := s.Find(t.Context(), as("all"), query.SearchRequest{Text: text, Limit: 1})
		if err != nil || !slices.ContainsFunc(out.Hits, func(h query.SearchHit) bool { return h.ID == id }) && !strings.Contains(text, "OR") {
			t.Errorf("%s: %+v, %v", text, out, err)
		}
		if len(w.given) > 5 {
			t.Errorf("%s: %d records were read: %v", text, len(w.given), w.given)
		}
		for _, q := range w.asked {
			if len(q.IDs) == 0 && len(q.Predicates) == 0 && q.Text == nil && !slices.Equal(q.Kinds, []string{"calls"}) {
				t.Errorf("%s: every record was looked at: %+v", text, q)
			}
		}
	}
	// Facets of it are of the one record, too.
	w.asked, w.given = nil, nil
	out, err := s.Find(t.Context(), as("all"), query.SearchRequest{Text: id, Facets: true})
	if err != nil || out.Total.N < 1 || len(w.given) > 6 {
		t.Errorf("counted: %+v, %v, %d read", out, err, len(w.given))
	}
}

// M5: one caller alone cannot take every place.
func TestSearchesOfOneCallerAtOnce(t *testing.T) {
	r := newRig(t, true)
	hold, begun := make(chan struct{}), make(chan struct{}, 2)
	s := r.with(func(o *Options) {
		o.Limits.AtOnce = 4
		o.Store = failing{o.Store, 0, func(context.Context) error { begun <- struct{}{}; <-hold; return nil }}
	})
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.Find(context.Background(), as("all"), query.SearchRequest{})
			done <- err
		}()
		<-begun
	}
	if _, err := s.Find(t.Context(), as("all"), query.SearchRequest{}); !errors.Is(err, understudy.ErrUnavailable) ||
		!strings.Contains(err.Error(), "of yours") {
		t.Errorf("a third of one caller: %v", err)
	}
	go func() {
		_, err := s.Find(context.Background(), as("open"), query.SearchRequest{})
		done <- err
	}()
	<-begun
	close(hold)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestDigitsAloneAreAWordWhereNoNumberIsSeen(t *testing.T) {
	r := newRig(t, true)
	for _, text := range []string{"4155550123", "1234567", "1234567890123456"} {
		out, err := r.s.Find(t.Context(), as("support"), query.SearchRequest{Text: text})
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if out.Meant.Number != "" {
			t.Errorf("%s means the number %s", text, out.Meant.Number)
		}
	}
	if out, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: "4155550123"}); err != nil || out.Meant.Number != "4155550123" {
		t.Errorf("who sees numbers means %q, %v", out.Meant.Number, err)
	}
}
