// This file creates tables and columns, and empties what a role may no longer see.

package tables

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"understudy"
	"understudy/internal/access"
	"understudy/spec"
)

// stateTable is the table beside the tables of records. It has a row for each kind, and a row without a kind for the source.
const stateTable = "_understudy"

const createState = ` (
	source   text NOT NULL,
	kind     text NOT NULL,
	relation text NOT NULL DEFAULT '',   -- the table of the kind
	columns  text NOT NULL DEFAULT '[]', -- its columns, as JSON
	wanted   bigint NOT NULL DEFAULT 1,  -- the number of fills requested
	filled   bigint NOT NULL DEFAULT 0,  -- the number of the last fill that ended
	position bigint NOT NULL,            -- the change up to which the tables are current (row of the source)
	policy   text NOT NULL DEFAULT '',   -- what decides what the role may see (row of the source)
	PRIMARY KEY (source, kind))`

// column is a column that this package has created.
type column struct {
	Field string `json:"field"` // the first part of the field's name, or compositeID
	Name  string `json:"name"`
	Type  string `json:"type"`
	Used  bool   `json:"used,omitempty"` // whether the column has ever had a value

	index int    // the position among the columns of the state
	was   string // the type in the database
}

// sql returns the quoted name of the column.
func (c *column) sql() string { return pgx.Identifier{c.Name}.Sanitize() }

// state is a row of the state table.
type state struct {
	name, relation, policy   string
	wanted, filled, position int64
	columns                  []*column

	kind        *spec.Kind              // nil for the row of the source, and for a kind that the settings do not name
	byName      map[string]*column      // the columns by field
	most, least map[string]access.Level // how much the role sees of a field and of the fields in it, for fields that the spec names
}

// id returns the column that is the primary key.
func (st *state) id() *column { return st.byName[idField(st.kind)] }

// transaction is a transaction that holds the locks of a source's states. After an error it does nothing more.
type transaction struct {
	f      *follower
	ctx    context.Context
	tx     pgx.Tx
	states map[string]*state // by kind
	err    error
}

// execute runs a statement. $1 is the source if there are arguments.
func (t *transaction) execute(statement string, args ...any) {
	if t.err == nil {
		_, t.err = t.tx.Exec(t.ctx, statement, args...)
	}
}

// relation returns the quoted name of a relation in the schema.
func (f *follower) relation(name string) string {
	return pgx.Identifier{f.target.Schema, name}.Sanitize()
}

// prepare creates the schema, the state table, and the table of each kind. The first position is the newest change.
func (s *session) prepare(ctx context.Context) error {
	head, err := s.f.o.Store.ReadLastChange(ctx, s.f.source)
	if err != nil {
		return err
	}
	ctx, cancel := limit(ctx)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		t, isNew, schema := transaction{ctx: ctx, tx: tx}, false, pgx.Identifier{s.f.target.Schema}.Sanitize()
		t.err = tx.QueryRow(ctx, "SELECT pg_advisory_xact_lock(hashtext($1)) IS NOT NULL AND to_regnamespace($1) IS NULL", schema).Scan(&isNew)
		if isNew {
			t.execute("CREATE SCHEMA " + schema)
		}
		t.execute("CREATE TABLE IF NOT EXISTS " + s.f.state + createState)
		t.execute("INSERT INTO "+s.f.state+" (source, kind, position) SELECT $1, unnest($2::text[]), $3 ON CONFLICT DO NOTHING", s.f.source,
			append([]string{""}, s.f.target.Kinds...), head)
		return t.err
	})
	if err != nil {
		return err
	}
	return s.run(ctx, func(t *transaction) {
		if t.states[""].position > head { // the store was restored to an earlier state
			t.execute("UPDATE "+s.f.state+" SET position = $2, wanted = wanted + 1 WHERE source = $1", s.f.source, head)
		}
		for _, st := range t.states {
			if st.kind != nil {
				t.prepareTable(st)
			}
		}
	})
}

// lock locks the rows of the source in the state table, and reads them.
func (t *transaction) lock() error {
	rows, _ := t.tx.Query(t.ctx, "SELECT kind, relation, policy, wanted, filled, position, columns FROM "+t.f.state+
		" WHERE source = $1 ORDER BY kind FOR UPDATE", t.f.source)
	row, columns := state{}, ""
	into := []any{&row.name, &row.relation, &row.policy, &row.wanted, &row.filled, &row.position, &columns}
	_, err := pgx.ForEachRow(rows, into, func() error { // it returns the error of Query, too
		st := row
		t.states[st.name] = &st
		if slices.Contains(t.f.target.Kinds, st.name) {
			st.kind = t.f.target.Source.Spec.Kind(st.name)
		}
		err := json.Unmarshal([]byte(columns), &st.columns)
		t.f.index(&st)
		return err
	})
	if err == nil && t.states[""] == nil {
		err = fmt.Errorf("the table %s has lost its rows", t.f.state)
	}
	return err
}

// index fills the maps of a state.
func (f *follower) index(st *state) {
	st.byName, st.most, st.least = map[string]*column{}, map[string]access.Level{}, map[string]access.Level{}
	for i, c := range st.columns {
		c.index, c.was = i, c.Type
		st.byName[c.Field] = c
	}
	if st.kind == nil {
		return
	}
	for _, one := range st.kind.Fields {
		top, level := firstPart(one), f.gate.Level(f.caller, f.source, st.name, one.Name)
		if least, named := st.least[top]; !named || level < least {
			st.least[top] = level
		}
		st.most[top] = max(st.most[top], level)
	}
}

// isShown reports whether a field can have a value in the table.
func (f *follower) isShown(st *state, field string) bool {
	most, named := st.most[field]
	isSecret := func(f *spec.Field) bool { return f.Class == spec.ClassSecret && firstPart(f) == field }
	if !named {
		return f.caller.Role() == understudy.RoleAll
	}
	return most > access.Hide && (st.least[field] > access.Hide || !slices.ContainsFunc(st.kind.Fields, isSecret))
}

// firstPart returns the first part of the name of a field.
func firstPart(f *spec.Field) string {
	top, _, _ := strings.Cut(f.Name, ".")
	return top
}

// compositeID stands for the id of a record in the columns of a kind whose id consists of several fields.
const compositeID = "\x00id"

// idField returns the field that is the primary key of a kind's table, or compositeID.
func idField(k *spec.Kind) string {
	if f := k.Field(k.ID[0]); len(k.ID) == 1 && f != nil && f.RootPath() == "" && firstPart(f) == f.Name {
		return f.Name
	}
	return compositeID
}

// prepareTable creates the table of a kind with the columns of the spec. What somebody has dropped is created and filled again.
func (t *transaction) prepareTable(st *state) {
	isNew := st.relation == ""
	if isNew {
		st.relation = chooseName(st.name, map[string]bool{stateTable: true})
	}
	present, name := t.readColumns(st), t.f.relation(st.relation)
	missing := func(c *column) bool { return !present[c.Name] }
	switch id := idField(st.kind); {
	case t.err != nil || !isNew && !slices.ContainsFunc(st.columns, missing):
		return
	case isNew && len(present) > 0:
		t.err = fmt.Errorf("there is already a table %s, which Understudy has not made; rename it, or write another schema", name)
	case len(present) == 0:
		st.columns = []*column{{Field: id, Name: chooseName(id, nil), Type: text, Used: true}} // compositeID becomes _id
		t.execute("CREATE TABLE " + name + " (" + st.columns[0].sql() + " text PRIMARY KEY)")
	case missing(st.id()):
		t.err = fmt.Errorf("the table %s has lost its primary key; drop the table, and it is made again", name)
	default:
		st.columns = slices.DeleteFunc(st.columns, missing)
	}
	t.f.index(st)
	t.addFields(st)
}

// addFields adds columns for the fields of the spec that the role sees, and requests a fill.
func (t *transaction) addFields(st *state) {
	for _, f := range st.kind.Fields {
		top, typ := firstPart(f), jsonb
		if st.byName[top] != nil || !t.f.isShown(st, top) || f.Type == spec.TypeMedia {
			continue
		}
		if top == f.Name {
			if typ = text; st.least[top] == access.See { // a masked value is a text
				typ = cmp.Or(typeForSpec[f.Type], text)
			}
		}
		st.add(&column{Field: top, Type: typ})
	}
	t.storeColumns(st, true)
}

// add adds a column and returns it.
func (st *state) add(c *column) *column {
	c.index = len(st.columns)
	st.columns, st.byName[c.Field] = append(st.columns, c), c
	return c
}

// readColumns returns the names of a table's columns, also those of the system. It returns none if there is no such table.
func (t *transaction) readColumns(st *state) map[string]bool {
	rows, _ := t.tx.Query(t.ctx, "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND NOT attisdropped",
		t.f.relation(st.relation))
	present, name := map[string]bool{}, ""
	_, err := pgx.ForEachRow(rows, []any{&name}, func() error { present[name] = true; return nil })
	t.err = cmp.Or(t.err, err)
	return present
}

// maxName is the maximum length of a name in PostgreSQL, in bytes.
const maxName = 63

// chooseName returns the name of a column or table for a name of the API. It is in lower case, so that SQL finds it in any
// spelling without quotes. If taken has the name, it gets a number.
func chooseName(name string, taken map[string]bool) string {
	name = strings.ToLower(strings.ReplaceAll(strings.ToValidUTF8(name, "_"), "\x00", "_"))
	for n, suffix := 1, ""; ; n++ {
		short := name[:min(len(name), maxName-len(suffix))]
		for !utf8.ValidString(short) {
			short = short[:len(short)-1]
		}
		if short += suffix; short != "" && !taken[short] {
			return short
		}
		suffix = fmt.Sprintf("_%d", n+1)
	}
}

// conversions are the expressions that convert a column to a wider type. A column that gets another type has no value yet.
var conversions = map[string]string{numeric: "%s::numeric", text: "%s::text", jsonb: "to_jsonb(%s)"}

// storeColumns adds the columns of a state that are new, widens those whose type has changed, and stores the columns. refill
// requests a fill. So does a type for which PostgreSQL does not convert the values as the API writes them.
func (t *transaction) storeColumns(st *state, refill bool) {
	present, changes := t.readColumns(st), []string(nil)
	for _, c := range st.columns {
		switch {
		case c.Name == "":
			c.Name = chooseName(c.Field, present)
			present[c.Name] = true
			changes = append(changes, "ADD COLUMN "+c.sql()+" "+c.Type)
		case c.was != c.Type:
			using := fmt.Sprintf(cmp.Or(conversions[c.Type], "NULL -- %s\n"), c.sql())
			changes = append(changes, fmt.Sprintf("ALTER COLUMN %s TYPE %s USING %s", c.sql(), c.Type, using))
			refill = refill || c.Type != numeric
		}
	}
	if len(changes) > 0 {
		t.execute("ALTER TABLE " + t.f.relation(st.relation) + " " + strings.Join(changes, ", "))
	}
	columns, err := json.Marshal(st.columns)
	t.err = cmp.Or(t.err, err)
	t.execute("UPDATE "+t.f.state+" SET relation = $3, columns = $4, wanted = wanted + $5::boolean::int WHERE source = $1 AND kind = $2",
		t.f.source, st.name, st.relation, string(columns), refill)
}

// narrow empties what the role may not see, if the tables were last written under another policy. It also requests fills, because
// the role may see more than before. The table of a kind that the settings no longer name is emptied, because nothing would be
// erased from it any more. Once narrow has succeeded it does nothing, so that it does not undo what another process decides later.
func (s *session) narrow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, maxSweep)
	defer cancel()
	if s.f.narrowed {
		return nil
	}
	changed := false
	err := s.run(ctx, func(t *transaction) {
		if t.states[""].policy == s.f.policy {
			return
		}
		changed = true
		for _, st := range t.states {
			if st.kind != nil {
				t.clearColumns(st)
			} else if st.name != "" {
				t.execute("DELETE FROM " + s.f.relation(st.relation))
			}
		}
		t.execute("UPDATE "+s.f.state+" SET policy = $2, wanted = wanted + 1 WHERE source = $1", s.f.source, s.f.policy)
	})
	for _, kind := range s.f.target.Kinds {
		if err == nil && changed && s.f.gate.HasRowRules(s.f.caller, s.f.source) {
			err = s.sweep(ctx, kind)
		}
	}
	s.f.narrowed = err == nil
	return err
}

// clearColumns empties the columns of a kind that the role does not fully see. A fill writes what the role sees of them.
func (t *transaction) clearColumns(st *state) {
	var sets, filled []string
	for _, c := range st.columns {
		if least, named := st.least[c.Field]; least != access.See && (named || !t.f.isShown(st, c.Field)) && c != st.id() {
			sets, filled = append(sets, c.sql()+" = NULL"), append(filled, c.sql()+" IS NOT NULL")
		}
	}
	if len(sets) > 0 {
		t.execute("UPDATE " + t.f.relation(st.relation) + " SET " + strings.Join(sets, ", ") + " WHERE " + strings.Join(filled, " OR "))
	}
	t.addFields(st)
}
