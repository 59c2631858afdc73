// Tell: memory forgets what the store has let go of.

package store

import (
	"context"
	"database/sql/driver"
	"slices"

	"understudy/internal/store/sqlite"
)

var selectTakenFrom = &sqlite.Statement{Head: "SELECT DISTINCT s.name FROM erasing g JOIN source s ON s.number = g.source " +
	"WHERE g.state = 1 ORDER BY 1"}

// tellTaken tells memory of what a call that broke off has taken: whether it
// came to telling is not known.
func (r *carrying) tellTaken(ctx context.Context) error {
	if r.o.Gone == nil {
		return nil
	}
	var sources []string
	err := r.db.pool.Read(ctx, func(c *sqlite.Conn) error {
		return c.Query(selectTakenFrom, 0, nil, func(row []driver.Value) error {
			sources = append(sources, row[0].(string))
			return nil
		})
	})
	for _, name := range sources {
		if err == nil {
			err = r.o.Gone(ctx, name, nil)
		}
	}
	return err
}

// tell tells memory which kinds something went of.
func (b *batch) tell(ctx context.Context) error {
	if b.o.Gone == nil {
		return nil
	}
	if b.records[0].cause == CauseAsked {
		return b.o.Gone(ctx, b.name, nil)
	}
	var kinds []string
	for i := range b.records {
		kinds = append(kinds, b.records[i].kindName)
	}
	slices.Sort(kinds)
	return b.o.Gone(ctx, b.name, slices.Compact(kinds))
}
