// Verify: where records stand and the terms they are found by are compared with
// the records.

package store

import (
	"database/sql/driver"
	"maps"
	"slices"
	"strings"
)

var (
	selectAllStands = &statement{head: "SELECT h.number, h.place, n.kind, min(h.state & 12) FROM name n JOIN held h ON h.number BETWEEN n.record * 64 AND n.record * 64 + 63 GROUP BY n.record, h.place"}
	selectStandsAt  = &statement{head: "SELECT record FROM place WHERE kind = ? AND at = ?"}
	countStands     = &statement{head: "SELECT (SELECT count(*) FROM place), (SELECT count(*) FROM name)"}
)

// places makes sure that every record stands where its rows say, and nowhere
// else.
func (v *verifying) places() error {
	last := int64(-1)
	err := v.c.query(selectAllStands, 0, nil, func(r []driver.Value) error {
		record, at, kind := r[0].(int64)/slots, standOf(r[1]), r[2].(int64)
		switch {
		case record == last:
			v.problem("record %d: its rows have different places", record)
			return nil
		case at.at == noPosition && record > v.built.places:
			return nil
		case at.at == noPosition:
			v.problem("record %d: it has no place", record)
			return nil
		}
		last = record
		stands := int64(0)
		for i, sign := range []int64{kind, -kind} {
			_, err := v.c.one(selectStandsAt, []driver.Value{sign, at.at}, func(r []driver.Value) {
				if r[0].(int64) == record {
					stands = int64(i + 1)
				}
			})
			if err != nil {
				return err
			}
		}
		if want := int64(1); stands == 0 {
			v.problem("record %d: it does not stand at its place", record)
		} else if r[3].(int64) != 0 {
			want = 2
			if stands != want {
				v.problem("record %d: it stands among those that are there, and is not", record)
			}
		} else if stands != want {
			v.problem("record %d: it stands among those that are gone, and is not", record)
		}
		if v.enough() {
			return errStop
		}
		return nil
	})
	if err != nil || v.built.places != builtAll {
		return err
	}
	_, err = v.c.one(countStands, nil, func(r []driver.Value) {
		if r[0] != r[1] {
			v.problem("%d places are taken, %d records are there", r[0], r[1])
		}
	})
	return err
}

var (
	makeVocabulary   = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.term_rows USING fts5vocab('main', 'terms', 'instance')"
	selectVocabulary = &statement{head: "SELECT doc, term FROM temp.term_rows"}
	selectPresentRow = &statement{head: "SELECT number, version, place FROM held WHERE state & 12 = 0 ORDER BY number"}
)

// termSum is what is compared of a record's terms: how many, and a sum of them
// that does not depend on their order.
type termSum struct {
	n   int32
	sum uint64
}

// add adds a token.
func (t *termSum) add(token string) {
	t.n++
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(token) {
		h = (h ^ uint64(token[i])) * 1099511628211
	}
	t.sum += h
}

// terms compares the index of terms with what its records say.
func (v *verifying) terms() error {
	if err := v.c.run(makeVocabulary); err != nil {
		return err
	}
	indexed := map[int64]termSum{}
	err := v.c.query(selectVocabulary, 0, nil, func(r []driver.Value) error {
		spot := termRow(r[0].(int64))
		sum := indexed[spot]
		sum.add(r[1].(string))
		indexed[spot] = sum
		return checkContext(v.ctx)
	})
	if err != nil {
		return err
	}
	spans, err := v.c.spans()
	if err != nil {
		return err
	}
	blocks, kinds := v.db.blocks(v.c), v.db.kindsOfShapes()
	err = v.c.query(selectPresentRow, 0, nil, func(r []driver.Value) error {
		b, err := blocks.block(r[1].(int64) / perBlock)
		if err != nil {
			return skipDamaged(err) // told already
		}
		e, err := blocks.entry(r[1].(int64))
		k := kinds[b.shape]
		if err != nil || k == nil || e.record > v.built.terms {
			return skipDamaged(err)
		}
		spot, want := spotOf(standOf(r[2]).at, b.shape), termSum{}
		for token := range slices.Values(tokens(k.terms, spot, e, func(field string, unix int64) {
			if s, ok := spans[spanName{b.shape, field}]; !ok || s.with(unix) != s {
				v.problem("record %d (%s): a time in %s lies outside of those that are looked for; run understudy store rebuild", e.record, e.id, strings.TrimPrefix(field, nearName("")))
			}
		})) {
			want.add(token)
		}
		if indexed[spot] != want {
			v.problem("record %d (%s): it is found by %d terms, which are not the %d it has; run understudy store rebuild", e.record, e.id, indexed[spot].n, want.n)
		}
		delete(indexed, spot)
		if v.enough() {
			return errStop
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, spot := range slices.Sorted(maps.Keys(indexed)) {
		if v.enough() {
			break
		}
		v.problem("terms are kept of a record at %d, where none is; run understudy store rebuild", positionOf(spot))
	}
	return nil
}
