// Package ids is a part of the bench: what ids take on disk.
package ids

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	_ "modernc.org/sqlite"             // the driver

	"understudy"
	"understudy/bench/rig"
	"understudy/internal/store"
	"understudy/spec"
	"understudy/upstream"
)

// before are the bytes a record of the tables of ids in PostgreSQL, as this part measured them with revision cb80b0dc and the tables before
// step 15 of the schema. Ids moved through three tables there, too.
var before = map[string]float64{"UUIDs": 308, "UUIDs with a prefix": 343}

// Measure saves the records of a made-up API whose ids are UUIDs, in both databases, and in SQLite also as earlier versions did: a store uses
// the earlier forms of ids as long as its schema says that older programs may use it. It compares the tables of ids that
// `understudy store stats` prints after `store shrink`.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	dsn, stop, err := rig.StartPostgres()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	records := r.Size(100_000, 2000)
	rows := [][]string{{"tables of ids, bytes a record", "before", "now", "smaller by"}}
	for _, form := range []struct{ name, prefix string }{{"UUIDs", ""}, {"UUIDs with a prefix", "cus_"}} {
		for _, engine := range []string{"SQLite", "PostgreSQL"} {
			bytes := [2]float64{before[form.name]}
			for n, old := range []bool{true, false} {
				path := filepath.Join(r.Dir, fmt.Sprintf("ids%d%v.db", len(rows), old))
				if engine == "PostgreSQL" && old {
					continue
				} else if engine == "PostgreSQL" {
					path = dsn + map[bool]string{true: "&", false: "?"}[strings.Contains(dsn, "?")] + "search_path=" + fmt.Sprintf("ids%d", len(rows))
				}
				if bytes[n], err = measure(ctx, path, form.prefix, records, old); err != nil {
					return fmt.Errorf("%s in %s: %w", form.name, engine, err)
				}
			}
			r.AtLeast(form.name+", "+engine+", smaller by", 100*(1-bytes[1]/bytes[0]), 50, "%")
			rows = append(rows, []string{form.name + ", " + engine, rig.Figure(bytes[0]), rig.Figure(bytes[1]),
				fmt.Sprintf("%.0f %%", 100*(1-bytes[1]/bytes[0]))})
		}
	}
	r.Table(rows)
	return nil
}

// measure returns the bytes a record of the tables of ids.
func measure(ctx context.Context, path, prefix string, records int, old bool) (each float64, err error) {
	o := store.Options{Path: path, Now: time.Now}
	if prefix != "" {
		sp, err := upstream.ReadBuiltIn("stripe") // it gives customers this prefix
		if err != nil {
			return 0, err
		}
		o.Specs = map[string]*spec.Spec{"api": sp}
	}
	if schema := path[strings.LastIndex(path, "=")+1:]; store.IsPostgreSQL(path) {
		if err := execute(ctx, "pgx", path, "CREATE SCHEMA "+schema); err != nil {
			return 0, err
		}
	}
	if old {
		db, err := store.Open(ctx, o)
		if err != nil {
			return 0, err
		}
		if err := errors.Join(db.Close(), execute(ctx, "sqlite", path, "UPDATE counter SET needs = 0")); err != nil {
			return 0, err
		}
	}
	db, err := store.Open(ctx, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for from := 0; from < records; from += 100 {
		p := &understudy.Page{Key: understudy.Key{Source: "api", URI: fmt.Sprint("/customers?page=", from)}, Kind: "customers", Shape: "customers",
			Status: 200, At: time.Unix(1_780_000_000, 0)}
		for n := from; n < from+100; n++ {
			x := sha256.Sum256(fmt.Append(nil, n))
			id := fmt.Sprintf("%s%x-%x-%x-%x-%x", prefix, x[:4], x[4:6], x[6:8], x[8:10], x[10:16])
			start := len(p.Body)
			p.Body = fmt.Appendf(p.Body, `{"id":%q,"name":"Customer %d","active":%v}`, id, n%977, n%3 == 0)
			p.Rows = append(p.Rows, understudy.Row{ID: id, Start: start, End: len(p.Body)})
		}
		if _, err := db.Save(ctx, p); err != nil {
			return 0, err
		}
	}
	if _, _, err := db.Shrink(ctx); err != nil {
		return 0, err
	}
	stats, err := db.ReadStats(ctx)
	for _, one := range stats.Tables {
		if strings.HasPrefix(one.Name, "name") {
			each += float64(one.Bytes) / float64(records)
		}
	}
	return each, err
}

// execute runs one statement.
func execute(ctx context.Context, driver, path, statement string) (err error) {
	db, err := sql.Open(driver, path)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}
