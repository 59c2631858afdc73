// Versions of what a page shows: which bodies are known, and blocks for those that are new.

package store

import (
	"understudy/internal/store/codec"
	"understudy/internal/store/records"
)

// rowBody is a body of a record that stands in the page more than once.
type rowBody struct{ record, hash int64 }

// versions gives every row its version, packing the bodies that are new.
func (s *saving) versions(sights []observation) error {
	x := &s.db.scratch
	x.entries = x.entries[:0]
	fresh := 0 // rows with a new body
	for i := range s.content.rows {
		g := &sights[x.of[i]]
		s.content.rows[i].Record = g.was.number
		v, err := s.known(g, i)
		if err != nil {
			return err
		}
		if s.content.rows[i].Version = v; v != 0 {
			continue
		}
		r := &s.content.rows[i]
		fresh++
		// Its place among the new ones stands for its version until the block
		// has a number, so that the same body later in the page finds it.
		r.Version = -int64(fresh)
		e := codec.Entry{Record: r.Record, ID: r.ID, Clock: r.Clock, Final: r.Final, Parent: r.Parent, Body: s.p.Body[r.Start:r.End]}
		if err := s.rest(g, i, &e); err != nil {
			return err
		}
		x.entries = append(x.entries, e)
		s.writes.fresh = x.entries
	}
	if fresh == 0 {
		return nil
	}
	numbers, err := s.putBlocks(x.entries)
	if err != nil {
		return err
	}
	for i := range s.content.rows {
		if r := &s.content.rows[i]; r.Version < 0 {
			r.Version = numbers[-r.Version-1]
		}
	}
	return s.putRests(numbers)
}

// known is the version that row i's body already has, 0 when it is new.
func (s *saving) known(g *observation, i int) (int64, error) {
	if g.was.held && g.was.hash == s.content.hashes[i] && g.was.state&records.Forgotten == 0 {
		return g.was.version, nil
	}
	if g.rows > 1 {
		if s.writes.twice == nil {
			s.writes.twice = map[rowBody]int{}
		}
		body := rowBody{g.was.number, s.content.hashes[i]}
		if j, ok := s.writes.twice[body]; ok {
			return s.content.rows[j].Version, nil
		}
		s.writes.twice[body] = i
	}
	if g.was.held {
		return s.returned(g, i)
	}
	return 0, nil
}

// putBlocks packs bodies into blocks and returns their versions' numbers.
func (s *saving) putBlocks(entries []codec.Entry) ([]int64, error) {
	if err := s.c.Exec(records.InsertMade, 0, s.counters.block+1, s.at); err != nil {
		return nil, err
	}
	s.writes.firstNew = (s.counters.block + 1) * codec.PerBlock
	numbers, all := make([]int64, 0, len(entries)), 0
	for i := range entries {
		all += len(entries[i].Body)
	}
	for len(entries) > 0 {
		n, size := fitting(entries, all)
		all -= size
		s.counters.block++
		s.counters.given.store = true
		err := s.db.opener.Insert(s.c, s.counters.block, s.shape.Number, entries[:n])
		if err != nil {
			return nil, err
		}
		for i := range n {
			numbers = append(numbers, s.counters.block*codec.PerBlock+int64(i))
		}
		entries = entries[n:]
	}
	return numbers, nil
}

// fitting is how many of the entries, whose bodies are all bytes together, the
// next block takes: as many as leave blocks of about the same size. size is that
// of their bodies.
func fitting(entries []codec.Entry, all int) (n, size int) {
	least := all / ((all-1)/records.MaxBlock + 1)
	for n < len(entries) && n < codec.PerBlock && size < least {
		size += len(entries[n].Body)
		n++
	}
	return n, size
}

// A version that is replaced is kept as what differs from the one that replaced it.
//
//	block 7  [ call 1 whole ][ call 2 whole ] …
//	                |  call 1 changed
//	block 7  [ patch, rests on 9.0 ][ call 2 whole ] …
//	block 9  [ call 1 whole ]
//
// The newest version is whole, so that nothing has to be made to read it, and
// the oldest may go without touching any other. Every codec.MaxDepth-th stays whole.

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
	if !g.was.held || g.was.state&records.Forgotten != 0 || g.last != i ||
		judge(&g.was, s.content.hashes[i], s.at, e.Final, s.p.OfWrite()).late {
		return nil
	}
	old, err := s.before(g.was.version)
	if err != nil || old == nil || old.Delta != nil || old.Depth == codec.MaxDepth {
		return err
	}
	from := len(s.writes.patches)
	patch, ok := codec.AppendPatch(s.writes.patches, e.Body, old.Body)
	if !ok {
		return nil
	}
	s.writes.patches = patch
	e.Depth = old.Depth + 1
	s.writes.deltas = append(s.writes.deltas, pendingDelta{version: g.was.version, place: len(s.writes.fresh),
		patch: patch[from:len(patch):len(patch)], clock: e.Clock, parent: e.Parent})
	return nil
}

// putRests makes the replaced versions rest on the new ones, which have their
// numbers now.
func (s *saving) putRests(numbers []int64) error {
	for i := range s.writes.deltas {
		r := &s.writes.deltas[i]
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
