// Tables: docs/how-to/tables.md with a real PostgreSQL. A reload that takes a field from the role is answered when its column is
// empty, and a receipt of an erasure when the rows are deleted.

package operation

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"understudy/e2e/rig"
	"understudy/internal/store/pgtest"
)

const tablesPage = "../../docs/how-to/tables.md"

var reports pgtest.Pool

// TestTablesAsDocumented writes the settings of the page, and runs its SQL.
func TestTablesAsDocumented(t *testing.T) {
	t.Parallel()
	dsn := reports.Database(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := conn.Exec(context.Background(), "DROP SCHEMA IF EXISTS twilio CASCADE; DROP TABLE IF EXISTS orders")
		if err != nil {
			t.Error(err)
		}
		_ = conn.Close(context.Background())
	})
	value := func(sql string) (text string) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT coalesce(("+sql+")::text, 'NULL')").Scan(&text); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return text
	}
	settings, query := "", ""
	for _, b := range rig.ReadBlocks(t, tablesPage) {
		switch b.Language {
		case "yaml":
			settings = b.Text()
		case "sql":
			query = b.Text()
		}
	}
	line := func(start string) string {
		_, rest, _ := strings.Cut(settings, "\n"+start)
		text, _, _ := strings.Cut(rest, "\n")
		return start + text
	}
	secret := filepath.Join(t.TempDir(), "reports.dsn")
	if err := os.WriteFile(secret, []byte(dsn+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tables := strings.Replace(strings.TrimSpace(line("    tables: ")), "file:reports.dsn", "file:"+secret, 1)
	server, dir := rig.StartServer(t, rig.Settings{Upstream: rig.StartAPI(t, "--records", "300").URL("slowapi"), Role: "all",
		Source: strings.TrimSpace(line("    sync: ")) + ", " + tables, Roles: line("  reporting: ") + "\n"})
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), rig.Program, append(args, "--data", filepath.Join(dir, rig.DataFolder))...).CombinedOutput()
		if err != nil {
			t.Fatalf("understudy %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	awaitCurrent := func() {
		t.Helper()
		rig.Await(t, func() string {
			lines := strings.Split(strings.TrimSpace(run("tables", "status")), "\n")
			if len(lines) == 3 && strings.HasSuffix(lines[1], " ok") && strings.HasSuffix(lines[2], " ok") {
				return ""
			}
			return strings.Join(lines, "\n")
		})
	}
	awaitCurrent()
	const priced = "SELECT count(*) > 0 FROM twilio.calls WHERE price IS NOT NULL"
	rig.Await(t, func() string { return map[string]string{"false": "no call has a price yet"}[value(priced)] })
	sid := value("SELECT sid FROM twilio.calls WHERE price IS NOT NULL ORDER BY start_time DESC LIMIT 1")
	var call struct{ Direction, From, To string }
	body := rig.Get(t, rig.Account+":"+rig.DemoToken, server.URL("twilio")+"/2010-04-01/Accounts/"+rig.Account+"/Calls/"+sid+".json").Body
	if err := json.Unmarshal([]byte(body), &call); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	person := call.To
	if call.Direction == "inbound" {
		person = call.From
	}
	_, err = conn.Exec(t.Context(), "CREATE TABLE orders (call_sid text, customer text); INSERT INTO orders VALUES ('"+sid+"', 'Ada')")
	if err != nil {
		t.Fatal(err)
	}
	query = strings.Replace(query, "1 day", "1000 days", 1)
	if got := value("SELECT string_agg(q.customer || (q.price < 0), ',') FROM (" + query + ") q"); got != "Adatrue" {
		t.Errorf("the documented query answers %s, want Adatrue", got)
	}
	if got := value("SELECT count(DISTINCT left(\"from\", 8)) || min(left(\"from\", 8)) FROM twilio.calls"); got != "1********" {
		t.Errorf("phone numbers begin with %s, want a mask", got)
	}
	if got := value("SELECT count(*) FROM information_schema.columns WHERE table_schema = 'twilio' AND column_name = 'body'"); got != "0" {
		t.Errorf("the hidden field body has %s columns", got)
	}
	run("tables", "rebuild", "calls")
	awaitCurrent()
	to := value("SELECT count(\"to\") FROM twilio.calls")
	if to == "0" {
		t.Error("no call has a number")
	}
	path := filepath.Join(dir, "understudy.yml")
	role := line("  reporting: ")
	changed := strings.Replace(rig.ReadFile(t, path), role, strings.Replace(role, "phone: last4", "phone: hide", 1), 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	token := "Bearer " + rig.CommandToken(t, dir)
	if r, err := rig.Ask("POST", "", server.URL("viewer")+"/-/reload", "", "Authorization", token); err != nil || r.Status != 200 {
		t.Fatalf("reload: %+v, %v", r, err)
	}
	if got := value("SELECT count(\"to\") FROM twilio.calls"); got != "0" {
		t.Errorf("after the reload %s calls have a number", got)
	}
	before := value("SELECT count(*) FROM twilio.calls")
	run("erase", "twilio", person, "--yes")
	if got := value("SELECT count(*) FROM twilio.calls WHERE sid = '" + sid + "'"); got != "0" || before == "0" {
		t.Errorf("after the receipt %s rows are left of %s", got, before)
	}
}
