// Sift: the records of a page of changes that begin to match.

package watch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
)

// sifting is one page of changes before some watches.
type sifting struct {
	b        *Book
	source   string
	watchers []*watcher
	found    map[*watcher][]match // in the order of the changes
}

// candidate is a record that matches now, and the changes of it that its watch has not seen.
type candidate struct {
	watcher *watcher
	changes []understudy.Change
	shape   string
}

// sift finds what begins to match: it matches as it is now, and one of the versions that
// its changes replaced did not. So it makes no difference how many changes are looked at
// together. What time alone makes match is no change.
func (s *sifting) sift(ctx context.Context, page []understudy.Change) error {
	byKind := map[string]map[string][]understudy.Change{}
	for _, c := range page {
		if byKind[c.Kind] == nil {
			byKind[c.Kind] = map[string][]understudy.Change{}
		}
		byKind[c.Kind][c.ID] = append(byKind[c.Kind][c.ID], c)
	}
	former := map[int64]*understudy.Record{} // by the number of the change
	for kind, changes := range byKind {
		all, err := s.candidates(ctx, kind, changes)
		if err != nil {
			return err
		}
		for i := range all {
			if err := s.judge(ctx, &all[i], former); err != nil {
				return err
			}
		}
	}
	for _, found := range s.found {
		slices.SortFunc(found, func(x, y match) int { return cmp.Compare(x.N, y.N) })
	}
	return nil
}

// judge notes a candidate that did not match before one of its changes.
func (s *sifting) judge(ctx context.Context, c *candidate, former map[int64]*understudy.Record) (err error) {
	for _, change := range c.changes {
		before, known := former[change.N]
		if !known {
			if before, err = s.before(ctx, c.shape, change); err != nil {
				return err
			}
			former[change.N] = before
		}
		if before == nil || !c.watcher.test(before) {
			s.found[c.watcher] = append(s.found[c.watcher], match{s.source, change.N})
			return nil
		}
	}
	return nil
}

// candidates are the changed records of a kind that match now.
func (s *sifting) candidates(ctx context.Context, kind string, changes map[string][]understudy.Change) (all []candidate, err error) {
	q := query.RecordQuery{Source: s.source, Kinds: []string{kind}}
	for id := range changes {
		q.IDs = append(q.IDs, id)
	}
	err = s.b.o.Records.Seek(ctx, q, func(f query.Hit) bool {
		for _, w := range s.watchers {
			after := w.entry.place(s.source)
			some := changes[f.Record.ID]
			for len(some) > 0 && some[0].N <= after {
				some = some[1:]
			}
			if len(some) > 0 && w.test(f.Record) {
				all = append(all, candidate{w, some, f.Record.Shape})
			}
		}
		return ctx.Err() == nil
	})
	return all, errors.Join(err, ctx.Err())
}

// before is a record as it was before a change; nil: it was not there, or what it looked
// like had to make room.
func (s *sifting) before(ctx context.Context, shape string, c understudy.Change) (*understudy.Record, error) {
	if c.Type == understudy.Appeared {
		return nil, nil
	}
	at := c.At.Add(-time.Nanosecond)
	r, err := s.b.o.Records.RecordAt(ctx, s.source, c.Kind, shape, c.ID, at)
	switch {
	case errors.Is(err, understudy.ErrNotFound), err == nil && r.Since.After(at):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return r, nil
}
