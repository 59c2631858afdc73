// This file keeps the copies of values in memory equal to the values in the database.
//
// A process that keeps values in memory calls Watch. From then on its memory receives every committed change of those
// values, whichever process makes it. A change of another process arrives at the beginning of the next transaction.

package kv

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"
	"hash/maphash"
	"math"
	"strings"

	"understudy"
	"understudy/internal/store/db"
)

// watchable are the prefixes of the names of values that can be watched, each with its topic.
var watchable = [...]struct {
	prefix string
	topic  db.Topic
}{{"session/", db.Sessions}, {"credential/", db.Credentials}, {"watch/", db.Watches}, {"cookies/", db.Keys},
	{"walk/", db.Progress}, {"feed/webhook/", db.Progress}}

// watched has the values of one topic. Only the goroutine with the writing connection uses it.
type watched struct {
	watchers []func(name string, value []byte) error
	sums     map[string]uint64 // the hash of each value that the watchers have received
}

var seed = maphash.MakeSeed()

// Watch implements understudy.SharedKV. put is called after a change was committed, and before the next write of this process
// begins. put must not wait for a lock whose holder uses the store. Watch returns the first error of put; a later error is
// logged. If put returns an error, it must not use the former value any more.
//
// The prefix is one of session/, credential/, watch/, cookies/, walk/ and feed/webhook/.
func (k *Table) Watch(ctx context.Context, prefix string, put func(name string, value []byte) error) error {
	i := findWatchable(prefix)
	if i < 0 || watchable[i].prefix != prefix {
		return fmt.Errorf("store: watch values %s: %w", understudy.Clip(prefix), understudy.ErrInvalid)
	}
	var refused error
	err := k.pool.Write(ctx, func(c db.Conn) (broken bool, err error) {
		sums := map[string]uint64{}
		broken, err = c.RunReading(ctx, func() error {
			all, err := readValues(c, prefix, math.MaxInt64)
			for name, value := range all {
				sums[name] = maphash.Bytes(seed, value)
				if refused == nil {
					refused = put(name, value)
				}
			}
			return err
		})
		if w := &k.watched[i]; err == nil && refused == nil {
			w.watchers = append(w.watchers, put)
			if w.sums == nil {
				w.sums = sums
			}
		}
		return broken, err
	})
	if refused != nil {
		return refused
	}
	return db.WrapError(false, err, "values %s", prefix)
}

// findWatchable returns the index in watchable of the prefix that a name begins with, or -1.
func findWatchable(name string) int {
	for i, w := range watchable {
		if strings.HasPrefix(name, w.prefix) {
			return i
		}
	}
	return -1
}

// noteChange marks the topic of a value that the open transaction changes. Other processes then read the values of the topic again.
func (k *Table) noteChange(name string, value []byte) {
	if i := findWatchable(name); i >= 0 {
		k.pool.MarkChanged(watchable[i].topic)
	}
	k.noteQuietChange(name, value)
}

// noteQuietChange makes the watchers of this process receive a value after the open transaction is committed.
func (k *Table) noteQuietChange(name string, value []byte) {
	if i := findWatchable(name); i >= 0 {
		k.pool.CallAfterCommit(func() { k.notify(i, name, value) })
	}
}

// notify calls the watchers with a value, unless they have already received it.
func (k *Table) notify(i int, name string, value []byte) {
	w := &k.watched[i]
	if len(w.watchers) == 0 {
		return
	}
	sum := maphash.Bytes(seed, value)
	if known, ok := w.sums[name]; ok == (value != nil) && known == sum {
		return
	}
	if value == nil {
		delete(w.sums, name)
	} else {
		w.sums[name] = sum
	}
	for _, put := range w.watchers {
		if err := put(name, value); err != nil {
			k.log.Error("store: a changed value cannot be read", "name", name, "err", err)
		}
	}
}

// reload reads the values of a topic again after another process has changed some of them.
func (k *Table) reload(c db.Conn, topic db.Topic) error {
	for i, one := range watchable {
		if one.topic != topic {
			continue
		}
		all, err := readValues(c, one.prefix, math.MaxInt64)
		if err != nil {
			return fmt.Errorf("read the values of %s: %w", one.prefix, err)
		}
		for name := range k.watched[i].sums {
			if all[name] == nil {
				k.notify(i, name, nil)
			}
		}
		for name, value := range all {
			k.notify(i, name, value)
		}
	}
	return nil
}

// Change implements understudy.KV. It runs change in one writing transaction, so no change is lost if two processes change a
// value at the same time. If change returns an error, nothing changes, and Change returns that error. Other errors: ErrInvalid
// for a bad name or value, ErrNotStored.
func (k *Table) Change(ctx context.Context, name string, change func(old []byte) (value []byte, err error)) error {
	return k.change(ctx, name, k.pool.Change, k.noteChange, change)
}

// ChangeDurably does what Change does. The new value is on the disk when it returns.
func (k *Table) ChangeDurably(ctx context.Context, name string, change func(old []byte) (value []byte, err error)) error {
	return k.change(ctx, name, k.pool.ChangeDurably, k.noteChange, change)
}

// ChangeQuietly does what Change does, but other processes do not read the value again soon. Use it for values that are
// written often, such as the time when a session was last used.
func (k *Table) ChangeQuietly(ctx context.Context, name string, change func(old []byte) (value []byte, err error)) error {
	return k.change(ctx, name, k.pool.Change, k.noteQuietChange, change)
}

// change does what Change does. It gets the function that runs the transaction and the function that notes the change.
func (k *Table) change(ctx context.Context, name string, transact func(context.Context, func(db.Conn) error) error,
	note func(name string, value []byte), change func(old []byte) (value []byte, err error)) error {
	var refused error
	err := k.run(ctx, name, nil, transact, func(c db.Conn) error {
		var old, value []byte
		_, err := db.QueryRow(c, selectValue, []driver.Value{name}, func(r []driver.Value) { old = cloneBytes(r[0]) })
		if err != nil {
			return err
		}
		if value, refused = change(bytes.Clone(old)); refused != nil {
			return refused
		}
		if err := check(name, value); err != nil || (value == nil) == (old == nil) && bytes.Equal(value, old) {
			return err
		}
		note(name, value)
		if value == nil {
			return c.Execute(deleteValue, 0, name)
		}
		return c.Execute(putValue, 0, name, value)
	})
	if refused != nil {
		return refused
	}
	return err
}
