// This file records writes to a kind (touches), lists the kinds of a source, and stores the origin of a source.

package store

import (
	"context"
	"database/sql/driver"
	"fmt"

	"understudy"
	"understudy/internal/store/db"
	"understudy/internal/store/names"
	"understudy/internal/store/records"
	"understudy/request"
)

var (
	updateGeneration = &db.Statement{Head: "UPDATE kind SET generation = generation + 1 WHERE number = ? RETURNING generation"}
	updateInvalid    = &db.Statement{Head: "UPDATE held SET state = state | 2 WHERE number BETWEEN ? AND ?"}
	selectStates     = &db.Statement{Head: `SELECT name, records, changes, generation, (SELECT count(*) FROM (SELECT DISTINCT c.record
		FROM shape h JOIN clock c ON c.shape = h.number WHERE h.kind = kind.number AND c.parent = 0 AND c.old = 0 AND c.clock = 0 LIMIT ` +
		maxUnclocked + `) unclocked) FROM kind WHERE source = ? ORDER BY name`}
	selectOrigin = &db.Statement{Head: "SELECT world FROM source WHERE name = ?"}
	updateOrigin = &db.Statement{Head: "UPDATE source SET world = ? WHERE name = ?"}
)

// maxUnclocked is the maximum value of KindState.Unclocked. Counting stops there.
const maxUnclocked = "1000"

// Touch records a write to a kind. It raises the kind's generation, so that lists fetched before are superseded, and
// fetches begun before fail with ErrOutdated when they are saved. If the touch names a record, each of its shapes is
// invalid until that shape is saved again. Touch returns the new generation. The touch is then on the disk and survives
// a crash of the machine. Errors wrap ErrNotStored, and the caller then has to remember the touch.
func (d *DB) Touch(ctx context.Context, t request.Invalidation) (generation int64, err error) {
	if t.Source == "" || t.Kind == "" {
		err := fmt.Errorf("%w: a touch names a source and a kind", understudy.ErrInvalid)
		return 0, db.WrapError(true, err, "touch %s %s", t.Source, t.Kind)
	}
	err = d.pool.Write(ctx, func(c db.Conn) (bool, error) {
		if err := d.catalog.Enter(ctx, c, t.Source, t.Kind, ""); err != nil {
			return false, err
		}
		kind := d.catalog.Kind(t.Source, t.Kind)
		return db.DurableTransaction(ctx, func(c db.Conn) error {
			d.pool.MarkChanged(db.Kinds)
			_, err := db.QueryRow(c, updateGeneration, []driver.Value{kind.Number}, func(r []driver.Value) { generation = r[0].(int64) })
			if err == nil {
				err = d.Nodes.AddWritten(c, kind.Number, generation, t.ID)
			}
			if err != nil || t.ID == "" {
				return err
			}
			record, err := names.FindRecord(c, kind.Number, db.AppendID(nil, kind.Prefix(), t.ID))
			if err != nil || record == 0 {
				return err
			}
			return c.Execute(updateInvalid, 0, record*records.Slots, record*records.Slots+records.Slots-1)
		})(c)
	})
	if err != nil {
		return 0, db.WrapError(true, err, "touch %s %s", t.Source, t.Kind)
	}
	return generation, nil
}

// ReadKinds returns the state of each kind of a source, sorted by name. It counts no rows. A source that is not
// in the store has no kinds.
func (d *DB) ReadKinds(ctx context.Context, source string) ([]KindState, error) {
	var states []KindState
	err := d.pool.Read(ctx, func(c db.Conn) error {
		number, _ := d.catalog.Source(source)
		return db.VisitRows(c, selectStates, []driver.Value{number}, func(r []driver.Value) {
			states = append(states, KindState{Kind: r[0].(string), Records: r[1].(int64), Changes: r[2].(int64), Generation: r[3].(int64),
				Unclocked: r[4].(int64)})
		})
	})
	return states, db.WrapError(false, err, "read kinds of %s", source)
}

// KeepOrigin stores the origin of a source: its upstream, and whatever else decides whether records are comparable.
// The first origin of a source is kept. For another origin KeepOrigin returns an error that wraps ErrInvalid and says
// what to do.
func (d *DB) KeepOrigin(ctx context.Context, source, world string) error {
	held := ""
	err := d.pool.Write(ctx, func(c db.Conn) (bool, error) {
		if err := d.catalog.Enter(ctx, c, source, "", ""); err != nil {
			return false, err
		}
		return db.Transaction(ctx, func(c db.Conn) error {
			_, err := db.QueryRow(c, selectOrigin, []driver.Value{source}, func(r []driver.Value) { held = r[0].(string) })
			if err != nil || held != "" {
				return err
			}
			return c.Execute(updateOrigin, 0, world, source)
		})(c)
	})
	if err != nil {
		return db.WrapError(true, err, "remember the world of %s", source)
	}
	if held != "" && held != world {
		return fmt.Errorf("store: %w: this folder holds %s from %s, not from %s; use another --data "+
			"folder", understudy.ErrInvalid, source, held, world)
	}
	return nil
}
