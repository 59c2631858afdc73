// This file checks the positions of records and their terms in the index against the records.

package verify

import (
	"database/sql/driver"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"understudy/internal/query"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/inverted"
	"understudy/internal/store/order"
	"understudy/internal/store/postings"
	"understudy/internal/store/records"
	"understudy/internal/store/terms"
)

const (
	selectStand = "SELECT min(h.number), h.place, min(n.kind), min(h.state & 12) FROM names n JOIN "
	ofStand     = " GROUP BY n.record, h.place"
)

var (
	selectAllStands = &db.Statement{Head: selectStand + "held h ON h.number BETWEEN n.record * 64 AND n.record * 64 + 63" + ofStand,
		Standard: selectStand + "LATERAL (SELECT * FROM held WHERE number BETWEEN n.record * 64 AND n.record * 64 + 63 LIMIT 64) h ON true" +
			ofStand, Whole: true} // without LIMIT, PostgreSQL reads the whole table for each record
	selectStandsAt = &db.Statement{Head: "SELECT record FROM place WHERE kind = ? AND at = ?"}
	countStands    = &db.Statement{Head: "SELECT (SELECT count(*) FROM place), (SELECT count(*) FROM names)"}
)

// checkPlaces checks that every record has exactly the place that its rows in table held give.
func (v *verifying) checkPlaces() error {
	last := int64(-1)
	err := v.visitRows(selectAllStands, func(r []driver.Value) error {
		record, at, kind := r[0].(int64)/records.Slots, order.ReadPosition(r[1]), r[2].(int64)
		switch {
		case record == last:
			v.addProblem("record %d: its rows have different positions", record)
			return nil
		case at.At == order.Nowhere:
			v.addProblem("record %d: it has no position", record)
			return nil
		}
		last = record
		stands := int64(0)
		for i, sign := range []int64{kind, -kind} {
			_, err := db.QueryRow(v.c, selectStandsAt, []driver.Value{sign, at.At}, func(r []driver.Value) {
				if r[0].(int64) == record {
					stands = int64(i + 1)
				}
			})
			if err != nil {
				return err
			}
		}
		if want := int64(1); stands == 0 {
			v.addProblem("record %d: it is missing at its position", record)
		} else if r[3].(int64) != 0 {
			want = 2
			if stands != want {
				v.addProblem("record %d: it is deleted, but it is among the present records", record)
			}
		} else if stands != want {
			v.addProblem("record %d: it is present, but it is among the deleted records", record)
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = db.QueryRow(v.c, countStands, nil, func(r []driver.Value) {
		if r[0] != r[1] {
			v.addProblem("%d positions are in use, but there are %d records", r[0], r[1])
		}
	})
	return err
}

var selectPresentRow = &db.Statement{Head: "SELECT number, version, place FROM held WHERE state & 12 = 0 ORDER BY number", Whole: true}

// termCount is the number of terms that the index has at a posting (inIndex), and the number that the record has (inRecord).
type termCount struct{ inIndex, inRecord int }

// checkTerms compares the index of terms with the records.
func (v *verifying) checkTerms() error {
	sums := &indexSums{seed: maphash.MakeSeed()}
	if _, err := v.sumTerms(sums); err != nil || !sums.prepareRecheck() {
		return err
	}
	counts, err := v.sumTerms(sums)
	if err != nil {
		return err
	}
	for _, spot := range slices.Sorted(maps.Keys(sums.spots)) {
		name, n := sums.names[spot], counts[spot]
		switch {
		case v.isDone():
			return errStop
		case sums.spots[spot] == 0:
		case name == "":
			v.addProblem("the index of terms has a record at position %d, where no record is; run understudy store rebuild", postings.Position(spot))
		default:
			v.addProblem("%s: the index has %d terms for it, which are not its %d terms; run understudy store rebuild", name, n.inIndex, n.inRecord)
		}
	}
	return nil
}

// sumTerms adds the hashes of the terms of the records and subtracts the hashes of the terms in the index. In the
// second pass it counts the terms of postings whose sums differ.
func (v *verifying) sumTerms(sums *indexSums) (map[int64]termCount, error) {
	counts := map[int64]termCount{}
	add := func(spot, token int64, kept, has int) {
		hash := maphash.Comparable(sums.seed, inverted.Entry{Token: token, Posting: spot})
		if kept > 0 {
			hash = -hash
		}
		sums.add(spot, hash)
		if sums.isWatched(spot) {
			counts[spot] = termCount{counts[spot].inIndex + kept, counts[spot].inRecord + has}
		}
	}
	err := inverted.VisitEntries(v.c, func(e inverted.Entry) error {
		add(e.Posting, e.Token, 1, 0)
		return db.CheckContext(v.ctx)
	})
	if err != nil {
		return nil, err
	}
	v.pending.Terms.VisitEntries(func(e inverted.Entry, out bool) {
		if out {
			add(e.Posting, e.Token, -1, 0)
		} else {
			add(e.Posting, e.Token, 1, 0)
		}
	})
	var ranges terms.Ranges
	if err := ranges.Load(v.c); err != nil {
		return nil, err
	}
	blocks, kinds := v.db.records.Open(v.c), v.db.catalog.KindsOfShapes()
	return counts, v.visitRows(selectPresentRow, func(r []driver.Value) error {
		b, err := blocks.ReadBlock(r[1].(int64) / codec.PerBlock)
		if err != nil {
			return records.SkipDamaged(err) // damage was already reported by the check of the blocks
		}
		e, err := blocks.ReadEntry(r[1].(int64))
		k := kinds[b.Shape]
		if err != nil || k == nil || e.Record > v.built.Terms {
			return records.SkipDamaged(err)
		}
		spot, name := postings.New(order.ReadPosition(r[2]).At, b.Shape), func() string { return fmt.Sprintf("record %d (%s)", e.Record, e.ID) }
		if sums.isWatched(spot) {
			sums.names[spot] = name()
		}
		f, _ := query.FactsOf(e.Parent, e.Body, nil)
		for _, token := range ranges.Tokens(&k.Terms, spot, &f, func(field string) {
			if sums.only == nil {
				v.addProblem("%s: its time in %s is outside the range that searches use; run understudy store rebuild", name(), field)
			}
		}) {
			add(spot, token, 0, 1)
		}
		return nil
	})
}
