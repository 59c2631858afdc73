// This file finds those records among the changes that begin to match a search.

package watch

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
)

// pageFilter tests one page of changes against some watches.
type pageFilter struct {
	b        *Book
	source   string
	watchers []*watcher
	found    map[*watcher][]match // the matches in the order of their changes
}

// candidate is a record that matches now, with those changes of the record that the watch has not tested.
type candidate struct {
	watcher *watcher
	changes []understudy.Change
	shape   string
}

// findMatches finds the records that begin to match: the current version matches, and a version that one of the
// changes replaced did not. So the result does not depend on how the changes are divided into pages. A record that
// matches only because time has passed has no change and is not found.
func (s *pageFilter) findMatches(ctx context.Context, page []understudy.Change) error {
	byKind := map[string]map[string][]understudy.Change{}
	for _, c := range page {
		if byKind[c.Kind] == nil {
			byKind[c.Kind] = map[string][]understudy.Change{}
		}
		byKind[c.Kind][c.ID] = append(byKind[c.Kind][c.ID], c)
	}
	former := map[int64]*understudy.Record{} // the version of the record before each change, by the number of the change
	for kind, changes := range byKind {
		all, err := s.findCandidates(ctx, kind, changes)
		if err != nil {
			return err
		}
		for i := range all {
			if err := s.addMatch(ctx, &all[i], former); err != nil {
				return err
			}
		}
	}
	for _, found := range s.found {
		slices.SortFunc(found, func(x, y match) int { return cmp.Compare(x.N, y.N) })
	}
	return nil
}

// addMatch adds a candidate to the matches if the candidate did not match before one of its changes.
func (s *pageFilter) addMatch(ctx context.Context, c *candidate, former map[int64]*understudy.Record) (err error) {
	for _, change := range c.changes {
		before, known := former[change.N]
		if !known {
			if before, err = s.readBefore(ctx, c.shape, change); err != nil {
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

// findCandidates returns the changed records of a kind that match now.
func (s *pageFilter) findCandidates(ctx context.Context, kind string, changes map[string][]understudy.Change) (all []candidate, err error) {
	q := query.RecordQuery{Source: s.source, Kinds: []string{kind}, IDs: slices.Collect(maps.Keys(changes))}
	err = s.b.o.Records.Seek(ctx, q, func(f query.Hit) bool {
		for _, w := range s.watchers {
			some := changes[f.Record.ID]
			for len(some) > 0 && some[0].N <= w.from {
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

// readBefore returns a record as it was before a change. It returns nil if the record did not exist, or if that version
// was deleted to save space.
func (s *pageFilter) readBefore(ctx context.Context, shape string, c understudy.Change) (*understudy.Record, error) {
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
