// This file checks the words in the index against the words of the records.

package verify

import (
	"cmp"
	"database/sql/driver"
	"hash/maphash"

	"understudy/internal/query"
	"understudy/internal/store/db"
	"understudy/internal/store/index"
	"understudy/internal/store/order"
	"understudy/internal/store/records"
	"understudy/internal/store/wordrows"
	"understudy/internal/store/words"
)

// verifyParts is the number of parts into which postings are divided. If the sums of a part differ, its records are
// checked one by one. maxRecheck is the maximum number of parts that are checked in this way.
const (
	verifyParts = 1 << 12
	maxRecheck  = 16
)

// indexSums has a sum of hashes for each part of the postings. The sums do not depend on the order of the entries.
type indexSums struct {
	seed  maphash.Seed
	parts [verifyParts]uint64
	only  map[uint64]bool  // the parts whose postings are summed one by one, or nil in the first pass
	spots map[int64]uint64 // the sums of the single postings in the parts of only
	names map[int64]string // the names of the records at the postings in spots
}

func (s *indexSums) part(spot int64) uint64 {
	return maphash.Comparable(s.seed, spot) % verifyParts
}

// add adds the hash of an entry to the sum of its posting's part. A negative hash subtracts.
func (s *indexSums) add(posting int64, hash uint64) {
	part := s.part(posting)
	if s.only == nil {
		s.parts[part] += hash
	} else if s.only[part] {
		s.spots[posting] += hash
	}
}

// prepareRecheck reports whether the sum of any part is not zero, and prepares a second pass over these parts.
func (s *indexSums) prepareRecheck() bool {
	s.only, s.spots, s.names = map[uint64]bool{}, map[int64]uint64{}, map[int64]string{}
	for part, sum := range s.parts {
		if sum != 0 && len(s.only) < maxRecheck {
			s.only[uint64(part)] = true
		}
	}
	return len(s.only) > 0
}

// isWatched reports whether a posting has a sum of its own.
func (s *indexSums) isWatched(spot int64) bool { return s.only != nil && s.only[s.part(spot)] }

var (
	selectAllPlaced = &db.Statement{Head: "SELECT number, version, place FROM held WHERE state & 12 = 0 " +
		"AND place IS NOT NULL ORDER BY version", Whole: true}
)

// checkWords checks the index of words against the records. It does not report words that are not indexed yet.
func (v *verifying) checkWords() error {
	sums := &indexSums{seed: maphash.MakeSeed()}
	if err := v.sumWords(sums); err != nil || !sums.prepareRecheck() {
		return err
	}
	if err := v.sumWords(sums); err != nil {
		return err
	}
	for spot, sum := range sums.spots {
		if sum == 0 {
			continue
		}
		name := cmp.Or(sums.names[spot], "a record that is not stored there")
		v.addProblem("the words in the index at position %d are not the words of %s; run understudy store rebuild", spot, name)
	}
	return nil
}

// sumWords adds the hashes of the words of the records and subtracts the hashes of the words in the index.
func (v *verifying) sumWords(sums *indexSums) error {
	err := v.db.index.Words.VisitWords(v.c, func(w wordrows.Word) error {
		sums.add(w.Posting, -maphash.Comparable(sums.seed, w))
		return db.CheckContext(v.ctx)
	})
	if err != nil {
		return err
	}
	for i := range v.pending.Words {
		one := &v.pending.Words[i]
		one.VisitWords(func(w wordrows.Word) {
			hash := maphash.Comparable(sums.seed, w)
			if !one.Delete {
				hash = -hash
			}
			sums.add(w.Posting, hash)
		})
	}
	var x words.Cutter
	blocks := v.db.records.Open(v.c)
	return v.visitRows(selectAllPlaced, func(r []driver.Value) error {
		if r[0].(int64)/records.Slots > v.built.Words {
			return nil
		}
		e := index.Edit{Is: order.ReadPosition(r[2]).At}
		if err := v.db.index.ReadEdit(blocks, &e, r[1].(int64)); err != nil || e.New == nil {
			return err
		}
		if sums.only != nil {
			if !sums.isWatched(e.Is) {
				return nil
			}
			sums.names[e.Is] = e.New.ID
		}
		f, _ := query.FactsOf(e.New.Parent, e.New.Body, nil)
		x.VisitWords(e.Kind.Words, &f, e.Is, func(w wordrows.Word) { sums.add(w.Posting, maphash.Comparable(sums.seed, w)) })
		return nil
	})
}
