package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/fleet"
	"understudy/internal/store/nodes"
	"understudy/request"
)

// notes are the notes of writes, of one node or of several.
type notes struct {
	understudy.KV
	mu     sync.Mutex
	values map[string][]byte
	err    error
}

func (k *notes) SetValue(_ context.Context, name string, value []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.values[name] = value
	}
	return k.err
}

// read returns the writes in the note of a node.
func (k *notes) read(t *testing.T, id string) (all []request.Invalidation) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if note := k.values[nodes.KVName(id)]; note != nil {
		checktest.MustNoError(t, json.Unmarshal(note, &all), "note %s", note)
	}
	return all
}

func (k *notes) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
}

var calls = request.Invalidation{Source: "s", Kind: "calls", ID: "1"}

// openNoting returns a running membership that notes its writes, and a function that ends it.
func openNoting(t *testing.T, o fleet.Options) (f *fleet.Fleet, k *notes, end func()) {
	t.Helper()
	k = &notes{values: map[string][]byte{}}
	o.Node, o.KV, o.Refresh = nodes.Node{ID: "a"}, k, func(context.Context) error { return nil }
	if o.Table == nil {
		o.Table = &fakeTable{}
	}
	f = fleet.New(o)
	checktest.MustNoError(t, f.Join(t.Context(), ""), "join")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	return f, k, func() {
		cancel()
		checktest.NoError(t, <-done, "run")
	}
}

// TestWritesAreNotedUntilTheyEnd: the note has a write before it is sent, and no longer soon after its end.
func TestWritesAreNotedUntilTheyEnd(t *testing.T) {
	f, k, end := openNoting(t, fleet.Options{})
	n, err := f.Begin(calls)
	checktest.MustNoError(t, err, "begin")
	other, err := f.Begin(request.Invalidation{Source: "s", Kind: "messages"})
	checktest.MustNoError(t, err, "begin another")
	checktest.Equal(t, len(k.read(t, "a")), 2, "writes in the note")
	f.End(n)
	f.End(other)
	k.fail(errors.New("away"))
	_, err = f.Begin(calls)
	checktest.True(t, errors.Is(err, understudy.ErrDatabaseAway), "without the database a write begins with %v", err)
	k.fail(nil)
	end()
	checktest.Equal(t, len(k.read(t, "a")), 0, "writes in the note afterwards")
}

// TestLeaseIsGivenUpForWritesThatTheStoreDoesNotKnow: an answered write that the store could not be told ends the lease until
// the store knows it. The caller waits for that, or for two leases and the pause between two rechecks.
func TestLeaseIsGivenUpForWritesThatTheStoreDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f *fleet.Fleet
		var known atomic.Int64 // the number of the write that Flush can tell the store
		var renewals atomic.Int64
		f, _, stop := openNoting(t, fleet.Options{Flush: func(context.Context) { f.End(known.Load()) },
			News: func() { renewals.Add(1) }})
		defer stop()
		n, err := f.Begin(calls)
		checktest.MustNoError(t, err, "begin")
		began, before := time.Now(), renewals.Load()
		f.AwaitRecheck([]int64{n})
		took := time.Since(began)
		checktest.True(t, 5*time.Second <= took && took < 6*time.Second, "it waits %v, want two leases and the interval of rechecks", took)
		checktest.Equal(t, renewals.Load(), before, "renewals of the lease")
		known.Store(n)
		time.Sleep(time.Second)
		checktest.True(t, renewals.Load() > before, "the lease is not renewed after the store knows the write")
		n, err = f.Begin(calls)
		checktest.MustNoError(t, err, "begin again")
		began = time.Now()
		time.AfterFunc(time.Second, func() { f.End(n) })
		f.AwaitRecheck([]int64{n})
		took = time.Since(began)
		checktest.True(t, took < 1100*time.Millisecond, "it waits %v after a write that ended after 1 s", took)
	})
}

// TestWritesOfLostNodesAreRechecked: the writes of a node without a lease are rechecked, and for the last time after a minute.
func TestWritesOfLostNodesAreRechecked(t *testing.T) {
	note, err := json.Marshal([]request.Invalidation{calls})
	checktest.MustNoError(t, err, "note")
	var rechecked []request.Invalidation
	table := &fakeTable{}
	o := fleet.Options{Table: table, Recheck: func(t request.Invalidation) { rechecked = append(rechecked, t) }}
	for name, c := range map[string]struct {
		node      nodes.Node
		rechecked []request.Invalidation
		deleted   bool
	}{
		"alive":        {nodes.Node{ID: "b", Left: time.Millisecond, Note: note}, nil, false},
		"itself":       {nodes.Node{ID: "a", Left: 0, Note: note}, nil, false},
		"lost":         {nodes.Node{ID: "b", Left: 0, Note: note}, []request.Invalidation{calls}, false},
		"without note": {nodes.Node{ID: "b", Left: 0}, nil, false},
		"long lost":    {nodes.Node{ID: "b", Left: -61 * time.Second, Note: note}, []request.Invalidation{calls}, true},
	} {
		t.Run(name, func(t *testing.T) {
			rechecked = nil
			table.set([]nodes.Node{c.node}, nil)
			k := &notes{values: map[string][]byte{nodes.KVName("b"): note}}
			o.Node, o.KV, o.Refresh = nodes.Node{ID: "a"}, k, func(context.Context) error { return nil }
			checktest.MustNoError(t, fleet.New(o).Join(t.Context(), ""), "join")
			checktest.True(t, slices.Equal(rechecked, c.rechecked), "rechecked: %v, want %v", rechecked, c.rechecked)
			checktest.Equal(t, len(k.read(t, "b")) == 0, c.deleted, "whether the note is deleted")
		})
	}
}
