// Two processes on one database.

package crawl

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/spec"
)

func (w *world) Watch(context.Context, string, func(string, []byte) error) error { return nil }

// two returns two crawlers of one source, whose states are in one database.
func two(t *testing.T, w *world) (stores [2]*store.DB, both [2]*Crawler) {
	t.Helper()
	path := storetest.File(t)
	for i := range both {
		stores[i] = storetest.OpenAt(t, path)
		x, err := New(Options{Sources: []*spec.Source{w.src}, Mirror: w, Store: w, KV: stores[i].KV, Jobs: w})
		checktest.MustNoError(t, err, "new")
		checktest.MustNoError(t, x.Load(t.Context(), nil), "load")
		both[i] = x
	}
	return stores, both
}

func TestStateIsFollowedByOtherProcesses(t *testing.T) {
	w := newWorld(t)
	w.things["letters"] = letters(20, time.Hour, time.Now())
	stores, both := two(t, w)
	a, b := both[0], both[1]
	covers := func(want bool, situation string) {
		t.Helper()
		checktest.MustNoError(t, stores[1].Refresh(t.Context()), "refresh")
		_, ok := b.Coverage("post", "letters", "", "", 0, 0)
		checktest.Equal(t, ok, want, "%s: whether the other process has all records", situation)
	}
	checktest.MustNoError(t, a.Keep(t.Context(), "post", "letters"), "keep")
	covers(false, "before the sync")
	w.polls = nil
	checktest.MustNoError(t, b.look(t.Context()), "look")
	checktest.Equal(t, len(w.polls), 1, "lists that the other process polls")
	again := slices.Clone(w.jobs)
	checktest.MustNoError(t, w.work(t.Context(), a), "sync")
	covers(true, "after the sync")

	w.take()
	w.jobs = again // the other process has added the job in the moment in which the first one finished it
	checktest.MustNoError(t, w.work(t.Context(), b), "sync again")
	checktest.Equal(t, len(w.take()), 0, "requests of a sync that another process has finished")

	checktest.MustNoError(t, a.NoteLost(t.Context(), "post", "letters"), "lose")
	covers(false, "after records were deleted")
	checktest.MustNoError(t, b.Drop(t.Context(), "post", "letters"), "drop")
	checktest.MustNoError(t, stores[0].Refresh(t.Context()), "refresh")
	s, err := a.ReadState(t.Context(), "post", "letters")
	checktest.NoError(t, err, "read")
	checktest.Equal(t, s.Kept, false, "whether the kind is kept complete after the other process ceased to")
}

// TestFormerProcessUndoesNothing: a process that was paused and does not know what others wrote meanwhile adds to it.
func TestFormerProcessUndoesNothing(t *testing.T) {
	w := newWorld(t)
	stores, both := two(t, w)
	const each = 20
	var all sync.WaitGroup
	for i, x := range both {
		all.Go(func() {
			for n := range each {
				from := int64(10 * (2*n + i))
				err := x.states.change(t.Context(), x.walks["post/letters"], func(m *kindState) { m.Spans = m.Spans.add(from, from+10, 7) })
				checktest.NoError(t, err, "change")
			}
		})
	}
	all.Wait()
	for i, x := range both {
		checktest.MustNoError(t, stores[i].Refresh(t.Context()), "refresh")
		m, err := x.states.read(t.Context(), x.walks["post/letters"])
		checktest.MustNoError(t, err, "read")
		checktest.True(t, m.Spans.hasAll(0, 20*each, 7), "process %d knows of the walked ranges only %v", i, m.Spans)
	}
}

func TestErasedStateIsWalkedAgain(t *testing.T) {
	w := newWorld(t)
	w.things["letters"] = letters(20, time.Hour, time.Now())
	stores, both := two(t, w)
	checktest.MustNoError(t, both[0].Keep(t.Context(), "post", "letters"), "keep")
	checktest.MustNoError(t, w.work(t.Context(), both[0]), "sync")
	checktest.MustNoError(t, stores[1].KV.SetValue(t.Context(), kvPrefix+"post/letters", nil), "erase")
	checktest.MustNoError(t, stores[0].Refresh(t.Context()), "refresh")
	incomplete(t, both[0], "letters", "first sync")
	checktest.MustNoError(t, both[0].enqueueDue(t.Context()), "enqueue")
	checktest.MustNoError(t, w.work(t.Context(), both[0]), "sync again")
	complete(t, both[0], "letters")
}
