package claims

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"understudy/bench/rig"
)

var shortIDs = claim{
	name: "short-ids", systems: "5, 6",
	says:    "A UUID as 16 bytes in place of text saves 55 % of the space, 22 characters save 38 %",
	figure:  "36, 22 and 16 bytes",
	measure: measureIDs,
}

// connect starts PostgreSQL and connects to it.
func connect(ctx context.Context) (conn *pgx.Conn, stop func() error, err error) {
	dsn, stopServer, err := rig.StartPostgres()
	if err != nil {
		return nil, nil, err
	}
	conn, err = pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, nil, errors.Join(err, stopServer())
	}
	return conn, func() error { return errors.Join(conn.Close(context.WithoutCancel(ctx)), stopServer()) }, nil
}

// measureIDs stores the same random ids in a table of each form, and asks PostgreSQL what table and index take.
func measureIDs(ctx context.Context, r *rig.Run) (f finding, err error) {
	conn, stop, err := connect(ctx)
	if err != nil {
		return finding{}, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	ids := r.Size(200_000, 5000)
	raw := make([]byte, 16*ids)
	_, _ = rand.Read(raw) // never fails
	f = finding{title: "Bytes of an id in PostgreSQL, with its index", table: [][]string{{"form", "bytes of a row", "bytes of its index", "both"}}}
	var both []float64
	for _, form := range []struct {
		name, table, column string
		write               func(id []byte) any
	}{
		{"text of 36", "ids_36", "text", func(id []byte) any {
			h := hex.EncodeToString(id)
			return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
		}},
		{"text of 22", "ids_22", "text", func(id []byte) any { return base64.RawURLEncoding.EncodeToString(id) }},
		{"uuid, 16 bytes", "ids_16", "uuid", func(id []byte) any { return [16]byte(id) }},
	} {
		if _, err := conn.Exec(ctx, "CREATE TABLE "+form.table+" (id "+form.column+")"); err != nil {
			return finding{}, err
		}
		if _, err := conn.CopyFrom(ctx, pgx.Identifier{form.table}, []string{"id"}, pgx.CopyFromSlice(ids, func(i int) ([]any, error) {
			return []any{form.write(raw[16*i : 16*i+16])}, nil
		})); err != nil {
			return finding{}, err
		}
		var rows, index int64
		if _, err := conn.Exec(ctx, "CREATE UNIQUE INDEX ON "+form.table+" (id)"); err != nil {
			return finding{}, err
		}
		if err := conn.QueryRow(ctx, "SELECT pg_relation_size($1::text::regclass), pg_indexes_size($1::text::regclass)", form.table).Scan(&rows, &index); err != nil {
			return finding{}, err
		}
		each := func(bytes int64) float64 { return float64(bytes) / float64(ids) }
		both = append(both, each(rows+index))
		f.bars = append(f.bars, rig.Bar{Name: form.name, Value: each(rows + index)})
		f.table = append(f.table, []string{form.name, rig.Figure(each(rows)), rig.Figure(each(index)), rig.Figure(each(rows + index))})
	}
	short, bytes := 100*(1-both[1]/both[0]), 100*(1-both[2]/both[0])
	f.ours = fmt.Sprintf("in PostgreSQL with an index: 16 bytes save %s %%, 22 characters %s %%", rig.Figure(bytes), rig.Figure(short))
	f.verdict = judge(bytes > 50 && short > 35, wrong)
	f.text = fmt.Sprintf("The article counts the bytes of the value. A row also has a header of 24 bytes and a pointer of 4, and an entry of an index 12, so "+
		"less of the whole is saved. %d random ids are in each table. Understudy stores known forms of ids in 17 bytes or fewer (`make bench ONLY=ids`).", ids)
	return f, nil
}

var clearedDatabases = claim{
	name: "cleared-databases", systems: "10",
	says:    "TRUNCATE is the slowest way to clear a test database, deferred DELETE the fastest",
	figure:  "60 tables: TRUNCATE 200 ms, without triggers 20 ms, deferred DELETE 10 ms",
	measure: measureClearing,
}

// linked is how many tables the test database has. Each refers to the one before.
const linked = 60

// dirty is how many of them a test writes to.
const dirty = 3

// measureClearing fills three rows of three tables and clears the database in each way, in turns.
func measureClearing(ctx context.Context, r *rig.Run) (f finding, err error) {
	conn, stop, err := connect(ctx)
	if err != nil {
		return finding{}, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if _, err := conn.Exec(ctx, "SET synchronous_commit = off"); err != nil { // as servers of tests do
		return finding{}, err
	}
	var all, off, on, deleted []string
	for i := range linked {
		name, parent := fmt.Sprintf("t%02d", i), fmt.Sprintf("t%02d", max(i-1, 0))
		if _, err := conn.Exec(ctx, fmt.Sprintf(`CREATE TABLE %s (id int PRIMARY KEY, parent int REFERENCES %s DEFERRABLE INITIALLY IMMEDIATE, name text);
			CREATE INDEX ON %s (parent)`, name, parent, name)); err != nil {
			return finding{}, err
		}
		all, deleted = append(all, name), append(deleted, "DELETE FROM "+name)
		off, on = append(off, "ALTER TABLE "+name+" DISABLE TRIGGER ALL"), append(on, "ALTER TABLE "+name+" ENABLE TRIGGER ALL")
	}
	deferred := "BEGIN; SET CONSTRAINTS ALL DEFERRED; "
	ways := []struct{ name, text string }{
		{"TRUNCATE … CASCADE", "TRUNCATE " + strings.Join(all, ", ") + " CASCADE"},
		{"triggers off, DELETE, triggers on", strings.Join(off, "; ") + "; " + strings.Join(deleted, "; ") + "; " + strings.Join(on, "; ")},
		{"deferred DELETE", deferred + strings.Join(deleted, "; ") + "; COMMIT"},
		{"deferred DELETE of the changed tables", deferred + strings.Join(deleted[:dirty], "; ") + "; COMMIT"},
	}
	took := make([][]float64, len(ways))
	for round := range r.Times(15, 1) {
		for i := range ways {
			n := (i + round) % len(ways)
			for t := range dirty {
				if _, err := conn.Exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT i, 1, 'name' FROM generate_series(1, 3) i", all[t])); err != nil {
					return finding{}, err
				}
			}
			began := time.Now()
			if _, err := conn.Exec(ctx, ways[n].text); err != nil {
				return finding{}, fmt.Errorf("%s: %w", ways[n].name, err)
			}
			took[n] = append(took[n], rig.Ms(time.Since(began)))
		}
	}
	f = finding{title: "Milliseconds to clear 60 linked tables", table: [][]string{{"way", "ms", "quartiles"}},
		bars: []rig.Bar{article("article: TRUNCATE", 200), article("article: triggers off", 20), article("article: deferred DELETE", 10)}}
	var medians []float64
	for i, w := range ways {
		b := bar(w.name, took[i])
		medians, f.bars = append(medians, b.Value), append(f.bars, b)
		f.table = append(f.table, []string{w.name, rig.Figure(b.Value), rig.Figure(b.Low) + " to " + rig.Figure(b.High)})
	}
	f.ours = fmt.Sprintf("TRUNCATE %s ms, without triggers %s, deferred DELETE %s, of the changed tables alone %s", rig.Figure(medians[0]),
		rig.Figure(medians[1]), rig.Figure(medians[2]), rig.Figure(medians[3]))
	f.verdict = judge(medians[0] > medians[1] && medians[1] > medians[2], heldThen)
	f.text = "TRUNCATE makes a new file for each table and each index, however few rows there are. Disabled triggers need a lock on each table that no " +
		"reader may share: the article's builds hung for it. Our tests clear only tables that the test has changed, and get the database from a pool. " +
		"The server flushes to the disk, but commits do not wait for it."
	return f, nil
}
