// This file finds the versions of the bodies that a page shows, and writes blocks for new bodies.

package store

import (
	"understudy/internal/store/codec"
	"understudy/internal/store/records"
)

// rowBody identifies one of the bodies of a record that has several rows in the page.
type rowBody struct{ record, hash int64 }

// assignVersions sets the version of every row. It packs new bodies into blocks.
func (s *saving) assignVersions(sights []observation) error {
	x := &s.db.scratch
	x.entries = x.entries[:0]
	fresh := 0 // the number of rows with a new body
	for i := range s.content.rows {
		g := &sights[x.sightOf[i]]
		s.content.rows[i].Record = g.stored.number
		v, err := s.findVersion(g, i)
		if err != nil {
			return err
		}
		if s.content.rows[i].Version = v; v != 0 {
			continue
		}
		r := &s.content.rows[i]
		fresh++
		// Until the block has a number, the position among the new bodies stands for the version. So a later
		// row with the same body can refer to it.
		r.Version = -int64(fresh)
		e := codec.Entry{Record: r.Record, ID: r.ID, Clock: r.Clock, Final: r.Final, Parent: r.Parent, Body: s.p.Body[r.Start:r.End]}
		if err := s.planDelta(g, i, &e); err != nil {
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
	return s.putDeltas(numbers)
}

// findVersion returns the version that row i's body already has, or 0 if the body is new.
func (s *saving) findVersion(g *observation, i int) (int64, error) {
	if g.stored.hasRow && g.stored.hash == s.content.hashes[i] && g.stored.state&records.Forgotten == 0 {
		return g.stored.version, nil
	}
	if g.rowCount > 1 {
		if s.writes.firstRow == nil {
			s.writes.firstRow = map[rowBody]int{}
		}
		body := rowBody{g.stored.number, s.content.hashes[i]}
		if j, ok := s.writes.firstRow[body]; ok {
			return s.content.rows[j].Version, nil
		}
		s.writes.firstRow[body] = i
	}
	if g.stored.hasRow {
		return s.findEarlierVersion(g, i)
	}
	return 0, nil
}

// putBlocks packs bodies into blocks and returns their version numbers.
func (s *saving) putBlocks(entries []codec.Entry) ([]int64, error) {
	if err := s.c.Execute(records.InsertCreation, 0, s.counters.block+1, s.at); err != nil {
		return nil, err
	}
	s.writes.firstNew = (s.counters.block + 1) * codec.PerBlock
	numbers, all := make([]int64, 0, len(entries)), 0
	for i := range entries {
		all += len(entries[i].Body)
	}
	for len(entries) > 0 {
		n, size := nextBlock(entries, all)
		all -= size
		s.counters.block++
		s.counters.changed.store = true
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

// nextBlock returns how many of the entries belong in the next block, and the size of their bodies in bytes.
// all is the size of all entries' bodies. The blocks become about equal in size.
func nextBlock(entries []codec.Entry, all int) (n, size int) {
	least := all / ((all-1)/records.MaxBlock + 1)
	for n < len(entries) && n < codec.PerBlock && size < least {
		size += len(entries[n].Body)
		n++
	}
	return n, size
}

// A replaced version is stored as a delta against the version that replaced it.
//
//	block 7  [ call 1 whole ][ call 2 whole ] …
//	                |  call 1 changed
//	block 7  [ delta, base 9.0 ][ call 2 whole ] …
//	block 9  [ call 1 whole ]
//
// The newest version is whole, so that reading it needs no patching. The oldest version can be deleted without
// touching another. Every codec.MaxDepth-th version stays whole.

// pendingDelta is a replaced version that becomes a delta against its successor.
type pendingDelta struct {
	version   int64 // the number of the replaced version
	successor int   // the index of its successor among the new versions
	patch     []byte
	clock     int64 // the clock of the record in the successor
	parent    string
}

// planDelta plans to store the replaced version as a delta against row i, whose entry is e. It does nothing if
// that saves too little.
func (s *saving) planDelta(g *observation, i int, e *codec.Entry) error {
	if !g.stored.hasRow || g.stored.state&records.Forgotten != 0 || g.lastRow != i ||
		decide(&g.stored, s.content.hashes[i], s.at, e.Final, s.p.IsWriteAnswer()).late {
		return nil
	}
	old, err := s.readReplaced(g.stored.version)
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
	s.writes.deltas = append(s.writes.deltas, pendingDelta{version: g.stored.version, successor: len(s.writes.fresh),
		patch: patch[from:len(patch):len(patch)], clock: e.Clock, parent: e.Parent})
	return nil
}

// putDeltas rewrites the replaced versions as deltas against the new versions, whose numbers are now known.
func (s *saving) putDeltas(numbers []int64) error {
	for i := range s.writes.deltas {
		r := &s.writes.deltas[i]
		b, err := s.blocks.ChangeBlock(r.version / codec.PerBlock)
		if err != nil {
			return err
		}
		e, err := s.blocks.ReadEntry(r.version)
		if err != nil {
			return err
		}
		e.Delta = &codec.Delta{Base: numbers[r.successor], Patch: r.patch, Clock: e.Clock - r.clock, Completed: true}
		if e.Parent != r.parent {
			parent := e.Parent
			e.Delta.Parent = &parent
		}
		b.Changed = true
	}
	return nil
}
