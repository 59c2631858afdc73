package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// template is a database that Prepare has filled. It also describes what a clean copy contains.
type template struct {
	server      *server
	name        string
	tables      []table
	sequences   []sequence
	inspect     string // the statement that lists how a copy differs from the template
	hasTriggers bool   // whether there are triggers or rules, which may write when rows are deleted
}

// table is a table of the template.
type table struct {
	name string // the quoted name with the schema
	rows []byte // the table as COPY writes it; nil if the table is empty
	sum  string // the sum of the rows, from rowSum
}

// sequence is a sequence of the template with its position there.
type sequence struct {
	name     string // the quoted name with the schema
	last     int64
	isCalled bool
}

// userSchemas limits a query to the schemas that PostgreSQL did not create.
const userSchemas = `n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'`

// firstNormalOID is the lowest OID of objects that initdb did not create.
const firstNormalOID = 16384

// newTemplate creates a database, calls prepare to fill it, and reads its contents.
func newTemplate(ctx context.Context, prepare func(ctx context.Context, dsn string) error) (tmpl *template, err error) {
	s, err := shared()
	if err != nil {
		return nil, err
	}
	tmpl = &template{server: s, name: fmt.Sprintf("template_%d", lastDatabase.Add(1))}
	if err := s.administer(ctx, fmt.Sprintf(`CREATE DATABASE %s OWNER %s STRATEGY file_copy`, tmpl.name, owner)); err != nil {
		return nil, err
	}
	db := &database{server: s, template: tmpl, name: tmpl.name, dsn: s.dsn(owner, tmpl.name)}
	defer func() { err = errors.Join(err, db.close(ctx)) }() // a database with an open session cannot be copied
	if prepare != nil {
		if err := prepare(ctx, db.dsn); err != nil {
			return nil, fmt.Errorf("pgtest: prepare the template: %w", err)
		}
	}
	open, err := db.waitForSessions(ctx)
	if err != nil {
		return nil, err
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("pgtest: Prepare left sessions open:\n%s", strings.Join(open, "\n"))
	}
	if err := db.query(ctx, func(conn *pgx.Conn) error { return tmpl.read(ctx, conn) }); err != nil {
		return nil, fmt.Errorf("pgtest: read the template: %w", err)
	}
	return tmpl, s.administer(ctx, fmt.Sprintf(`ALTER DATABASE %s ALLOW_CONNECTIONS false`, tmpl.name))
}

// copy creates a database that is a copy of the template.
func (tmpl *template) copy(ctx context.Context) (*database, error) {
	name := fmt.Sprintf("test_%d", lastDatabase.Add(1))
	statement := fmt.Sprintf(`CREATE DATABASE %s OWNER %s TEMPLATE %s STRATEGY file_copy`, name, owner, tmpl.name)
	if err := tmpl.server.administer(ctx, statement); err != nil {
		return nil, err
	}
	return &database{server: tmpl.server, template: tmpl, name: name, dsn: tmpl.server.dsn(owner, name)}, nil
}

// read reads the tables and sequences of the template.
func (tmpl *template) read(ctx context.Context, conn *pgx.Conn) error {
	if err := checkForeignKeys(ctx, conn); err != nil {
		return err
	}
	var err error
	// A table that refers to another table was usually created after it. So the newest tables are cleaned first, which
	// leaves few rows for ON DELETE CASCADE.
	if tmpl.tables, err = readTables(ctx, conn); err != nil {
		return err
	}
	if tmpl.sequences, err = readSequences(ctx, conn); err != nil {
		return err
	}
	var schema string
	if err := conn.QueryRow(ctx, `SELECT `+schemaSum()).Scan(&schema); err != nil {
		return err
	}
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_trigger WHERE NOT tgisinternal)
		OR EXISTS (SELECT FROM pg_rewrite WHERE oid >= $1 AND ev_type = '4')`, firstNormalOID).Scan(&tmpl.hasTriggers)
	if err != nil {
		return err
	}
	tmpl.inspect = tmpl.inspection(schema)
	return nil
}

// checkForeignKeys returns an error if cleaning could not defer some foreign keys, or if they would behave differently in
// tests than in production. The error lists them.
func checkForeignKeys(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `
		SELECT format('%s of table %s: %s', quote_ident(c.conname), c.conrelid::regclass, pg_get_constraintdef(c.oid))
		FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
		WHERE c.contype = 'f' AND (NOT c.condeferrable OR c.condeferred OR c.confdeltype = 'r') AND `+userSchemas+`
		ORDER BY c.oid`)
	if err != nil {
		return err
	}
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fmt.Errorf("foreign keys must be DEFERRABLE INITIALLY IMMEDIATE and not ON DELETE RESTRICT; change\n%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// readNames returns the quoted names of the relations of a kind, with their schemas, the newest first.
func readNames(ctx context.Context, conn *pgx.Conn, kind string) ([]string, error) {
	rows, err := conn.Query(ctx, `
		SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = '`+kind+`' AND `+userSchemas+` ORDER BY c.oid DESC`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func readTables(ctx context.Context, conn *pgx.Conn) ([]table, error) {
	names, err := readNames(ctx, conn, "r")
	if err != nil {
		return nil, err
	}
	tables := make([]table, len(names))
	for i, name := range names {
		tables[i].name = name
		var content bytes.Buffer
		tag, err := conn.PgConn().CopyTo(ctx, &content, `COPY `+name+` TO STDOUT`)
		if err != nil {
			return nil, err
		}
		if tag.RowsAffected() == 0 {
			continue
		}
		tables[i].rows = content.Bytes()
		if err := conn.QueryRow(ctx, `SELECT `+rowSum(name)).Scan(&tables[i].sum); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

func readSequences(ctx context.Context, conn *pgx.Conn) ([]sequence, error) {
	names, err := readNames(ctx, conn, "S")
	if err != nil {
		return nil, err
	}
	sequences := make([]sequence, len(names))
	for i, name := range names {
		sequences[i].name = name
		if err := conn.QueryRow(ctx, `SELECT last_value, is_called FROM `+name).Scan(&sequences[i].last, &sequences[i].isCalled); err != nil {
			return nil, err
		}
	}
	return sequences, nil
}

// The kinds of differences that the inspection statement lists.
const (
	changedSchema   = "schema"
	changedTable    = "table"
	changedSequence = "sequence"
)

// inspection returns the statement that lists how a copy differs from the template. Each row has the kind of the
// difference, the index of the table or sequence, and the size of the table in bytes.
func (tmpl *template) inspection(schema string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `SELECT '%s', 0, 0::bigint WHERE %s <> '%s'`, changedSchema, schemaSum(), schema)
	for i, table := range tmpl.tables {
		condition := `EXISTS (SELECT FROM ONLY ` + table.name + `)`
		if table.rows != nil {
			condition = rowSum(table.name) + ` <> '` + table.sum + `'`
		}
		fmt.Fprintf(&b, "\nUNION ALL SELECT '%s', %d, pg_table_size(%s) WHERE %s", changedTable, i, quote(table.name), condition)
	}
	for i, s := range tmpl.sequences {
		fmt.Fprintf(&b, "\nUNION ALL SELECT '%s', %d, 0 FROM %s WHERE last_value <> %d OR is_called <> %t",
			changedSequence, i, s.name, s.last, s.isCalled)
	}
	return b.String()
}

// rowSum returns an expression that is equal for two tables with the same rows.
func rowSum(table string) string {
	return `(SELECT md5(coalesce(string_agg(md5(r::text), '' ORDER BY md5(r::text)), '')) FROM ONLY ` + table + ` r)`
}

// schemaSum returns an expression that changes with the schema of the database. After a change, a catalog has a new row
// version with a higher xmin, or another number of rows. Objects that initdb creates have lower OIDs and are left out.
func schemaSum() string {
	catalogs := []struct{ name, oid string }{
		{"pg_class", "oid"}, {"pg_attribute", "attnum > 0 AND attrelid"}, {"pg_attrdef", "oid"}, {"pg_constraint", "oid"},
		{"pg_index", "indexrelid"}, {"pg_trigger", "oid"}, {"pg_proc", "oid"}, {"pg_type", "oid"}, {"pg_enum", "oid"},
		{"pg_rewrite", "oid"}, {"pg_policy", "oid"},
		{"pg_sequence", "seqrelid"}, {"pg_extension", "oid"}, {"pg_statistic_ext", "oid"}, {"pg_event_trigger", "oid"},
		{"pg_publication", "oid"}, {"pg_default_acl", "oid"}, {"pg_largeobject_metadata", "oid"},
	}
	parts := []string{
		`(SELECT count(*) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database())`,
		`(SELECT count(*) || ':' || max(xmin::text::bigint) FROM pg_namespace n WHERE ` + userSchemas + `)`,
	}
	for _, c := range catalogs {
		parts = append(parts, fmt.Sprintf(`(SELECT count(*) || ':' || coalesce(max(xmin::text::bigint), 0) FROM %s WHERE %s >= %d)`,
			c.name, c.oid, firstNormalOID))
	}
	return `concat_ws(' ', ` + strings.Join(parts, ", ") + `)`
}

// quote returns a text as an SQL literal.
func quote(text string) string { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }
