package acme

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/fleet"
	"understudy/internal/store"
	"understudy/internal/store/nodes"
	"understudy/internal/store/storetest"
)

func newStorage(t *testing.T, kv understudy.KV, key byte, claims Claims) *Storage {
	t.Helper()
	s, err := NewStorage(kv, bytes.Repeat([]byte{key}, 32), claims)
	checktest.MustNoError(t, err, "storage")
	return s
}

// Values are found by every process with the same key, below their folder, until they are deleted.
func TestStorage(t *testing.T) {
	t.Parallel()
	for engine, path := range map[string]func(testing.TB) string{"SQLite": storetest.File, "PostgreSQL": storetest.Database} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			ctx, at := t.Context(), path(t)
			kv := storetest.OpenAt(t, at).KV
			a, b := newStorage(t, kv, 1, nil), newStorage(t, storetest.OpenAt(t, at).KV, 1, nil)
			values := map[string]string{"x/one/key": "private", "x/one/cert": "public", "x/two": "", "xy": "other"}
			for key, value := range values {
				checktest.MustNoError(t, a.Store(ctx, key, []byte(value)), "store %s", key)
			}
			checktest.NoError(t, a.Store(ctx, "xy", []byte("another")), "store again")
			values["xy"] = "another"
			for key, value := range values {
				got, err := b.Load(ctx, key)
				checktest.NoError(t, err, "load %s", key)
				checktest.Equal(t, string(got), value, "value of %s", key)
				info, err := b.Stat(ctx, key)
				checktest.NoError(t, err, "stat %s", key)
				checktest.True(t, info.IsTerminal, "%s is a folder", key)
			}
			list := func(path string, recursive bool) string {
				all, err := b.List(ctx, path, recursive)
				checktest.NoError(t, err, "list %s", path)
				return strings.Join(all, " ")
			}
			checktest.Equal(t, list("x", true), "x/one/cert x/one/key x/two", "all below x")
			checktest.Equal(t, list("x", false), "x/one x/two", "in x")
			checktest.Equal(t, list("nothing", true), "", "below nothing")
			checktest.True(t, b.Exists(ctx, "x/two") && !b.Exists(ctx, "x/one"), "the folder exists as a value, or a value does not")

			checktest.NoError(t, b.Delete(ctx, "x"), "delete")
			checktest.NoError(t, b.Delete(ctx, "x"), "delete again")
			checktest.Equal(t, list("x", true), "", "after the deletion: all below x")
			_, err := a.Load(ctx, "x/one/key")
			checktest.True(t, errors.Is(err, fs.ErrNotExist), "load a deleted value: %v", err)
			_, err = a.Stat(ctx, "x/one/key")
			checktest.True(t, errors.Is(err, fs.ErrNotExist), "stat of a deleted value: %v", err)
			checktest.True(t, a.Exists(ctx, "xy"), "xy was deleted with x")
		})
	}
}

// The database reveals no key. A value of another key, or a damaged one, does not exist, so that it is replaced.
func TestValuesAreEncrypted(t *testing.T) {
	ctx, kv := t.Context(), storetest.Open(t, store.Options{}).KV
	s := newStorage(t, kv, 1, nil)
	for key, value := range map[string]string{"a.key": "-----BEGIN PRIVATE KEY-----", "b.key": "-----BEGIN OTHER KEY-----"} {
		checktest.MustNoError(t, s.Store(ctx, key, []byte(value)), "store")
	}
	all, err := kv.ReadValues(ctx, "")
	checktest.MustNoError(t, err, "read")
	for name, value := range all {
		checktest.True(t, !bytes.Contains(value, []byte("BEGIN")), "%s is stored as %s", name, value)
	}
	_, err = newStorage(t, kv, 2, nil).Load(ctx, "a.key")
	checktest.True(t, errors.Is(err, fs.ErrNotExist), "with another key: %v", err)
	for what, wrong := range map[string][]byte{"a damaged value": append(all[prefix+"a.key"][:20], all[prefix+"b.key"][20:]...),
		"a cut one": all[prefix+"b.key"][:20], "none": {}} {
		checktest.MustNoError(t, kv.SetValue(ctx, prefix+"a.key", wrong), "set")
		got, err := s.Load(ctx, "a.key")
		checktest.True(t, errors.Is(err, fs.ErrNotExist) && got == nil, "%s is read as %q", what, got)
	}
}

// join adds a process to those on a database. It renews its lease only if run is true.
func join(t *testing.T, path, id string, run bool) *Storage {
	t.Helper()
	db := storetest.OpenAt(t, path)
	f := fleet.New(fleet.Options{Table: db.Nodes, Refresh: db.Refresh,
		Node: nodes.Node{ID: id, Version: "v", Settings: fleet.NewSettings(nil)}})
	checktest.MustNoError(t, f.Join(t.Context(), ""), "join")
	if run {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			checktest.NoError(t, <-done, "run")
		})
	}
	return newStorage(t, db.KV, 1, f)
}

// One caller of all processes has a lock. The lock of a killed process ends with its lease.
func TestLocksAmongProcesses(t *testing.T) {
	t.Parallel()
	for engine, path := range map[string]func(testing.TB) string{"SQLite": storetest.File, "PostgreSQL": storetest.Database} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			at := path(t)
			killed := join(t, at, "killed", false)
			checktest.MustNoError(t, killed.Lock(t.Context(), "example.com"), "lock")
			checktest.MustNoError(t, killed.Lock(t.Context(), "example.org"), "another lock")
			locked := time.Now()
			var all sync.WaitGroup
			var inside, entered atomic.Int32
			for _, s := range []*Storage{join(t, at, "a", true), join(t, at, "b", true)} {
				for range 2 {
					all.Go(func() {
						checktest.NoError(t, s.Lock(t.Context(), "example.com"), "lock")
						checktest.Equal(t, inside.Add(1), 1, "callers that have the lock")
						entered.Add(1)
						inside.Add(-1)
						checktest.NoError(t, s.Unlock(t.Context(), "example.com"), "unlock")
					})
				}
			}
			all.Wait()
			checktest.Equal(t, entered.Load(), 4, "callers that got the lock")
			if waited := time.Since(locked); waited < nodes.Lease/2 {
				t.Errorf("the lock of a live process was taken after %v", waited)
			}
		})
	}
}

// Without other processes a lock is held in this process. Whoever waits for it leaves with its context.
func TestLockOfOneProcess(t *testing.T) {
	s := newStorage(t, storetest.Open(t, store.Options{}).KV, 1, nil)
	checktest.MustNoError(t, s.Lock(t.Context(), "a"), "lock")
	checktest.NoError(t, s.Lock(t.Context(), "b"), "another lock")
	ctx, cancel := context.WithTimeout(t.Context(), lockPause/10)
	defer cancel()
	checktest.True(t, errors.Is(s.Lock(ctx, "a"), context.DeadlineExceeded), "a lock was given twice")
	checktest.NoError(t, s.Unlock(t.Context(), "a"), "unlock")
	checktest.NoError(t, s.Lock(t.Context(), "a"), "lock again")
	checktest.NoError(t, errors.Join(s.Unlock(t.Context(), "a"), s.Unlock(t.Context(), "b")), "unlock")
}
