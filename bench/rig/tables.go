// Tables: what each table and index of a store takes on disk.

package rig

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	_ "modernc.org/sqlite" // the driver
)

// Tables prints which tables take the disk space of a store that no process has open, from SQLite's dbstat table.
// It returns the bytes for each record that only the search by words needs: the tables of the full-text index
// words.
func (r *Run) Tables(ctx context.Context, path string, records int) (search float64, err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, "SELECT name, SUM(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	table := [][]string{{"on disk", "bytes/record"}}
	for rows.Next() {
		var name string
		var bytes int64
		if err := rows.Scan(&name, &bytes); err != nil {
			return 0, err
		}
		each := float64(bytes) / float64(records)
		if name == "words" || strings.HasPrefix(name, "words_") {
			search += each
		}
		if each >= 0.1 {
			table = append(table, []string{name, fmt.Sprintf("%.1f", each)})
		}
	}
	r.Table(table)
	return search, rows.Err()
}
