// Words verified: those in the index are compared with those of the records.

package verify

import (
	"database/sql/driver"
	"hash/maphash"

	"understudy/internal/query"
	"understudy/internal/store/fts5"
	"understudy/internal/store/index"
	"understudy/internal/store/order"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/words"
)

// verifyParts is how many parts records are compared in. Parts in which something
// differs are looked at again, record by record, verifyAgain of them at most.
const (
	verifyParts = 1 << 12
	verifyAgain = 16
)

// indexSums has, for each part of the postings, a sum over the hashes of what an index
// has there. The order in which they are added makes no difference.
type indexSums struct {
	seed  maphash.Seed
	parts [verifyParts]uint64
	only  map[uint64]bool  // parts to look at posting by posting; nil: none
	spots map[int64]uint64 // of those
	names map[int64]string // what they are, where a record is there
}

func (s *indexSums) part(spot int64) uint64 {
	return maphash.Comparable(s.seed, spot) % verifyParts
}

// add adds to a posting's part the hash of what is found there; a negative one takes it away.
func (s *indexSums) add(posting int64, hash uint64) {
	part := s.part(posting)
	if s.only == nil {
		s.parts[part] += hash
	} else if s.only[part] {
		s.spots[posting] += hash
	}
}

// again reports whether any part differs, and makes ready to look at such again.
func (s *indexSums) again() bool {
	s.only, s.spots, s.names = map[uint64]bool{}, map[int64]uint64{}, map[int64]string{}
	for part, sum := range s.parts {
		if sum != 0 && len(s.only) < verifyAgain {
			s.only[uint64(part)] = true
		}
	}
	return len(s.only) > 0
}

// looksAt reports whether a posting is looked at by itself.
func (s *indexSums) looksAt(spot int64) bool { return s.only != nil && s.only[s.part(spot)] }

var (
	selectAllPlaced = &sqlite.Statement{Head: "SELECT number, version, place FROM held WHERE state & 12 = 0 " +
		"AND place IS NOT NULL ORDER BY version"}
)

// words compares the index of words with the records. What is not built yet is not missed.
func (v *verifying) words() error {
	sums := &indexSums{seed: maphash.MakeSeed()}
	if err := v.sumWords(sums); err != nil || !sums.again() {
		return err
	}
	if err := v.sumWords(sums); err != nil {
		return err
	}
	for spot, sum := range sums.spots {
		if sum == 0 {
			continue
		}
		name := sums.names[spot]
		if name == "" {
			name = "a record that is not held there"
		}
		v.problem("words: what is found at %d is not what %s says; run understudy store rebuild", spot, name)
	}
	return nil
}

// sumWords adds the words of records and takes those of the index away.
func (v *verifying) sumWords(sums *indexSums) error {
	err := fts5.Each(v.c, func(w fts5.Word) error {
		sums.add(w.Posting, -maphash.Comparable(sums.seed, w))
		return sqlite.CheckContext(v.ctx)
	})
	if err != nil {
		return err
	}
	for i := range v.pending.Words {
		one := &v.pending.Words[i]
		one.Each(func(w fts5.Word) {
			hash := maphash.Comparable(sums.seed, w)
			if !one.Out {
				hash = -hash
			}
			sums.add(w.Posting, hash)
		})
	}
	var x words.Cutter
	blocks := v.db.records.Open(v.c)
	return v.c.Query(selectAllPlaced, 0, nil, func(r []driver.Value) error {
		if r[0].(int64)/records.Slots > v.built.Words {
			return nil
		}
		e := index.Edit{Is: order.ReadPosition(r[2]).At}
		if err := v.db.index.Read(blocks, &e, r[1].(int64)); err != nil || e.New == nil {
			return err
		}
		if sums.only != nil {
			if !sums.looksAt(e.Is) {
				return sqlite.CheckContext(v.ctx)
			}
			sums.names[e.Is] = e.New.ID
		}
		f, _ := query.FactsOf(e.New.Parent, e.New.Body, nil)
		x.Each(e.Kind.Words, &f, e.Is, func(w fts5.Word) { sums.add(w.Posting, maphash.Comparable(sums.seed, w)) })
		return sqlite.CheckContext(v.ctx)
	})
}
