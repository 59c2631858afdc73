// The tables of records in a database of the user, while processes that write them are killed.

package nodes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// reports is a database with the table of a group's messages.
type reports struct {
	dsn  string
	conn *pgx.Conn
}

func newReports(t *testing.T) *reports {
	t.Helper()
	r := &reports{dsn: databases.Database(t)}
	var err error
	r.conn, err = pgx.Connect(t.Context(), r.dsn)
	checktest.MustNoError(t, err, "connect")
	t.Cleanup(func() {
		_, err := r.conn.Exec(context.Background(), "DROP SCHEMA IF EXISTS twilio CASCADE")
		checktest.NoError(t, err, "drop the schema")
		_ = r.conn.Close(context.Background())
	})
	return r
}

// source returns the settings of a source whose messages are in the table.
func (r *reports) source() string {
	return fmt.Sprintf("tables: {dsn: %q, schema: twilio, role: all, kinds: [messages]}", r.dsn)
}

// noteWriters makes the table note which sessions write it, and whether another one has written in an open transaction.
const noteWriters = `
	CREATE TABLE twilio.writers (pid int PRIMARY KEY, together bool);
	CREATE FUNCTION twilio.note_writer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO twilio.writers AS w VALUES (pg_backend_pid(), NOT pg_try_advisory_xact_lock(39))
			ON CONFLICT (pid) DO UPDATE SET together = w.together OR EXCLUDED.together;
		RETURN NULL;
	END $$;
	CREATE TRIGGER note BEFORE INSERT OR UPDATE OR DELETE ON twilio.messages EXECUTE FUNCTION twilio.note_writer()`

func (r *reports) noteWriters(t *testing.T) {
	t.Helper()
	rig.Await(t, func() string {
		if _, err := r.conn.Exec(t.Context(), noteWriters); err != nil {
			return "there is no table yet: " + err.Error()
		}
		return ""
	})
}

// check compares the table with the messages of the feed and with the texts that were written. It returns how many sessions have
// written the table.
func (r *reports) check(t *testing.T, l *load) (writers int) {
	t.Helper()
	rig.Await(t, func() string {
		stored := map[string]bool{}
		for _, change := range l.g.readChanges(t, 0) {
			if what, id, _ := strings.Cut(change, " "); !strings.HasPrefix(id, "CA") {
				stored[id] = what != "deleted"
			}
		}
		rows, err := r.conn.Query(t.Context(), "SELECT sid, coalesce(body, '') FROM twilio.messages")
		checktest.MustNoError(t, err, "read the table")
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[message])
		checktest.MustNoError(t, err, "read the table")
		for _, m := range all {
			if !stored[m.Sid] {
				return "no change has added the row " + m.Sid
			}
			if text, is := l.written[m.Sid]; is && text != m.Body {
				return fmt.Sprintf("row %s has the text %q, not %q", m.Sid, m.Body, text)
			}
			delete(stored, m.Sid)
		}
		for id, is := range stored {
			if is {
				return "there is no row " + id
			}
		}
		return ""
	})
	together := 0
	err := r.conn.QueryRow(t.Context(), "SELECT count(*), count(*) FILTER (WHERE together) FROM twilio.writers").Scan(&writers, &together)
	checktest.MustNoError(t, err, "read the writers")
	checktest.Equal(t, together, 0, "sessions that wrote while another did")
	return writers
}
