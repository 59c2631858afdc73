// This file lists all records found for a person in one transaction, and then marks each of them as deleted.

package erase

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
)

var (
	insertListed = &db.Statement{Head: "INSERT INTO erasing (erasure, source, kind, record, cause, at, state) " +
		"VALUES ", Tuple: "(?, ?, ?, ?, ?, ?, ?)"}
)

// The states of a row of table erasing.
const (
	stateMarked = 0 // the record must be erased and is never stored again
	stateTaken  = 1 // the texts of the record were removed from every row
	stateListed = 2 // the record must be erased and is not marked yet
)

// EraseNumber finds what belongs to a number (see Find) and lists it for erasing in one transaction, so after a crash
// either all or nothing is listed. Then it marks each present record as deleted, a few in each transaction. Marking
// adds a change and prevents that the record is stored again. After a crash EraseListed completes the marking. If
// nothing is found, nothing is listed and there is no receipt. The search may miss records that are saved meanwhile. So
// a caller that waits for the receipt repeats the call until nothing more is found. If EraseNumber returns both an
// error and the number of a receipt, the records were listed and will be erased.
func (r *Eraser) EraseNumber(ctx context.Context, source, what string) (Erasure, Found, error) {
	f, err := r.find(ctx, source, what)
	pages := 0
	if err == nil {
		pages, err = r.deleteWhole(ctx, source)
	}
	if err == nil && pages > 0 && len(f.all) == 0 {
		err = r.sanitize(ctx)
	}
	if err != nil || len(f.all) == 0 {
		return Erasure{}, f, db.WrapError(false, err, "erase in %s", source)
	}
	e, err := r.list(ctx, source, what, f.all)
	if err == nil {
		err = r.store.Mark(ctx, e.Number)
	}
	return e, f, db.WrapError(false, err, "erase in %s", source)
}

// deleteWhole deletes the pages of a source that are stored whole, and returns how many there were. Such a page
// may mention a person although no record was found.
func (r *Eraser) deleteWhole(ctx context.Context, source string) (int, error) {
	number, _, err := r.store.FindSource(ctx, source)
	if err != nil {
		return 0, err
	}
	var whole []int64
	err = r.store.VisitPages(ctx, number, func(page int64, sk *codec.Skeleton) {
		if _, why := understudy.OutageRows(sk.Kept); why != "" {
			whole = append(whole, page)
		}
	})
	for part := range slices.Chunk(whole, db.MaxTuples) {
		if err == nil {
			err = r.pool.ReleaseDurably(ctx, func(c db.Conn) error {
				_, err := r.store.DeletePages(c, part)
				return err
			})
		}
	}
	return len(whole), err
}

// sanitize overwrites the free bytes of the file, unless records are listed. Then EraseListed overwrites them later.
func (r *Eraser) sanitize(ctx context.Context) error {
	select {
	case r.running <- struct{}{}:
		defer func() { <-r.running }()
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err := r.pool.Engine.Sanitize(ctx, r.pool)
	return err
}

// list lists all records of an erasure. When it returns, the list is on the disk. It writes only rows: a million rows
// take seconds, while marking as many records takes minutes.
func (r *Eraser) list(ctx context.Context, source, what string, all []record) (e Erasure, err error) {
	number, _, err := r.store.FindSource(ctx, source)
	if err != nil {
		return e, err
	}
	// Sorted by kind and number, because records with adjacent numbers are mostly in the same block
	slices.SortFunc(all, func(a, b record) int {
		if a.kind != b.kind {
			return strings.Compare(a.kind, b.kind)
		}
		return int(a.number - b.number)
	})
	kinds := map[string]int64{}
	for _, one := range all {
		if _, ok := kinds[one.kind]; !ok {
			k, _ := r.store.Kind(source, one.kind)
			kinds[one.kind] = k.Number
		}
	}
	err = r.pool.ReleaseDurably(ctx, func(c db.Conn) error {
		seal, err := readSealKey(c)
		if err != nil {
			return err
		}
		now := r.now().UnixNano()
		if _, err := db.QueryRow(c, insertErasure, []driver.Value{number, int64(CauseAsked), sealHash(seal, source, what), now},
			func(row []driver.Value) { e.Number = row[0].(int64) }); err != nil {
			return err
		}
		var args []driver.Value
		for part := range slices.Chunk(all, db.MaxTuples) {
			args = args[:0]
			for _, one := range part {
				args = append(args, e.Number, number, kinds[one.kind], one.number, int64(CauseAsked), now, int64(stateListed))
			}
			if err := db.ExecuteMany(c, insertListed, 7, args); err != nil {
				return err
			}
		}
		all, err := readErasures(c, e.Number-1, e.Number, 1)
		if err == nil && len(all) == 1 {
			e = all[0]
		}
		return err
	})
	return e, err
}
