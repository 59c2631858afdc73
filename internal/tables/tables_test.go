// The tables of a source follow its records: first fill, changes, lost permissions, failures of the database.

package tables

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/pgtest"
	"understudy/internal/store/storetest"
	"understudy/spec"
	"understudy/spec/paging"
)

var databases pgtest.Pool

// shop is an API with a field of every type.
func shop(t testing.TB) *spec.Spec {
	t.Helper()
	sp := &spec.Spec{
		Name: "shop", Hosts: []spec.Host{{URL: "https://shop.example"}}, Auth: spec.Auth{Style: "none"},
		Paging: spec.Paging{Rules: paging.Rules{Style: "body", Next: "next", Size: "limit", Tokens: []string{"after"}}},
		Kinds: []*spec.Kind{{Name: "orders", ID: []string{"id"}, Clock: "at",
			Lists:     []*spec.List{{Path: "/orders", Key: "orders"}},
			Instances: []*spec.Instance{{Path: "/orders/{id}", ID: []string{"id"}}},
			Fields: []*spec.Field{{Name: "id"}, {Name: "at", Type: spec.TypeISO}, {Name: "made", Type: spec.TypeEpoch},
				{Name: "n", Type: spec.TypeInt}, {Name: "price", Type: spec.TypeDecimal}, {Name: "paid", Type: spec.TypeBool},
				{Name: "phone", Class: spec.ClassPhone},
				{Name: "note"}, {Name: "ship", Type: spec.TypeMap}, {Name: "ship.city"}, {Name: "From"}, {Name: "from"}}}},
	}
	checktest.MustNoError(t, sp.Compile(), "compile the spec")
	return sp
}

// rig is a store, the tables, and a connection of the user.
type rig struct {
	*testing.T
	db      *store.DB
	spec    *spec.Spec
	dsn     string
	user    *pgx.Conn
	tables  *Tables
	second  atomic.Int64
	steps   signal
	written map[string]string // the bodies of the records that are stored, by id

	wasErased map[string]bool
}

// signal has a value if a follower may have made a step: it has logged something, has connected, or has found no new change.
type signal chan struct{}

func (s signal) Write(line []byte) (int, error) { understudy.Wake(s); return len(line), nil }

// signallingStore is a store that tells of these steps.
type signallingStore struct {
	*store.DB
	steps signal
}

func (s signallingStore) ReadLastChange(ctx context.Context, source string) (int64, error) {
	defer understudy.Wake(s.steps)
	return s.DB.ReadLastChange(ctx, source)
}

func (s signallingStore) ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error) {
	all, err := s.DB.ReadChanges(ctx, source, after, limit)
	if len(all) == 0 {
		understudy.Wake(s.steps)
	}
	return all, err
}

const (
	base      = "/orders"
	clock     = 1_700_000_000 // of every record
	retention = 100_000 * time.Hour
)

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, spec: shop(t), dsn: databases.Database(t), written: map[string]string{},
		wasErased: map[string]bool{}, steps: make(signal, 1)}
	r.second.Store(1_780_000_000)
	var err error
	r.db, err = store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "understudy.db"),
		Specs: map[string]*spec.Spec{"shop": r.spec}, SaveTime: storetest.Patience,
		Retention: map[string]map[string]time.Duration{"shop": {"orders": retention}},
		Now:       func() time.Time { return time.Unix(r.second.Load(), 0) }})
	checktest.MustNoError(t, err, "open the store")
	t.Cleanup(func() { _ = r.db.Close() })
	r.user, err = pgx.Connect(t.Context(), r.dsn)
	checktest.MustNoError(t, err, "connect")
	t.Cleanup(func() {
		_, err := r.user.Exec(context.Background(), "DROP SCHEMA IF EXISTS shop CASCADE; DROP SCHEMA IF EXISTS mine CASCADE")
		checktest.NoError(t, err, "drop the schemas")
		_ = r.user.Close(context.Background())
	})
	r.tables = New(Options{Store: signallingStore{r.db, r.steps}, IsLeader: func() bool { return true },
		Logger: slog.New(slog.NewTextHandler(r.steps, nil))})
	t.Cleanup(func() { _ = r.tables.Close() })
	return r
}

// target returns the tables of a role.
func (r *rig) target(role string) Target {
	return Target{Source: &spec.Source{Name: "shop", Spec: r.spec}, DSN: understudy.NewSecret(r.dsn), Schema: "shop", Role: role,
		Kinds: []string{"orders"}}
}

// gate returns a gate in which the role reporting has these rules.
func (r *rig) gate(levels map[string]string, rows access.RowRules) *access.Gate {
	r.Helper()
	o := access.Options{Specs: map[string]*spec.Spec{"shop": r.spec}, Roles: access.Roles{"reporting": {"shop": levels}}, Now: time.Now}
	if rows != nil {
		o.Rows = map[string]map[string]access.RowRules{"reporting": {"shop": rows}}
	}
	g, err := access.NewWith(o)
	checktest.MustNoError(r, err, "make the gate")
	return g
}

var seeAll = map[string]string{"*": "see"}

func (r *rig) setPolicy(g *access.Gate, role string) {
	r.Helper()
	checktest.MustNoError(r, r.tables.SetPolicy(r.Context(), g, []Target{r.target(role)}), "set the policy")
}

// save stores records, given as bodies with an id.
func (r *rig) save(bodies ...string) {
	r.Helper()
	now := r.second.Add(1)
	p := &understudy.Page{Key: understudy.Key{Source: "shop", URI: fmt.Sprintf("%s?after=%d", base, now)}, Kind: "orders",
		Shape: "orders", List: true, Status: 200, At: time.Unix(now, 0), Body: []byte(`{"orders":[`)}
	for i, body := range bodies {
		var one struct{ ID string }
		checktest.MustNoError(r, json.Unmarshal([]byte(body), &one), "%s", body)
		if i > 0 {
			p.Body = append(p.Body, ',')
		}
		p.Rows = append(p.Rows, understudy.Row{ID: one.ID, Clock: clock, Start: len(p.Body), End: len(p.Body) + len(body)})
		p.Body = append(p.Body, body...)
		r.written[one.ID] = body
	}
	p.Body = append(p.Body, "]}"...)
	_, err := r.db.Save(r.Context(), p)
	checktest.MustNoError(r, err, "save")
	r.tables.Notify()
}

// remove stores that the upstream has deleted a record.
func (r *rig) remove(id string) {
	r.Helper()
	now := r.second.Add(1)
	_, err := r.db.Save(r.Context(), &understudy.Page{Key: understudy.Key{Source: "shop", URI: base + "/" + id}, Kind: "orders",
		Shape: "orders", ID: id, Status: 404, At: time.Unix(now, 0), Body: []byte("{}")})
	checktest.MustNoError(r, err, "save the 404")
	delete(r.written, id)
	r.tables.Notify()
}

// eraseRecord erases a record as a person asks for it.
func (r *rig) eraseRecord(id string) {
	r.Helper()
	_, _, err := r.db.Eraser.EraseNumber(r.Context(), "shop", "orders/"+id)
	checktest.MustNoError(r, err, "list")
	_, err = r.db.Eraser.EraseListed(r.Context(), erase.Job{Copies: r.tables.AwaitErased})
	checktest.MustNoError(r, err, "erase")
	delete(r.written, id)
}

// await waits until the tables have applied every change and are filled.
func (r *rig) await() {
	r.Helper()
	last, err := r.db.ReadLastChange(r.Context(), "shop")
	checktest.MustNoError(r, err, "read the last change")
	r.until("the tables are current", func() bool {
		return r.value("SELECT (bool_and(wanted <= filled OR kind = '') AND max(position) FILTER (WHERE kind = '') >= $1)::text "+
			"FROM shop._understudy WHERE source = 'shop'", last) == "true"
	})
}

// awaitPaused waits until the tables are paused for a reason that contains a text.
func (r *rig) awaitPaused(why string) {
	r.Helper()
	f := (*r.tables.followers.Load())["shop"]
	r.until("the tables are paused", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return strings.Contains(f.why, why)
	})
	all, err := r.tables.ReadStatus(r.Context())
	checktest.MustNoError(r, err, "status")
	checktest.Equal(r, all[0].State, "paused", "state")
}

// until waits until is returns true. It calls is after each step of the follower.
func (r *rig) until(what string, is func() bool) {
	r.Helper()
	timeout := time.After(time.Minute)
	for !is() {
		r.tables.Notify()
		select {
		case <-r.steps:
		case <-timeout:
			all, err := r.tables.ReadStatus(r.Context())
			r.Fatalf("waiting until %s took too long: %+v %v", what, all, err)
		case <-r.Context().Done():
			r.FailNow()
		}
	}
}

// value returns the text of a query of one value.
func (r *rig) value(sql string, args ...any) string {
	r.Helper()
	var text *string
	err := r.user.QueryRow(r.Context(), sql, args...).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return "no rows"
	}
	checktest.MustNoError(r, err, "%s", sql)
	if text == nil {
		return "NULL"
	}
	return *text
}

func (r *rig) exec(sql string) {
	r.Helper()
	_, err := r.user.Exec(r.Context(), sql)
	checktest.MustNoError(r, err, "%s", sql)
}

// types returns the columns of the table with their types.
func (r *rig) types() string {
	return r.value("SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute " +
		"WHERE attrelid = 'shop.orders'::regclass AND attnum > 0 AND NOT attisdropped")
}

func TestARecordBecomesATypedRow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.save(`{"id":"o1","at":"2024-05-06T07:08:09.123456+02:00","made":1700000000,"n":"42","price":"12.3450","paid":true,`+
		`"phone":"+14155550100","note":"a\u0000b\n\"c\"","ship":{"city":"Bonn","zip":[1,2]},"From":"A","from":"b",`+
		`"tags":["x,y","\"z\"",null],"big":12345678901234567890}`,
		`{"id":"o2","at":"","made":0,"n":"","price":null,"paid":null,"note":""}`)
	r.setPolicy(r.gate(seeAll, nil), understudy.RoleAll)
	r.await()
	checktest.Equal(t, r.types(), "id text, at timestamp with time zone, made timestamp with time zone, n bigint, price numeric, "+
		"paid boolean, phone text, note text, ship jsonb, from text, from_2 text, tags text[], big numeric", "types")
	checktest.Equal(t, r.value(`SELECT concat_ws('|', at AT TIME ZONE 'UTC', made AT TIME ZONE 'UTC', n, price, paid, phone, note, ship, `+
		`"from", from_2, tags, big, array_length(tags, 1)) FROM shop.orders WHERE id = 'o1'`),
		"2024-05-06 05:08:09.123456|2023-11-14 22:13:20|42|12.3450|t|+14155550100|a\u2400b\n\"c\"|"+
			`{"zip": [1, 2], "city": "Bonn"}|A|b|{"x,y","\"z\"",NULL}|12345678901234567890|3`, "the row")
	checktest.Equal(t, r.value(`SELECT num_nonnulls(at, made, n, price, paid, phone, ship, tags, big) || note FROM shop.orders `+
		`WHERE id = 'o2'`), "0", "the empty row")
	r.exec("CREATE SCHEMA mine; CREATE TABLE mine.customers (order_id text, name text); " +
		"INSERT INTO mine.customers VALUES ('o1', 'Ada')")
	joined := r.value("SELECT c.name || o.price FROM shop.orders o JOIN mine.customers c ON c.order_id = o.id")
	checktest.Equal(t, joined, "Ada12.3450", "joined")
}

func TestAValueThatDoesNotFitWidensItsColumn(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, field, first, second, typ, want string }{
		{"bigint to numeric", "x1", `7`, `1e30`, "numeric", "7,1000000000000000000000000000000"},
		{"bigint to text", "x2", `7`, `"seven"`, "text", "7,seven"},
		{"too many digits", "x3", `7`, `1e2000`, "text", "7,1e2000"},
		{"boolean to text", "x4", `true`, `"no"`, "text", "true,no"},
		{"text to jsonb", "x5", `"a"`, `{"b":1}`, "jsonb", `"a",{"b": 1}`},
		{"array to jsonb", "x6", `["a"]`, `[1]`, "jsonb", `["a"],[1]`},
		{"time to text", "made", `1700000000`, `"soon"`, "text", "1700000000,soon"},
		{"nanoseconds", "at", `"2024-01-01T00:00:00Z"`, `"2024-01-01T00:00:00.123456789Z"`, "text",
			"2024-01-01T00:00:00Z,2024-01-01T00:00:00.123456789Z"},
		{"unused text column", "phone", `null`, `["a"]`, "text[]", "{a}"},
		{"number in text", "note", `"a"`, `1.50`, "text", "a,1.50"},
		{"decimal in a string", "price", `"1.5"`, `"about 2"`, "text", "1.5,about 2"},
	}
	r := newRig(t)
	r.setPolicy(r.gate(seeAll, nil), understudy.RoleAll)
	first, second := `{"id":"o1"`, `{"id":"o2"`
	for _, c := range cases {
		first, second = first+fmt.Sprintf(",%q:%s", c.field, c.first), second+fmt.Sprintf(",%q:%s", c.field, c.second)
	}
	for _, body := range []string{first, second} {
		r.save(body + "}")
		r.await()
	}
	for _, c := range cases {
		checktest.Contains(t, ", "+r.types()+",", ", "+c.field+" "+c.typ+",", "%s", c.name)
		checktest.Equal(t, r.value(fmt.Sprintf("SELECT string_agg(%s::text, ',' ORDER BY id) FROM shop.orders", c.field)), c.want, "%s", c.name)
	}
}

// Columns, views and privileges that somebody has added stay. A dropped column returns.
func TestWhatSomebodyHasAddedStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.setPolicy(r.gate(seeAll, nil), understudy.RoleAll)
	r.save(`{"id":"o1","n":1}`)
	r.await()
	r.exec("ALTER TABLE shop.orders ADD COLUMN rating int NOT NULL DEFAULT 5; UPDATE shop.orders SET rating = 1;" +
		"CREATE VIEW shop.rated AS SELECT id, n, rating FROM shop.orders; GRANT SELECT ON shop.rated TO PUBLIC")
	r.save(`{"id":"o1","n":2,"rating":"hidden"}`, `{"id":"o2","n":3,"rating":"low"}`)
	r.await()
	checktest.NoError(t, r.tables.RequestRebuild(t.Context(), Command{Kind: "orders"}), "rebuild")
	r.await()
	checktest.Equal(t, r.value("SELECT string_agg(concat_ws(' ', v.id, v.n, v.rating, o.rating_2), ',' ORDER BY v.id) FROM shop.rated v "+
		"JOIN shop.orders o USING (id)"), "o1 2 1 hidden,o2 3 5 low", "rows")
	checktest.Equal(t, r.value("SELECT has_table_privilege('public', 'shop.rated', 'SELECT')::text"), "true", "privilege")
	r.exec("ALTER TABLE shop.orders DROP COLUMN price")
	r.save(`{"id":"o3","price":"1.5"}`)
	r.until("the column has returned", func() bool {
		return r.value("SELECT count(*)::text FROM pg_attribute WHERE attrelid = 'shop.orders'::regclass AND attname = 'price'") == "1"
	})
	r.await()
	checktest.Equal(t, r.value("SELECT price::text FROM shop.orders WHERE id = 'o3'"), "1.5", "price")
}

// A role that loses a field or records has lost them in the tables when SetPolicy returns, also before Run.
func TestALostPermissionEmptiesTheTables(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.setPolicy(r.gate(seeAll, nil), "reporting")
	r.save(`{"id":"o1","n":1,"phone":"+14155550100","note":"secret","ship":{"city":"Bonn"}}`, `{"id":"o2","n":2,"phone":"+14155550101"}`)
	r.await()
	_ = r.tables.Close()
	row := func(id string) string {
		return r.value("SELECT concat_ws('|', n, phone, note, ship) FROM shop.orders WHERE id = $1", id)
	}
	checktest.Equal(t, row("o1"), `1|+14155550100|secret|{"city": "Bonn"}`, "before")
	leads := atomic.Bool{} // without a leader only SetPolicy writes
	o := r.tables.o
	o.IsLeader = leads.Load
	r.tables = New(o)
	r.setPolicy(r.gate(map[string]string{"*": "see", "phone": "last4", "orders.note": "hide"}, nil), "reporting")
	checktest.Equal(t, row("o1"), `1|{"city": "Bonn"}`, "after levels were lost")
	leads.Store(true)
	r.await()
	checktest.Equal(t, row("o1"), `1|********0100|{"city": "Bonn"}`, "filled")
	first := access.RowRules{"orders": {Where: map[string]access.Match{"n": {In: []string{"1"}}}}}
	r.setPolicy(r.gate(map[string]string{"*": "see", "orders.ship.city": "hide"}, first), "reporting")
	checktest.Equal(t, row("o2"), "no rows", "after a row was lost")
	r.await()
	checktest.Equal(t, row("o1"), `1|+14155550100|secret|{"city": null}`, "filled")
	r.save(`{"id":"o1","n":3}`, `{"id":"o2","n":1}`)
	r.await()
	checktest.Equal(t, row("o1")+row("o2"), "no rows1", "after a change")
}

// Rows written under another policy are not changed by a process that has not decided on it.
func TestAProcessWithOtherRolesPauses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.setPolicy(r.gate(seeAll, nil), "reporting")
	r.save(`{"id":"o1","note":"secret"}`)
	r.await()
	other := New(r.tables.o)
	t.Cleanup(func() { _ = other.Close() })
	hidden := r.gate(map[string]string{"*": "see", "orders.note": "hide"}, nil)
	checktest.MustNoError(t, other.SetPolicy(t.Context(), hidden, []Target{r.target("reporting")}), "set the policy elsewhere")
	r.save(`{"id":"o1","note":"new secret"}`)
	r.awaitPaused("another process")
	checktest.Equal(t, r.value("SELECT note FROM shop.orders"), "NULL", "note")
	r.setPolicy(hidden, "reporting")
	r.await()
	checktest.Equal(t, r.value("SELECT note FROM shop.orders"), "NULL", "note")
}

// disconnect ends the sessions of the tables.
const disconnect = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"

// A database that refuses is named, and the tables go on by themselves.
func TestADatabaseThatFailsPausesTheTables(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.setPolicy(r.gate(seeAll, nil), understudy.RoleAll)
	r.save(`{"id":"o1","n":1}`)
	r.await()
	database := pgx.Identifier{r.value("SELECT current_database()::text")}.Sanitize()
	for i, c := range []struct{ fail, why, mend string }{
		{"ALTER TABLE shop.orders RENAME COLUMN n TO m; ALTER SCHEMA shop RENAME TO mine; CREATE SCHEMA shop; " +
			"CREATE TABLE shop.orders (id int)", "which Understudy has not made",
			"DROP SCHEMA shop CASCADE; ALTER SCHEMA mine RENAME TO shop; ALTER TABLE shop.orders RENAME COLUMN m TO n"},
		{"REVOKE INSERT, UPDATE ON shop.orders FROM CURRENT_USER", "permission denied", "GRANT INSERT, UPDATE ON shop.orders TO CURRENT_USER"},
		{"ALTER DATABASE " + database + " CONNECTION LIMIT 1; " + disconnect, "too many connections",
			"ALTER DATABASE " + database + " CONNECTION LIMIT -1"},
	} {
		r.exec(c.fail)
		r.save(fmt.Sprintf(`{"id":"o%d","n":%d}`, i+2, i+2))
		r.awaitPaused(c.why)
		r.exec(c.mend)
		r.await()
		r.compare()
	}
}

// The rows of records that are older than their retention are deleted before the receipt is written.
func TestRowsOfAgedRecordsAreDeletedBeforeTheReceipt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.setPolicy(r.gate(seeAll, nil), understudy.RoleAll)
	r.save(`{"id":"o1"}`, `{"id":"o2"}`)
	r.await()
	r.second.Store(clock + int64(retention/time.Second) + 1)
	listed, err := r.db.Expire(t.Context(), "shop", "orders")
	checktest.MustNoError(t, err, "expire")
	checktest.Equal(t, listed, 2, "listed records")
	done, err := r.db.Eraser.EraseListed(t.Context(), erase.Job{Copies: r.tables.AwaitErased})
	checktest.MustNoError(t, err, "erase")
	checktest.Equal(t, len(done), 1, "receipts")
	checktest.Equal(t, r.value("SELECT count(*)::text FROM shop.orders"), "0", "rows")
}
