// Values that two processes keep in memory and change at once.

package kv_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// copied is a copy of the values under watch/ in the memory of a process.
type copied struct {
	values   map[string]string
	received int
}

// watch keeps a copy of the values of a store.
func watch(t *testing.T, d *store.DB) *copied {
	t.Helper()
	c := &copied{values: map[string]string{}}
	err := d.KV.Watch(t.Context(), "watch/", func(name string, value []byte) error {
		c.received++
		if c.values[name] = string(value); value == nil {
			delete(c.values, name)
		}
		return nil
	})
	checktest.MustNoError(t, err, "watch")
	return c
}

func (c *copied) mustHold(t *testing.T, want map[string]string, format string, args ...any) {
	t.Helper()
	if !maps.Equal(c.values, want) {
		t.Fatalf("%s: the copy is %v, want %v", fmt.Sprintf(format, args...), c.values, want)
	}
}

func set(t *testing.T, d *store.DB, name, value string) {
	t.Helper()
	checktest.MustNoError(t, d.KV.SetValue(t.Context(), name, []byte(value)), "set %s", name)
}

func refresh(t *testing.T, d *store.DB) {
	t.Helper()
	checktest.MustNoError(t, d.Refresh(t.Context()), "refresh")
}

func TestWatchedValuesFollowBothProcesses(t *testing.T) {
	a, b := storetest.OpenTwo(t)
	set(t, a, "watch/1", "one")
	set(t, a, "watcher", "of another package")
	atA, atB := watch(t, a), watch(t, b)
	want := map[string]string{"watch/1": "one"}
	atA.mustHold(t, want, "at first, at a")
	atB.mustHold(t, want, "at first, at b")

	set(t, a, "watch/2", "two")
	set(t, a, "watcher", "changed")
	set(t, b, "watch/1", "changed")
	want = map[string]string{"watch/1": "changed", "watch/2": "two"}
	atB.mustHold(t, want, "at b, whose own write has begun a transaction")
	refresh(t, a)
	atA.mustHold(t, want, "after the change of both, at a")
	checktest.Equal(t, atB.received, 3, "values that b received")

	found, err := b.KV.Delete(t.Context(), "watch/1")
	checktest.MustTrue(t, found && err == nil, "delete: %v, %v", found, err)
	found, err = a.KV.Delete(t.Context(), "watch/1")
	checktest.MustTrue(t, !found && err == nil, "delete again, in the other process: %v, %v", found, err)
	want = map[string]string{"watch/2": "two"}
	atA.mustHold(t, want, "after a deletion, at a")
	atB.mustHold(t, want, "after a deletion, at b")

	received := atB.received
	_, err = a.ReadLastChange(t.Context(), "twilio")
	checktest.MustNoError(t, err, "read")
	set(t, a, "watch/2", "two")
	refresh(t, b)
	checktest.Equal(t, atB.received, received, "values that b received although nothing changed")
	again := watch(t, a)
	set(t, b, "watch/3", "three")
	refresh(t, a)
	want = map[string]string{"watch/2": "two", "watch/3": "three"}
	atA.mustHold(t, want, "two watchers in one process, the first")
	again.mustHold(t, want, "two watchers in one process, the second")
}

func TestAtOnceNoChangeIsLost(t *testing.T) {
	a, b := storetest.OpenTwo(t)
	atA, atB := watch(t, a), watch(t, b)
	const each = 50
	increment := func(old []byte) ([]byte, error) {
		n, _ := strconv.Atoi(string(old))
		return strconv.AppendInt(nil, int64(n)+1, 10), nil
	}
	var wg sync.WaitGroup
	for _, d := range []*store.DB{a, b, a, b} {
		wg.Go(func() {
			for i := range each {
				change := d.KV.Change
				if i%3 == 1 {
					change = d.KV.ChangeDurably
				}
				if err := change(t.Context(), "watch/n", increment); err != nil {
					t.Error(err)
				}
				if err := d.KV.SetValue(t.Context(), fmt.Sprint("watch/", i), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	refresh(t, a)
	refresh(t, b)
	want := map[string]string{"watch/n": fmt.Sprint(4 * each)}
	atA.mustHold(t, want, "at a")
	atB.mustHold(t, want, "at b")
}

func TestQuietChangeIsNotReadByOthersAtOnce(t *testing.T) {
	a, b := storetest.OpenTwo(t)
	atA, atB := watch(t, a), watch(t, b)
	quietly := func(value string) {
		t.Helper()
		err := a.KV.ChangeQuietly(t.Context(), "watch/1", func([]byte) ([]byte, error) { return []byte(value), nil })
		checktest.MustNoError(t, err, "change quietly")
	}
	quietly("used at noon")
	refresh(t, b)
	atA.mustHold(t, map[string]string{"watch/1": "used at noon"}, "at a")
	atB.mustHold(t, map[string]string{}, "at b")
	err := b.KV.Change(t.Context(), "watch/1", func(old []byte) ([]byte, error) { return append(old, ", and later"...), nil })
	checktest.MustNoError(t, err, "change")
	quietly("used at one")
	set(t, a, "watch/2", "")
	refresh(t, b)
	want := map[string]string{"watch/1": "used at one", "watch/2": ""}
	atA.mustHold(t, want, "with the change of another value, at a")
	atB.mustHold(t, want, "with the change of another value, at b")
}

func TestChangeThatIsRefusedChangesNothing(t *testing.T) {
	a, b := storetest.OpenTwo(t)
	set(t, b, "watch/1", "one")
	atA := watch(t, a)
	odd := errors.New("odd")
	change := func(result []byte, refused error) error {
		return a.KV.Change(t.Context(), "watch/1", func(old []byte) ([]byte, error) {
			checktest.Equal(t, string(old), "one", "the present value")
			copy(old, "xxx")
			return result, refused
		})
	}
	if err := change([]byte("two"), odd); err != odd {
		t.Errorf("a change that is refused: %v", err)
	}
	if err := change(make([]byte, 64<<10+1), nil); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("a value that is too long: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := a.KV.Change(ctx, "watch/1", func([]byte) ([]byte, error) { cancel(); return []byte("two"), nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a change whose context ends: %v", err)
	}
	atA.mustHold(t, map[string]string{"watch/1": "one"}, "after refused changes")
	checktest.MustNoError(t, change(nil, nil), "a change to nothing")
	atA.mustHold(t, map[string]string{}, "after a deletion")
	checktest.NoError(t, a.KV.Change(t.Context(), "watch/1", func(old []byte) ([]byte, error) { return old, nil }), "nothing to nothing")
	if _, err := b.KV.Value(t.Context(), "watch/1"); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("the deleted value: %v", err)
	}
}

func TestWatchRefuses(t *testing.T) {
	a, b := storetest.OpenTwo(t)
	set(t, a, "watch/1", "odd")
	odd := errors.New("odd")
	put := func(name string, value []byte) error {
		if strings.HasPrefix(string(value), "odd") {
			return odd
		}
		return nil
	}
	if err := a.KV.Watch(t.Context(), "watch/", put); err != odd {
		t.Errorf("a value that cannot be read: %v", err)
	}
	for _, prefix := range []string{"", "watch", "watch/1", "walks/"} {
		if err := a.KV.Watch(t.Context(), prefix, put); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("watch %q: %v", prefix, err)
		}
	}
	set(t, a, "watch/1", "fine")
	checktest.MustNoError(t, a.KV.Watch(t.Context(), "watch/", put), "watch")
	set(t, b, "watch/1", "odd, by another process")
	refresh(t, a)
	checktest.MustNoError(t, a.Close(), "close")
	if err := a.KV.Watch(t.Context(), "watch/", put); !errors.Is(err, understudy.ErrClosed) {
		t.Errorf("watch after the end: %v", err)
	}
	if err := a.Refresh(t.Context()); !errors.Is(err, understudy.ErrClosed) {
		t.Errorf("refresh after the end: %v", err)
	}
}
