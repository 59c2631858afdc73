// Notes in memory.

package store

import (
	"context"
	"maps"
	"slices"
	"strings"

	"understudy"
)

// Note is as DB.Note.
func (m *Memory) Note(ctx context.Context, name string) ([]byte, error) {
	if err := m.enter(ctx); err != nil {
		return nil, failed(false, err, "note %s", name)
	}
	defer m.mu.Unlock()
	value, ok := m.jobs.notes[name]
	if !ok {
		return nil, failed(false, understudy.ErrNotFound, "note %s", name)
	}
	return slices.Clone(value), nil
}

// SetNote is as DB.SetNote.
func (m *Memory) SetNote(ctx context.Context, name string, value []byte) error {
	err := checkNote(name, value)
	if err == nil {
		err = m.enter(ctx)
	}
	if err != nil {
		return failed(true, err, "note %s", name)
	}
	defer m.mu.Unlock()
	if m.jobs.notes == nil {
		m.jobs.notes = map[string][]byte{}
	}
	if value == nil {
		delete(m.jobs.notes, name)
	} else {
		m.jobs.notes[name] = slices.Clone(value)
	}
	return nil
}

// Notes is as DB.Notes.
func (m *Memory) Notes(ctx context.Context, prefix string) (map[string][]byte, error) {
	if err := m.enter(ctx); err != nil {
		return nil, failed(false, err, "notes %s", prefix)
	}
	defer m.mu.Unlock()
	all := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(m.jobs.notes)) {
		if strings.HasPrefix(name, prefix) && len(all) < maxNotes {
			all[name] = slices.Clone(m.jobs.notes[name])
		}
	}
	return all, nil
}
