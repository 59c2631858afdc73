// This file lists the tables that are copied, and makes the statements for each of them.

package move

import (
	"fmt"
	"strings"

	"understudy/internal/store/db"
)

// table is a table of the schema. The columns of its key come first.
type table struct {
	name                       string
	small                      bool // all of it is read at once
	key, columns               []string
	count, scan, insert, clear *db.Statement
}

// tables are the tables that are copied, each after those that it refers to. Not copied are the indexes of terms and words,
// which are built again, and what belongs to running processes (node, node_claim, job_kind, written, budget). A minus marks a column
// whose order falls, as in SQLite's tree.
var tables = []*table{
	newTable("source", "number", "name world change page"),
	newTable("kind", "number", "source name prefix records changes generation parent terms words"),
	newTable("shape", "number", "kind slot name"),
	// The other columns count what running processes must read again. They begin at 0.
	newTable("counter", "record", "block evicted_pages evicted_versions evicted_at erased seal"),
	newTable("name_recent", "kind id", "record erased"),
	newTable("name_middle", "kind id", "record erased"),
	newTable("name", "kind id", "record erased"),
	newTable("held", "number", "version hash seen state stretch since place"),
	newTable("past", "held number", "version since tag"),
	newTable("block", "number", "shape count size body"),
	newTable("made", "block", "at"),
	newTable("page", "number", "key source kind shape list status generation at version sum size body read"),
	newTable("change", "source n", "count kind what record version at fields"),
	newTable("fields", "number", "names"),
	newTable("parent", "number", "id"),
	newTable("clock", "shape parent old -clock -record", ""),
	newTable("place", "kind -at", "record"),
	newTable("span", "shape field", "least most"),
	newTable("job", "number", "kind key payload lane once attempts weight run_after expires_at state created attempt again fence worker "+
		"error started ended lease_end stop done total note mark"),
	newTable("job_plan", "kind", "last"),
	newTable("kv", "name", "value"),
	newTable("series", "number", "source kind field"),
	newTable("sample", "series at", "value"),
	newTable("erasure", "number", "source cause hash begun done records versions pages files"),
	newTable("erasing", "number", "erasure source kind record cause bound fields at state"),
	newTable("claim", "name", "at result"),
	newTable("annotation", "number", "kind record id author at text"),
}

// numbered are the tables whose rows the database numbers.
var numbered = []string{"source", "kind", "shape", "page", "fields", "parent", "job", "series", "erasure", "erasing", "annotation"}

// newTable returns a table with the statements for it.
func newTable(name, key, others string) *table {
	t := &table{name: name, key: strings.Fields(strings.ReplaceAll(key, "-", ""))}
	t.small = name == "span" || name == "job_plan" || name == "kv"
	t.columns = append(append([]string{}, t.key...), strings.Fields(others)...)
	order := strings.Fields(key)
	for i, column := range order {
		if strings.HasPrefix(column, "-") {
			order[i] = column[1:] + " DESC"
		}
	}
	from, all := " FROM "+name, strings.Join(t.columns, ", ")
	if name == "kv" {
		from += " WHERE name <> '" + mark + "'"
	}
	t.count = &db.Statement{Head: "SELECT count(*)" + from}
	t.scan = &db.Statement{Head: "SELECT " + all + from + " ORDER BY " + strings.Join(order, ", "), Whole: true}
	t.insert = &db.Statement{Head: fmt.Sprintf("INSERT INTO %s (%s) VALUES ", name, all),
		Tuple: "(?" + strings.Repeat(", ?", len(t.columns)-1) + ")"}
	t.clear = &db.Statement{Head: "DELETE" + from}
	return t
}
