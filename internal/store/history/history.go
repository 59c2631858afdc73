// Package history reads records as they are, as they were at a time, and their history. It reads single records
// or ranges of their clocks.
package history

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"understudy"
	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/names"
	"understudy/internal/store/records"
)

// MaxHistory is the maximum number of versions that one call of History returns.
const MaxHistory = 1000

var selectKindShapes = &db.Statement{Head: "SELECT slot, name FROM shape WHERE kind = ?"}

// ReadHistory returns the periods of a record in every shape, including those in which it was gone, newest first. It
// returns at most limit periods and at most MaxHistory, which is also the default for 0. Bodies belong to the caller. A
// body that was evicted is nil. A version that arrived after a later one is not part of the history, nor is one that
// the same page replaced. History returns ErrNotFound if the record was never seen or was forgotten.
func (h *Records) ReadHistory(ctx context.Context, source, kind, id string, limit int) ([]understudy.Version, error) {
	if limit <= 0 || limit > MaxHistory {
		limit = MaxHistory
	}
	var versions []understudy.Version
	err := h.pool.Read(ctx, func(c db.Conn) (err error) {
		if k := h.catalog.Kind(source, kind); k != nil {
			versions, err = h.readHistory(c, k, id, limit)
		}
		return err
	})
	if err == nil && len(versions) == 0 {
		err = understudy.ErrNotFound
	}
	if err != nil {
		return nil, db.WrapError(false, err, "history of %s %s %s", source, kind, id)
	}
	return versions, nil
}

// Records reads single records and ranges of records, as they are and as they were. It is safe for concurrent use.
type Records struct {
	pool    *db.Pool
	catalog *catalog.Catalog
	records *records.Opener
}

// New returns a reader of a file.
func New(pool *db.Pool, catalog *catalog.Catalog, records *records.Opener) *Records {
	return &Records{pool: pool, catalog: catalog, records: records}
}

// readHistory reads the periods of a record and their bodies.
func (h *Records) readHistory(c db.Conn, k *catalog.Kind, id string, limit int) (versions []understudy.Version, err error) {
	record, err := names.FindRecord(c, k.Number, db.AppendID(nil, k.Prefix(), id))
	if err != nil || record == 0 {
		return nil, err
	}
	all, err := records.ReadPeriods(c, record*records.Slots, record*records.Slots+records.Slots-1)
	if err != nil {
		return nil, err
	}
	names := map[int64]string{}
	err = db.VisitRows(c, selectKindShapes, []driver.Value{k.Number}, func(r []driver.Value) { names[r[0].(int64)] = r[1].(string) })
	if err != nil {
		return nil, err
	}
	blocks := h.records.Open(c)
	for _, one := range mergePeriods(all) {
		if len(versions) == limit {
			break
		}
		v := understudy.Version{From: db.Time(one.Since), Until: db.Time(one.Until), Gone: one.Version == 0}
		if !v.Gone {
			v.Number, v.Shape = one.Version, names[one.Held%records.Slots]
			e, err := blocks.ReadEntry(one.Version)
			if err == nil && !e.IsPruned() {
				v.Body = cloneBody(e)
			} else if err != nil && !records.IsMissing(err) {
				return nil, err
			}
		}
		versions = append(versions, v)
	}
	return versions, nil
}

// mergePeriods sorts the periods of all shapes, newest first. A record disappears from all shapes at once. That
// is one period, which ends when the record is seen again in any shape.
func mergePeriods(all []records.Period) []records.Period {
	slices.SortStableFunc(all, func(a, b records.Period) int {
		return cmp.Or(-cmp.Compare(a.Number, b.Number), cmp.Compare(a.Since, b.Since))
	})
	all = slices.CompactFunc(all, func(a, b records.Period) bool { return a.Number == b.Number && a.Version == 0 && b.Version == 0 })
	next := int64(0) // the start of the next newer period in any shape, or 0 if there is none
	for i := range all {
		if all[i].Version == 0 {
			all[i].Until = next
		}
		if next == 0 || all[i].Since < next {
			next = all[i].Since
		}
	}
	return all
}

// cloneBody copies a body, so that the caller does not keep its whole block in memory.
func cloneBody(e *codec.Entry) []byte { return append(make([]byte, 0, len(e.Body)), e.Body...) }

var selectRecordHeld = &db.Statement{Head: `SELECT h.number, h.version, h.seen, h.state, h.since FROM names n
	JOIN held h ON h.number = n.record * 64 + ?
	WHERE n.kind = ? AND n.id = ?`}

// Record returns the newest stored version of a record in one shape. Its body belongs to the caller. Record
// returns ErrNotFound if the record was never seen in that shape or is gone.
func (h *Records) Record(ctx context.Context, source, kind, shape, id string) (*understudy.Record, error) {
	rec := &understudy.Record{Source: source, Kind: kind, Shape: shape, ID: id}
	err := h.pool.Read(ctx, func(c db.Conn) error {
		s := h.catalog.Shape(source, kind, shape)
		if s == nil {
			return understudy.ErrNotFound
		}
		state, since := int64(records.Gone), int64(0)
		args := []driver.Value{s.Slot, s.Kind.Number, db.AppendID(nil, s.Kind.Prefix(), id)}
		_, err := db.QueryRow(c, selectRecordHeld, args, func(r []driver.Value) {
			rec.Number, rec.Version, rec.Seen = r[0].(int64)/records.Slots, r[1].(int64), time.Unix(0, r[2].(int64)).UTC()
			state = r[3].(int64)
			since, _ = r[4].(int64)
		})
		if err == nil && state&(records.Gone|records.Forgotten) != 0 {
			err = understudy.ErrNotFound
		}
		if err != nil {
			return err
		}
		rec.Final, rec.Invalidated = state&records.Final != 0, state&records.Invalid != 0
		if since == 0 {
			if since, err = records.ReadCreation(c, rec.Version); err != nil {
				return err
			}
		}
		rec.Since = time.Unix(0, since).UTC()
		e, err := h.records.Open(c).ReadEntry(rec.Version)
		if err != nil {
			return err
		}
		rec.Body = cloneBody(e)
		return nil
	})
	if err != nil {
		return nil, db.WrapError(false, err, "record %s %s %s", source, kind, id)
	}
	return rec, nil
}

var selectNewest = &db.Statement{Head: "SELECT number, version, seen, state FROM held WHERE number BETWEEN ?1 AND ?1 + 63 " +
	"AND state & ?2 = 0 ORDER BY seen DESC LIMIT 1"}

// FindNewestOrNext returns the version of a record that was seen last, in any shape, or nil. If gone is set, it also
// returns the last version of a deleted record. For an id that is not stored it returns the record of another id, so
// that the amount of reading does not reveal whether the id is stored.
func (h *Records) FindNewestOrNext(ctx context.Context, source, kind, id string, gone bool) (rec *understudy.Record, err error) {
	without := int64(records.Gone | records.Forgotten)
	if gone {
		without = int64(records.Forgotten)
	}
	err = h.pool.Read(ctx, func(c db.Conn) error {
		k := h.catalog.Kind(source, kind)
		if k == nil {
			return nil
		}
		record, err := names.FindRecordOrNext(c, k.Number, db.AppendID(nil, k.Prefix(), id), without)
		if err != nil {
			return err
		}
		found, err := db.QueryRow(c, selectNewest, []driver.Value{record * records.Slots, without}, func(r []driver.Value) {
			rec = &understudy.Record{Source: source, Kind: kind, Number: record, Version: r[1].(int64), Seen: db.Time(r[2].(int64))}
			rec.Final, rec.Invalidated = r[3].(int64)&records.Final != 0, r[3].(int64)&records.Invalid != 0
			for _, s := range h.catalog.Shapes() {
				if s.Kind == k && s.Slot == r[0].(int64)%records.Slots {
					rec.Shape = s.Name
				}
			}
		})
		if err != nil || !found {
			return err
		}
		e, err := h.records.Open(c).ReadEntry(rec.Version)
		if err != nil {
			return err
		}
		rec.ID, rec.Body = e.ID, cloneBody(e)
		return nil
	})
	return rec, db.WrapError(false, err, "record %s %s %s", source, kind, id)
}

// RecordAt returns a record as it was in one shape at a time; the zero time means now. It returns the version
// that was newest then, with Since when that began. If a later version replaced it, Seen equals Since, because
// no later time is certain, and Invalid is false. The body belongs to the caller. If the version's body is no
// longer stored, RecordAt returns the following version, whose Since is after at. It returns ErrNotFound if the
// record was not present then as far as known, or if no body is stored from then until it disappeared.
func (h *Records) RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error) {
	if at.IsZero() {
		return h.Record(ctx, source, kind, shape, id)
	}
	rec := &understudy.Record{Source: source, Kind: kind, Shape: shape, ID: id}
	err := h.pool.Read(ctx, func(c db.Conn) error {
		s := h.catalog.Shape(source, kind, shape)
		if s == nil {
			return understudy.ErrNotFound
		}
		number, err := names.FindRecord(c, s.Kind.Number, db.AppendID(nil, s.Kind.Prefix(), id))
		if err == nil && number == 0 {
			err = understudy.ErrNotFound
		}
		if err != nil {
			return err
		}
		_, err = h.completeRecord(c, h.records.Open(c), rec, number*records.Slots+s.Slot, at.UnixNano())
		return err
	})
	if err != nil {
		return nil, db.WrapError(false, err, "record %s %s %s at %s", source, kind, id, at.Format(time.RFC3339))
	}
	return rec, nil
}

// completeRecord fills rec with the state of a held row's record at a time.
func (h *Records) completeRecord(c db.Conn, blocks *records.Blocks, rec *understudy.Record, held, at int64) (*codec.Entry, error) {
	all, err := records.ReadPeriods(c, held, held)
	if err != nil {
		return nil, err
	}
	var one *records.Period
	var e *codec.Entry
	for i := slices.IndexFunc(all, func(s records.Period) bool { return s.Since <= at }); e == nil; i-- {
		if i < 0 || all[i].Version == 0 {
			return nil, understudy.ErrNotFound
		}
		one = &all[i]
		e, err = blocks.ReadEntry(one.Version)
		if err == nil && e.IsPruned() || records.IsMissing(err) {
			e, err = nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	rec.Number, rec.Version, rec.ID = held/records.Slots, one.Version, e.ID
	rec.Body, rec.Final = cloneBody(e), e.Final
	rec.Since, rec.Seen = db.Time(one.Since), db.Time(one.Since)
	if one.Until == 0 {
		rec.Seen, rec.Invalidated = db.Time(one.Seen), one.State&records.Invalid != 0
	}
	return e, nil
}
