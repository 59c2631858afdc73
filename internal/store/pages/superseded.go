// Superseded: whether a held page may still be answered as fresh, and by which
// fields it may not.

package pages

import (
	"database/sql/driver"
	"slices"

	"understudy"
	"understudy/internal/store/names"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
	"understudy/spec"
)

var selectCurrent = &sqlite.Statement{Head: "SELECT number, version, state FROM held WHERE number IN (", Tuple: "?", Tail: ")"}

// current is what is held of a record in the shape of a page.
type current struct{ version, state int64 }

// is reports whether that is the version a page shows.
func (h current) is(version int64) bool {
	return h.version == version && h.state&(records.Invalid|records.Gone) == 0
}

// supersede finds out whether a page may no longer be answered as fresh: its
// kind was touched since it was fetched (lists), or a record in it has another
// current version, is gone, or was touched.
func (l *Loader) supersede(c *sqlite.Conn, p *understudy.Page, row *Row, blocks *records.Blocks) error {
	if p.Superseded = p.NotStored != ""; p.Superseded {
		return nil
	}
	present := false
	if len(p.Rows) == 0 && p.Kind != "" && p.ID != "" {
		record, err := names.Record(c, row.Kind.Number, sqlite.AppendID(nil, row.Kind.prefix, p.ID))
		if err != nil {
			return err
		}
		if record != 0 {
			_, err = c.One(selectPresent, []driver.Value{record * records.Slots, record*records.Slots + records.Slots - 1},
				func(r []driver.Value) { present = r[0].(int64) > 0 })
			if err != nil {
				return err
			}
		}
	}
	if p.Superseded = pageSuperseded(len(p.Rows), p.List, p.Kind, p.ID, p.Generation, row.Kind.generation, present); p.Superseded {
		return nil
	}
	held, err := currently(c, p, row)
	if err != nil {
		return err
	}
	now := func(r *understudy.Row) current { return held[r.Record] }
	return supersede(p, l.catalog.SpecOf(p.Key.Source, p.Kind), now, func(r *understudy.Row) ([]byte, error) {
		e, err := blocks.Entry(held[r.Record].version)
		if err != nil {
			return nil, records.SkipDamaged(err)
		}
		return e.Body, nil
	})
}

// currently is what is held of the records of a page, by their numbers; one that
// is not there is left out.
func currently(c *sqlite.Conn, p *understudy.Page, row *Row) (map[int64]current, error) {
	held := make(map[int64]current, len(p.Rows))
	var args []driver.Value
	for i := range p.Rows {
		if _, ok := held[p.Rows[i].Record]; !ok {
			held[p.Rows[i].Record] = current{state: records.Gone}
			args = append(args, p.Rows[i].Record*records.Slots+row.shape.slot)
		}
	}
	for len(args) > 0 {
		n := min(sqlite.MaxTuples, len(args))
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

// supersede says whether a record that a page shows has another version now, is
// gone, or was touched; of a list also which fields tell so, of one that is gone
// those of its id. now is what is held of a row's record, body what it says now.
// Of a record that stands twice, the last row counts.
func supersede(p *understudy.Page, kind *spec.Kind, now func(*understudy.Row) current, body func(*understudy.Row) ([]byte,
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
		if is.is(r.Version) {
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
	p.Changed = understudy.NamesOf(names...)
	return nil
}

// pageSuperseded says whether a page that refers to no record must not be
// answered as fresh: its kind was touched since (for an instance too, since
// there is no record that could be marked), or the record it says is gone is
// held after all.
func pageSuperseded(rows int, list bool, kind, id string, generation, current int64, present bool) bool {
	if kind == "" {
		return false
	}
	if (list || rows == 0) && generation < current {
		return true
	}
	return rows == 0 && id != "" && present
}
