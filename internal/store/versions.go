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
	for i := range s.rows {
		g := &sights[x.of[i]]
		s.rows[i].Record = g.number
		v, err := s.known(g, i)
		if err != nil {
			return err
		}
		if s.rows[i].Version = v; v != 0 {
			continue
		}
		r := &s.rows[i]
		fresh++
		// Its place among the new ones stands for its version until the block
		// has a number, so that the same body later in the page finds it.
		r.Version = -int64(fresh)
		e := codec.Entry{Record: r.Record, ID: r.ID, Clock: r.Clock, Final: r.Final, Parent: r.Parent, Body: s.p.Body[r.Start:r.End]}
		if err := s.rest(g, i, &e); err != nil {
			return err
		}
		x.entries = append(x.entries, e)
		s.fresh = x.entries
	}
	if fresh == 0 {
		return nil
	}
	numbers, err := s.putBlocks(x.entries)
	if err != nil {
		return err
	}
	for i := range s.rows {
		if r := &s.rows[i]; r.Version < 0 {
			r.Version = numbers[-r.Version-1]
		}
	}
	return s.putRests(numbers)
}

// known is the version that row i's body already has, 0 when it is new.
func (s *saving) known(g *observation, i int) (int64, error) {
	if g.held && g.hash == s.hashes[i] && g.state&records.Forgotten == 0 {
		return g.version, nil
	}
	if g.rows > 1 {
		if s.twice == nil {
			s.twice = map[rowBody]int{}
		}
		body := rowBody{g.number, s.hashes[i]}
		if j, ok := s.twice[body]; ok {
			return s.rows[j].Version, nil
		}
		s.twice[body] = i
	}
	if g.held {
		return s.returned(g, i)
	}
	return 0, nil
}

// putBlocks packs bodies into blocks and returns their versions' numbers.
func (s *saving) putBlocks(entries []codec.Entry) ([]int64, error) {
	if err := s.c.Exec(records.InsertMade, 0, s.counters.block+1, s.at); err != nil {
		return nil, err
	}
	s.firstNew = (s.counters.block + 1) * codec.PerBlock
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
