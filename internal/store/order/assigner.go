// This file reads and changes the positions of a kind in the database, in one transaction.

package order

import (
	"database/sql/driver"
	"slices"

	"understudy/internal/store/db"
	"understudy/internal/store/records"
)

var (
	selectBelow    = &db.Statement{Head: "SELECT at FROM place WHERE kind = ? AND at < ? AND at >= ? ORDER BY at DESC LIMIT 1"}
	selectAbove    = &db.Statement{Head: "SELECT at FROM place WHERE kind = ? AND at > ? AND at <= ? ORDER BY at ASC LIMIT 1"}
	selectStanding = &db.Statement{Head: "SELECT at FROM place WHERE kind = ? AND at BETWEEN ? AND ? LIMIT ?"}
	selectDeleted  = &db.Statement{Head: "SELECT 1 FROM place WHERE kind = ? ORDER BY at LIMIT 1"} // the order makes PostgreSQL use the index
	countPlaces    = &db.Statement{Head: "SELECT count(*) FROM place WHERE kind IN (?1, -CAST(?1 AS BIGINT)) AND at >= ?2 AND at < ?3"}
	selectPlaces   = &db.Statement{Head: "SELECT kind, at, record FROM place WHERE kind IN (?1, -CAST(?1 AS BIGINT)) AND at >= ?2 " +
		"AND at < ?3 ORDER BY at"}
	// InsertPlace inserts places under a kind's number or, for deleted records, under the negative number.
	InsertPlace = &db.Statement{Head: "INSERT INTO place (kind, at, record) VALUES ", Tuple: "(?, ?, ?)"}
	deletePlace = &db.Statement{Head: "DELETE FROM place WHERE kind = ? AND at = ?"}
	updateStand = &db.Statement{Head: "UPDATE held SET place = CAST(?1 AS BIGINT) * 2 + (place & 1) WHERE number BETWEEN ?2 AND ?3"}
)

// Assigner reads and changes the places of one kind in one transaction.
type Assigner struct {
	c          db.Conn
	kind       int64
	noteMoves  func() // called when records move to make room
	hasDeleted int8   // whether the kind has deleted records: 0 unknown, 1 yes, -1 no

	// known is true if taken has all occupied positions from least to most.
	known       bool
	least, most int64
	taken       []int64 // the occupied positions in ascending order

	// FormerPositions maps records that moved to make room to their positions before.
	FormerPositions  map[int64]int64
	CurrentPositions map[int64]int64 // the current positions of the records in FormerPositions, by record number
}

// NewAssigner returns an Assigner for a kind. It calls noteMoves when it moves records to make room.
func NewAssigner(c db.Conn, kind int64, noteMoves func()) *Assigner {
	return &Assigner{c: c, kind: kind, noteMoves: noteMoves}
}

// readKindNumbers returns the kind numbers under which places are searched: the kind's number for present records and,
// if there are deleted records, also its negative.
func (g *Assigner) readKindNumbers() ([]int64, error) {
	if g.hasDeleted == 0 {
		g.hasDeleted = -1
		if _, err := db.QueryRow(g.c, selectDeleted, []driver.Value{-g.kind}, func([]driver.Value) { g.hasDeleted = 1 }); err != nil {
			return nil, err
		}
	}
	if g.hasDeleted > 0 {
		return []int64{g.kind, -g.kind}, nil
	}
	return []int64{g.kind}, nil
}

// Expect announces what Read will read for a range. The range may be empty.
func (g *Assigner) Expect(least, most int64) error {
	if err := g.c.Expect(selectDeleted, 0, -g.kind); err != nil || least > most {
		return err
	}
	return g.c.Expect(selectStanding, 0, g.kind, least, most, int64(maxTaken))
}

// maxTaken is the maximum number of occupied positions that are read at once.
const maxTaken = 1000

// Read reads the occupied positions of a range, unless there are too many.
func (g *Assigner) Read(least, most int64) error {
	signs, err := g.readKindNumbers()
	if err != nil || least > most {
		return err
	}
	g.taken = g.taken[:0]
	for _, kind := range signs {
		err := db.VisitRows(g.c, selectStanding, []driver.Value{kind, least, most, int64(maxTaken)}, func(r []driver.Value) {
			g.taken = append(g.taken, r[0].(int64))
		})
		if err != nil {
			return err
		}
	}
	if g.known = len(g.taken) < maxTaken; g.known {
		slices.Sort(g.taken)
		g.least, g.most = least, most
	}
	return nil
}

// FindBelow implements Store.
func (g *Assigner) FindBelow(position, least int64) (int64, error) {
	if g.known && least >= g.least && position-1 <= g.most {
		i, _ := slices.BinarySearch(g.taken, position)
		if i == 0 || g.taken[i-1] < least {
			return Nowhere, nil
		}
		return g.taken[i-1], nil
	}
	return g.findNeighbour(selectBelow, position, least, func(a, b int64) bool { return a > b })
}

// FindAbove implements Store.
func (g *Assigner) FindAbove(position, most int64) (int64, error) {
	if g.known && position+1 >= g.least && most <= g.most {
		i, found := slices.BinarySearch(g.taken, position)
		if found {
			i++
		}
		if i == len(g.taken) || g.taken[i] > most {
			return Nowhere, nil
		}
		return g.taken[i], nil
	}
	return g.findNeighbour(selectAbove, position, most, func(a, b int64) bool { return a < b })
}

// findNeighbour returns the nearest occupied position that a statement finds, or Nowhere.
func (g *Assigner) findNeighbour(st *db.Statement, position, bound int64, nearer func(a, b int64) bool) (int64, error) {
	found := int64(Nowhere)
	signs, err := g.readKindNumbers()
	for _, kind := range signs {
		if err != nil {
			break
		}
		_, err = db.QueryRow(g.c, st, []driver.Value{kind, position, bound}, func(r []driver.Value) {
			if at := r[0].(int64); found == Nowhere || nearer(at, found) {
				found = at
			}
		})
	}
	return found, err
}

// MoveApart implements Store.
func (g *Assigner) MoveApart(position int64, n int, moved func(to map[int64]int64)) error {
	g.known = false
	var cerr error
	first, low, step := spread(position, n, func(low int64) (n int) {
		_, err := db.QueryRow(g.c, countPlaces, []driver.Value{g.kind, low, position}, func(r []driver.Value) { n = int(r[0].(int64)) })
		if err != nil {
			cerr = err
		}
		return n
	})
	if cerr != nil {
		return cerr
	}
	type row struct{ kind, at, record int64 }
	var rows []row
	err := db.VisitRows(g.c, selectPlaces, []driver.Value{g.kind, low, position}, func(r []driver.Value) {
		rows = append(rows, row{r[0].(int64), r[1].(int64), r[2].(int64)})
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := g.c.Execute(deletePlace, 0, r.kind, r.at); err != nil {
			return err
		}
	}
	if g.FormerPositions == nil {
		g.FormerPositions, g.CurrentPositions = map[int64]int64{}, map[int64]int64{}
	}
	tos := make([]int64, len(rows))
	for i, r := range rows {
		tos[i] = first - int64(len(rows)-1-i)*step
		if err := g.c.Execute(InsertPlace, 1, r.kind, tos[i], r.record); err != nil {
			return err
		}
		if err := g.c.Execute(updateStand, 0, tos[i], r.record*records.Slots, r.record*records.Slots+records.Slots-1); err != nil {
			return err
		}
		if _, again := g.FormerPositions[r.record]; !again {
			g.FormerPositions[r.record] = r.at
		}
		g.CurrentPositions[r.record] = tos[i]
	}
	told := make(map[int64]int64, len(rows))
	for i, r := range rows {
		told[r.at] = tos[i]
	}
	moved(told)
	g.noteMoves()
	return nil
}

// spread chooses which records move to make room for n more records directly below a position. The records from low on
// move. count returns how many records these are. They get positions step apart, from first downwards. Half of the free
// room stays directly below the position, because later records of the same second also go there.
func spread(position int64, n int, count func(low int64) int) (first, low, step int64) {
	for room := int64(n+1) * 8; ; room *= 2 {
		low = position - room
		if there := int64(count(low)); there*4 <= room-int64(n) {
			gap := int64(n) + 1 + (room-int64(n)-1-there)/2
			step = max((room-gap)/(there+1), 1)
			return position - gap, low, step
		}
	}
}

// CurrentPosition returns the current position of a record. That is before, unless the record was moved to make room.
func (g *Assigner) CurrentPosition(record, before int64) int64 {
	if at, ok := g.CurrentPositions[record]; ok {
		return at
	}
	return before
}
