// History: what was seen of a record, and how it looked at a time.

package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/names"
	"understudy/internal/store/sqlite"
)

// MaxHistory is the most versions one call of History returns.
const MaxHistory = 1000

var (
	selectKindShapes = &sqlite.Statement{Head: "SELECT slot, name FROM shape WHERE kind = ?"}
	selectShapeAt    = &sqlite.Statement{Head: "SELECT number FROM shape WHERE kind = ? AND slot = ?"}
)

// shapeNumber is the number of a kind's shape in a slot.
func shapeNumber(c *sqlite.Conn, kind, slot int64) (number int64, err error) {
	found, err := c.One(selectShapeAt, []driver.Value{kind, slot}, func(r []driver.Value) { number = r[0].(int64) })
	if err == nil && !found {
		err = sqlite.Damaged("kind %d has no shape in slot %d", kind, slot)
	}
	return number, err
}

// History returns what was seen of a record, in every shape and its goings
// too, the newest first: at most limit (0, or more than MaxHistory: MaxHistory)
// stretches of time. Bodies belong to the caller. A body that the limit of the
// store has taken is nil. A version of which a later one was seen first, and
// one that stood in a page above another of the same record, are not history.
// ErrNotFound: the record was never seen, or was forgotten.
func (db *DB) History(ctx context.Context, source, kind, id string, limit int) ([]understudy.Version, error) {
	leave, err := db.pool.Begin()
	if err != nil {
		return nil, err
	}
	defer leave()
	if limit <= 0 || limit > MaxHistory {
		limit = MaxHistory
	}
	var versions []understudy.Version
	if k := db.kind(source, kind); k != nil {
		err = db.pool.Read(ctx, func(c *sqlite.Conn) error {
			versions, err = periods{db}.history(c, k, id, limit)
			return err
		})
	} else {
		err = sqlite.CheckContext(ctx)
	}
	if err == nil && len(versions) == 0 {
		err = understudy.ErrNotFound
	}
	if err != nil {
		return nil, sqlite.Failed(false, err, "history of %s %s %s", source, kind, id)
	}
	return versions, nil
}

// periods reads how a record looked over time.
type periods struct{ *DB }

func (db periods) history(c *sqlite.Conn, k *kindRow, id string, limit int) (versions []understudy.Version, err error) {
	record, err := names.Record(c, k.number, sqlite.AppendID(nil, k.prefix, id))
	if err != nil || record == 0 {
		return nil, err
	}
	all, err := stretchesOf(c, record*slots, record*slots+slots-1)
	if err != nil {
		return nil, err
	}
	names := map[int64]string{}
	err = c.Query(selectKindShapes, 0, []driver.Value{k.number}, func(r []driver.Value) error {
		names[r[0].(int64)] = r[1].(string)
		return nil
	})
	if err != nil {
		return nil, err
	}
	blocks := db.blocks(c)
	for _, one := range merged(all) {
		if len(versions) == limit {
			break
		}
		v := understudy.Version{From: unix(one.since), Until: unix(one.until), Gone: one.version == 0}
		if !v.Gone {
			v.Number, v.Shape = one.version, names[one.held%slots]
			e, err := blocks.entry(one.version)
			if err == nil && !e.Pruned() {
				v.Body = bytesOf(e)
			} else if err != nil && !isMissing(err) {
				return nil, err
			}
		}
		versions = append(versions, v)
	}
	return versions, nil
}

// merged brings the stretches of all shapes in one order, the newest first. A
// record goes in all of them at once: that is one going, until it is seen
// again in any.
func merged(all []period) []period {
	slices.SortStableFunc(all, func(a, b period) int { return cmp.Or(-cmp.Compare(a.number, b.number), cmp.Compare(a.since, b.since)) })
	all = slices.CompactFunc(all, func(a, b period) bool { return a.number == b.number && a.version == 0 && b.version == 0 })
	next := int64(0) // when something was seen after
	for i := range all {
		if all[i].version == 0 {
			all[i].until = next
		}
		if next == 0 || all[i].since < next {
			next = all[i].since
		}
	}
	return all
}

// bytesOf is a body that does not hold its whole block in memory.
func bytesOf(e *codec.Entry) []byte { return append(make([]byte, 0, len(e.Body)), e.Body...) }

// RecordAt returns a record as it looked in one shape at a time: the version
// that was then the newest, with Since when it began. Seen is, of one that was
// replaced since, the same: that much is certain; Invalid is false. Its body
// belongs to the caller. Of a version whose body is not held any more it is the
// one after, with a Since that lies after at. The zero time is now. ErrNotFound: it
// was not there then, as far as was known, or nothing is held from then until it
// went.
func (db *DB) RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error) {
	if at.IsZero() {
		return db.Record(ctx, source, kind, shape, id)
	}
	leave, err := db.pool.Begin()
	if err != nil {
		return nil, err
	}
	defer leave()
	s := db.shape(source, kind, shape)
	if s == nil {
		return nil, sqlite.Failed(false, understudy.ErrNotFound, "record %s %s %s", source, kind, id)
	}
	rec := &understudy.Record{Source: source, Kind: kind, Shape: shape, ID: id}
	err = db.pool.Read(ctx, func(c *sqlite.Conn) error {
		number, err := names.Record(c, s.kind.number, sqlite.AppendID(nil, s.kind.prefix, id))
		if err == nil && number == 0 {
			err = understudy.ErrNotFound
		}
		if err != nil {
			return err
		}
		_, err = periods{db}.recordAt(c, db.blocks(c), rec, number*slots+s.slot, at.UnixNano())
		return err
	})
	if err != nil {
		return nil, sqlite.Failed(false, err, "record %s %s %s at %s", source, kind, id, at.Format(time.RFC3339))
	}
	return rec, nil
}

// recordAt completes rec as a held row's record looked at a time.
func (db periods) recordAt(c *sqlite.Conn, blocks *opened, rec *understudy.Record, held, at int64) (*codec.Entry, error) {
	all, err := stretchesOf(c, held, held)
	if err != nil {
		return nil, err
	}
	var one *period
	var e *codec.Entry
	for i := slices.IndexFunc(all, func(s period) bool { return s.since <= at }); e == nil; i-- {
		if i < 0 || all[i].version == 0 {
			return nil, understudy.ErrNotFound
		}
		one = &all[i]
		e, err = blocks.entry(one.version)
		if err == nil && e.Pruned() || isMissing(err) {
			e, err = nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	rec.Number, rec.Version, rec.ID = held/slots, one.version, e.ID
	rec.Body, rec.Final = bytesOf(e), e.Final
	rec.Since, rec.Seen = unix(one.since), unix(one.since)
	if one.until == 0 {
		rec.Seen, rec.Invalid = unix(one.seen), one.state&stateInvalid != 0
	}
	return e, nil
}
