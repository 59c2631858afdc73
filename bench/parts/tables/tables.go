// Package tables is a part of the bench: records as SQL tables in a PostgreSQL database of the user.
package tables

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"understudy"
	"understudy/bench/rig"
	"understudy/internal/access"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/internal/tables"
	"understudy/spec"
	"understudy/upstream"
)

// Measure fills the table of calls from the records of a store, changes a tenth of them, and then one at a time. PostgreSQL syncs
// each commit to the disk. Store, tables and PostgreSQL share the machine.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	dsn, stop, err := rig.StartPostgres()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		return err
	}
	specs := map[string]*spec.Spec{storetest.Source: sp}
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(r.Dir, "tables.db"), Specs: specs, SaveTime: storetest.Patience,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	gate, err := access.NewWith(access.Options{Specs: specs, Now: time.Now,
		Roles: access.Roles{"reporting": {storetest.Source: {"*": "see", "phone": "last4"}}}})
	if err != nil {
		return err
	}
	records := r.Size(100_000, 3000)
	m := &measurement{run: r, db: db, world: storetest.NewWorld(5, records), at: storetest.Epoch}
	if m.user, err = pgx.Connect(ctx, dsn); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.user.Close(context.WithoutCancel(ctx))) }()
	if _, err := m.save(ctx, records, 1000); err != nil {
		return err
	}
	t := tables.New(tables.Options{Store: db, IsLeader: func() bool { return true }})
	defer func() { err = errors.Join(err, t.Close()) }()
	m.tables = t
	began := time.Now()
	if err := t.SetPolicy(ctx, gate, []tables.Target{{Source: &spec.Source{Name: storetest.Source, Spec: sp},
		DSN: understudy.NewSecret(dsn), Schema: "twilio", Role: "reporting", Kinds: []string{"calls"}}}); err != nil {
		return err
	}
	if err := m.await(ctx, "SELECT bool_and(filled >= wanted) FROM twilio._understudy WHERE kind <> '' AND $1::bigint = 0", 0); err != nil {
		return err
	}
	fill := float64(records) / time.Since(began).Seconds()
	for c := range records / 10 {
		m.world.Changed[c] = 1
	}
	began = time.Now()
	last, err := m.save(ctx, records/10, 1000)
	if err == nil {
		err = m.await(ctx, position, last)
	}
	if err != nil {
		return err
	}
	follow := float64(records/10) / time.Since(began).Seconds()
	var delays []time.Duration
	for n := range r.Times(500, 20) {
		m.world.Changed[0] = 2 + n
		began := time.Now()
		last, err := m.save(ctx, 1, 1)
		if err == nil {
			err = m.await(ctx, position, last)
		}
		if err != nil {
			return err
		}
		delays = append(delays, time.Since(began))
	}
	r.Table([][]string{rig.SpreadHead, rig.Spread("from before the save to the row", delays)})
	r.AtLeast("rows a second, first fill", fill, 5000, "")
	r.AtLeast("rows a second, changes that are saved meanwhile", follow, 5000, "")
	r.AtMost("p99 from a change to its row", rig.Ms(rig.Quantile(delays, 0.99)), 1000, "ms")
	return nil
}

// position asks whether the tables have the change with a number.
const position = "SELECT position >= $1::bigint FROM twilio._understudy WHERE kind = ''"

// measurement is the state of the part.
type measurement struct {
	run    *rig.Run
	db     *store.DB
	world  *storetest.World
	tables *tables.Tables // nil before the first fill
	user   *pgx.Conn
	at     time.Time
	pages  int
}

// save saves the newest records in pages, and returns the number of the last change.
func (m *measurement) save(ctx context.Context, records, page int) (last int64, err error) {
	for from := 0; from < records; m.pages++ {
		m.at = m.at.Add(time.Second)
		p, next := m.world.List(min(page, records-from), m.pages, from, m.at)
		from = next
		saved, err := m.db.Save(ctx, p)
		if err != nil {
			return 0, err
		}
		if n := len(saved.Changes); n > 0 {
			last = saved.Changes[n-1].N
		}
		if m.tables != nil {
			m.tables.Notify()
		}
	}
	if last == 0 {
		return 0, errors.New("nothing has changed")
	}
	return last, nil
}

// await waits until a query of the user answers true.
func (m *measurement) await(ctx context.Context, query string, n int64) error {
	for {
		var is bool
		if err := m.user.QueryRow(ctx, query, n).Scan(&is); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
		if is {
			return nil
		}
		if err := rig.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}
