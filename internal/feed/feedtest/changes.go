// Package feedtest has what the tests of the feed's wires and of their clients share.
package feedtest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"understudy"
)

// Table is a store of the changes of one source and of values, in memory. It is safe for concurrent use.
type Table struct {
	understudy.SharedKV // the feed asks for nothing else

	source string
	mu     sync.Mutex
	rows   []understudy.Change
	values map[string][]byte
}

// NewTable returns an empty store for the changes of a source.
func NewTable(source string) *Table { return &Table{source: source, values: map[string][]byte{}} }

// Copy returns a store with the same content, as a backup has it.
func (t *Table) Copy() *Table {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &Table{source: t.source, rows: slices.Clone(t.rows), values: maps.Clone(t.values)}
}

// ReadChanges returns the changes after a number, at most limit.
func (t *Table) ReadChanges(ctx context.Context, _ string, after int64, limit int) ([]understudy.Change, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := t.rows[min(int(after), len(t.rows)):]
	return slices.Clone(rows[:min(limit, len(rows))]), ctx.Err()
}

// ReadLastChange returns the number of the last change.
func (t *Table) ReadLastChange(context.Context, string) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.rows)), nil
}

// Value returns a value, or understudy.ErrNotFound.
func (t *Table) Value(_ context.Context, name string) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values[name] == nil {
		return nil, understudy.ErrNotFound
	}
	return t.values[name], nil
}

// Change replaces a value, which is nil if there is none, by the result of change.
func (t *Table) Change(_ context.Context, name string, change func([]byte) ([]byte, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	value, err := change(t.values[name])
	if err == nil {
		t.values[name] = value
	}
	return err
}

// Watch returns at once: only one process uses the store.
func (t *Table) Watch(context.Context, string, func(string, []byte) error) error { return nil }

// Put appends changes, each a second after the one before. It sets their numbers, source, records, versions and times.
func (t *Table) Put(changes ...understudy.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ch := range changes {
		n := int64(len(t.rows) + 1)
		ch.N, ch.Source, ch.Record, ch.Version = n, t.source, 100+n, 1000+n
		ch.At = time.Date(2026, 6, 1, 12, 0, int(n), int(n), time.UTC)
		t.rows = append(t.rows, ch)
	}
}
