// This file finds the shortest forms of the ids of each kind, and writes the tables again in these forms.

package names

import (
	"database/sql/driver"
	"errors"
	"strings"

	"understudy/internal/store/db"
)

// Form says how many bytes the ids of a kind take, and how many in the shortest form.
type Form struct {
	Source string `json:"source"`
	Kind   string `json:"kind"`
	IDs    int64  `json:"ids"`
	Bytes  int64  `json:"bytes"` // the lengths of the stored ids
	Short  int64  `json:"short"` // their lengths in the shortest form
	Saves  int64  `json:"saves"` // how much smaller the tables of ids are then

	kind      int64
	now, best string // the values of column prefix
}

var (
	// Before step 14 of the schema, processes may live that do not know db.AllForms.
	selectForms = &db.Statement{Head: "SELECT k.number, s.name, k.name, k.prefix, (SELECT count(*) FROM names WHERE kind = k.number) " +
		"FROM kind k JOIN source s ON s.number = k.source CROSS JOIN counter c WHERE c.needs >= 14 ORDER BY s.name, k.name"}
	// 0 in SQLite. In PostgreSQL 1, and 2 if the tables are still as before step 15 of the schema.
	selectLayout = &db.Statement{Head: "SELECT 0", Standard: "SELECT CASE atttypid WHEN CAST('bigint' AS regtype) THEN 2 ELSE 1 END " +
		"FROM pg_attribute WHERE attrelid = CAST('name' AS regclass) AND attname = 'kind'"}
	selectIDs    = &db.Statement{Head: "SELECT id FROM names WHERE kind = ?", Whole: true}
	selectIDAt   = &db.Statement{Head: "SELECT id FROM names WHERE kind = ? ORDER BY id LIMIT 1 OFFSET ?"}
	selectRows   = &db.Statement{Head: "SELECT id, record, erased FROM names WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"}
	insertRow    = &db.Statement{Head: "INSERT INTO name_new (kind, id, record, erased) VALUES ", Tuple: "(?, ?, ?, ?)"}
	updatePrefix = &db.Statement{Head: "UPDATE kind SET prefix = ? WHERE number = ?"}
	limitWait    = &db.Statement{Head: "SELECT 1", Standard: "SELECT set_config('lock_timeout', '1s', true)"}
)

// FindForms reads all ids. It returns the form of each kind, in the order of their names.
func FindForms(c db.Conn) (all []Form, err error) {
	err = db.VisitRows(c, selectForms, nil, func(r []driver.Value) {
		all = append(all, Form{kind: r[0].(int64), Source: r[1].(string), Kind: r[2].(string), now: r[3].(string), IDs: r[4].(int64)})
	})
	layout := int64(0)
	if err == nil {
		_, err = db.QueryRow(c, selectLayout, nil, func(r []driver.Value) { layout = r[0].(int64) })
	}
	for i := range all {
		if err == nil {
			err = all[i].measure(c, layout)
		}
	}
	return all, err
}

// measure compares the present form with two others: with the present prefix, and with what most ids begin with.
func (f *Form) measure(c db.Conn, layout int64) error {
	common, err := f.findPrefix(c)
	if err != nil {
		return err
	}
	prefixes := [...]string{f.now, db.AllForms + strings.TrimPrefix(f.now, db.AllForms), db.AllForms + common}
	var lengths, bytes [len(prefixes)]int64
	before, id := int64(0), []byte(nil)
	err = c.Query(selectIDs, 0, []driver.Value{f.kind}, func(r []driver.Value) error {
		stored := r[0].([]byte)
		before += measureID(len(stored), layout)
		text, err := db.DecodeID(f.now, stored)
		for i, prefix := range prefixes {
			id = db.AppendID(id[:0], prefix, text)
			lengths[i], bytes[i] = lengths[i]+int64(len(id)), bytes[i]+measureID(len(id), min(layout, 1))
		}
		return err
	})
	f.best, f.Bytes, f.Short = f.now, lengths[0], lengths[0]
	for i, prefix := range prefixes {
		if saves := before - bytes[i]; saves > f.Saves && saves >= f.IDs { // less is not worth writing them again
			f.best, f.Short, f.Saves = prefix, lengths[i], saves
		}
	}
	return err
}

// measureID returns the bytes that an id of that length takes, in SQLite without those that are the same for each id. PostgreSQL aligns
// rows and entries of the index, whose pages are filled to 90 %, to 8 bytes.
func measureID(length int, layout int64) int64 {
	align := func(n int) int64 { return int64(n+7) / 8 * 8 }
	switch layout {
	case 1:
		return align(39+length) + 4 + (align(13+length)+4)*10/9
	case 2:
		return align(33+length) + 20 + (align(17+length)+4)*10/9
	}
	return int64(length)
}

// findPrefix returns what most ids of the kind begin with: what three of them have in common, up to a separator.
func (f *Form) findPrefix(c db.Conn) (common string, err error) {
	for quarter := range int64(3) {
		text := ""
		_, qerr := db.QueryRow(c, selectIDAt, []driver.Value{f.kind, f.IDs * (quarter + 1) / 4}, func(r []driver.Value) {
			text, err = db.DecodeID(f.now, r[0].([]byte))
		})
		if err = errors.Join(err, qerr); err != nil {
			return "", err
		}
		if quarter == 0 {
			common = text
		}
		for !strings.HasPrefix(text, common) {
			common = common[:len(common)-1]
		}
	}
	return common[:strings.LastIndexAny(common, "_/:")+1], nil
}

// Rewrite writes the ids of all kinds in their shortest forms to a new table. Replace puts it in the place of the others, in the same
// transaction.
func Rewrite(c db.Conn, all []Form) error {
	if err := create(c, "name_new"); err != nil {
		return err
	}
	for i := range all {
		if err := all[i].rewrite(c); err != nil {
			return err
		}
	}
	return addKey(c, "name_new")
}

// rewrite writes the ids of one kind to the new table.
func (f *Form) rewrite(c db.Conn) error {
	for id := []byte{}; ; {
		var args []driver.Value
		err := c.Query(selectRows, 0, []driver.Value{f.kind, id, recentIDs}, func(r []driver.Value) error {
			id = r[0].([]byte)
			text, err := db.DecodeID(f.now, id)
			args = append(args, f.kind, db.AppendID(nil, f.best, text), r[1], r[2])
			return err
		})
		if err == nil && len(args) == 0 {
			return c.Execute(updatePrefix, 0, f.best, f.kind)
		}
		if err == nil {
			err = db.ExecuteMany(c, insertRow, 4, args)
		}
		if err != nil {
			return err
		}
	}
}

// Replace replaces the tables by the one that Rewrite has written. It waits for readers of other processes, but not for long.
func Replace(c db.Conn) error {
	if _, err := db.QueryRow(c, limitWait, nil, func([]driver.Value) {}); err != nil {
		return err
	}
	var err error
	change := func(text string) {
		if err == nil {
			err = c.QueryOnce(text, nil, func([]driver.Value) error { return nil })
		}
	}
	change("DROP VIEW names")
	var parts []string
	for _, table := range []string{"name_recent", "name_middle", "name"} {
		parts = append(parts, "SELECT kind, id, record, erased FROM "+table)
		change("DROP TABLE " + table)
		if err == nil && table != "name" {
			err = errors.Join(create(c, table), addKey(c, table))
		}
	}
	change("ALTER TABLE name_new RENAME TO name")
	change("CREATE VIEW names AS " + strings.Join(parts, " UNION ALL "))
	return err
}

// create creates a table of ids, in PostgreSQL without its key. In this order PostgreSQL leaves no space between the columns.
func create(c db.Conn, table string) error {
	return c.Execute(&db.Statement{Head: "CREATE TABLE " + table + " (kind INTEGER NOT NULL, id BLOB NOT NULL, record INTEGER NOT NULL, " +
		"erased INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (kind, id)) STRICT, WITHOUT ROWID",
		Standard: "CREATE TABLE " + table + " (record BIGINT NOT NULL, kind INTEGER NOT NULL, erased SMALLINT NOT NULL DEFAULT 0, " +
			"id BYTEA NOT NULL)"}, 0)
}

// addKey adds the key in PostgreSQL. An index of rows that exist already is smaller.
func addKey(c db.Conn, table string) error {
	return c.Execute(&db.Statement{Head: "SELECT 1", Standard: "ALTER TABLE " + table + " ADD PRIMARY KEY (kind, id)"}, 0)
}
