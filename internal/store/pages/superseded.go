// This file decides whether a page may still be used as a fresh response, and finds the fields that have changed.

package pages

import (
	"database/sql/driver"
	"slices"

	"understudy"
	"understudy/internal/store/db"
	"understudy/internal/store/names"
	"understudy/internal/store/records"
	"understudy/spec"
)

var selectCurrent = &db.Statement{Head: "SELECT number, version, state FROM held WHERE number IN (", Tuple: "?", Tail: ")"}

// current is the stored state of a record in the shape of a page.
type current struct{ version, state int64 }

// markSuperseded sets Superseded if a page must no longer be used as a fresh response. For a list that is so if its
// kind was written to since the fetch. For any page it is so if a record in the page has another current version, was
// deleted, or was written to.
func (l *Loader) markSuperseded(c db.Conn, p *understudy.Page, row *Row, blocks *records.Blocks) error {
	if p.Superseded = p.NotStored != ""; p.Superseded {
		return nil
	}
	present := false
	if len(p.Rows) == 0 && p.Kind != "" && p.ID != "" {
		record, err := names.FindRecord(c, row.Kind.Number, db.AppendID(nil, row.Kind.prefix, p.ID))
		if err != nil {
			return err
		}
		if record != 0 {
			_, err = db.QueryRow(c, selectPresent, []driver.Value{record * records.Slots, record*records.Slots + records.Slots - 1},
				func(r []driver.Value) { present = r[0].(int64) > 0 })
			if err != nil {
				return err
			}
		}
	}
	if p.Superseded = isSuperseded(len(p.Rows), p.List, p.Kind, p.ID, p.Generation, row.Kind.generation, present); p.Superseded {
		return nil
	}
	held, err := readCurrent(c, p, row)
	if err != nil {
		return err
	}
	now := func(r *understudy.Row) current { return held[r.Record] }
	return compareVersions(p, l.catalog.SpecOf(p.Key.Source, p.Kind), now, func(r *understudy.Row) ([]byte, error) {
		e, err := blocks.ReadEntry(held[r.Record].version)
		if err != nil {
			return nil, records.SkipDamaged(err)
		}
		return e.Body, nil
	})
}

// readCurrent returns the stored state of the records of a page, by record number. A record that is not stored counts
// as deleted.
func readCurrent(c db.Conn, p *understudy.Page, row *Row) (map[int64]current, error) {
	held := make(map[int64]current, len(p.Rows))
	var args []driver.Value
	for i := range p.Rows {
		if _, ok := held[p.Rows[i].Record]; !ok {
			held[p.Rows[i].Record] = current{state: records.Gone}
			args = append(args, p.Rows[i].Record*records.Slots+row.shape.slot)
		}
	}
	for len(args) > 0 {
		n := min(db.MaxTuples, len(args))
		err := c.Query(selectCurrent, n, args[:n], func(r []driver.Value) error {
			held[r[0].(int64)/records.Slots] = current{r[1].(int64), r[2].(int64)}
			return nil
		})
		if err != nil {
			return nil, err
		}
		args = args[n:]
	}
	return held, nil
}

// compareVersions sets Superseded if a record of the page has another version now, was deleted, or was written to. For
// a list it also sets Changed to the names of the fields that have changed. For a deleted record these are its id
// fields. now returns the stored state of the record of a row, and body its current body. If several rows show the same
// record, the last row counts.
func compareVersions(p *understudy.Page, kind *spec.Kind, now func(*understudy.Row) current, body func(*understudy.Row) ([]byte,
	error)) error {
	var names []string
	done := make(map[int64]bool, len(p.Rows))
	for i := len(p.Rows) - 1; i >= 0; i-- {
		r := &p.Rows[i]
		if done[r.Record] {
			continue
		}
		done[r.Record] = true
		is := now(r)
		if is.version == r.Version && is.state&(records.Invalid|records.Gone) == 0 {
			continue
		}
		p.Superseded = true
		switch {
		case !p.List:
			return nil
		case is.state&records.Gone != 0 && kind != nil:
			names = append(names, kind.ID...)
		case is.state&records.Gone == 0 && is.version != r.Version:
			text, err := body(r)
			if err != nil {
				return err
			}
			names = slices.AppendSeq(names, records.FieldsBetween(p.Body[r.Start:r.End], text).All())
		}
	}
	p.Changed = understudy.NewNames(names...)
	return nil
}

// isSuperseded reports whether a page that refers to no records must no longer be used as a fresh response. That is so
// if its kind was written to since the fetch. This includes a page about a single record, because it has no record that
// a write could mark. It is also so if the page reports its record as deleted but the record is stored.
func isSuperseded(rows int, list bool, kind, id string, generation, current int64, present bool) bool {
	if kind == "" {
		return false
	}
	if (list || rows == 0) && generation < current {
		return true
	}
	return rows == 0 && id != "" && present
}
