// Resting: a version that is replaced is kept as what differs from the one
// that replaced it.
//
//	block 7  [ call 1 whole ][ call 2 whole ] …
//	                |  call 1 changed
//	block 7  [ patch, rests on 9.0 ][ call 2 whole ] …
//	block 9  [ call 1 whole ]
//
// The newest version is whole, so that nothing has to be made to read it, and
// the oldest may go without touching any other. Every maxDepth-th stays whole.

package store

import (
	"understudy/internal/store/codec"
	"understudy/internal/store/records"
)

// pendingDelta is a replaced version that is to rest on the one that replaces it.
type pendingDelta struct {
	version int64 // the replaced one
	place   int   // of the other among the new ones
	patch   []byte
	clock   int64 // of the other
	parent  string
}

// rest plans that the version row i replaces rests on row i's, whose entry is
// e, if that is worth it.
func (s *saving) rest(g *observation, i int, e *codec.Entry) error {
	if !g.held || g.state&records.Forgotten != 0 || g.last != i || judge(&g.currentState, s.hashes[i], s.at, e.Final, s.p.OfWrite()).late {
		return nil
	}
	old, err := s.before(g.version)
	if err != nil || old == nil || old.Delta != nil || old.Depth == codec.MaxDepth {
		return err
	}
	from := len(s.patches)
	patch, ok := codec.AppendPatch(s.patches, e.Body, old.Body)
	if !ok {
		return nil
	}
	s.patches = patch
	e.Depth = old.Depth + 1
	s.deltas = append(s.deltas, pendingDelta{version: g.version, place: len(s.fresh), patch: patch[from:len(patch):len(patch)],
		clock: e.Clock, parent: e.Parent})
	return nil
}

// putRests makes the replaced versions rest on the new ones, which have their
// numbers now.
func (s *saving) putRests(numbers []int64) error {
	for i := range s.deltas {
		r := &s.deltas[i]
		b, err := s.blocks.Edit(r.version / codec.PerBlock)
		if err != nil {
			return err
		}
		e, err := s.blocks.Entry(r.version)
		if err != nil {
			return err
		}
		e.Delta = &codec.Delta{Base: numbers[r.place], Patch: r.patch, Clock: e.Clock - r.clock, Completed: true}
		if e.Parent != r.parent {
			parent := e.Parent
			e.Delta.Parent = &parent
		}
		b.Changed = true
	}
	return nil
}
