// An upgrade of one process after the other, which replaces a column.

package nodes_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/store/migrations"
	"understudy/internal/store/pgtest"
)

// The steps that the newer program has in addition. They replace page.status, the HTTP status of a stored answer, by page.code.
const expand, repeat, contract = migrations.Newest + 1, migrations.Newest + 2, migrations.Newest + 3

var newerSteps = map[string]string{
	stepFile("postgres", expand): `-- The status of a page is renamed.
-- +expand
ALTER TABLE page ADD COLUMN code BIGINT;
CREATE FUNCTION write_both() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    NEW.code := coalesce(NEW.code, NEW.status);
    NEW.status := NEW.code;
  ELSIF NEW.status <> OLD.status THEN
    NEW.code := NEW.status;
  ELSIF NEW.code IS DISTINCT FROM OLD.code THEN
    NEW.status := NEW.code;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER write_both BEFORE INSERT OR UPDATE ON page FOR EACH ROW EXECUTE FUNCTION write_both();
`,
	stepFile("postgres", repeat): `-- The rows that older programs have written.
-- +repeat
UPDATE page SET code = status WHERE number IN (SELECT number FROM page WHERE code IS NULL LIMIT 1000);
`,
	stepFile("postgres", contract): `-- Older programs use status.
DROP TRIGGER write_both ON page;
ALTER TABLE page DROP COLUMN status;
DROP FUNCTION write_both;
`,
	stepFile("sqlite", expand): "-- +expand\n", stepFile("sqlite", repeat): "-- +expand\n",
	stepFile("sqlite", contract): "ALTER TABLE page RENAME COLUMN status TO code;\n",
}

func stepFile(engine string, step int) string { return fmt.Sprintf("%s/%05d_code.sql", engine, step) }

// newerCode are the places of the code that the newer program changes, by file.
var newerCode = map[string][]string{
	"migrations/migrations.go": {fmt.Sprint("Newest       = ", migrations.Newest), fmt.Sprint("Newest       = ", contract)},
	"save.go":                  {"list, status, generation", "list, code, generation", "list = ?, status = ?", "list = ?, code = ?"},
	"pages/pages.go":           {"p.list, p.status", "p.list, p.code"},
	"verify/rows.go":           {"p.list, p.status", "p.list, p.code"},
}

// buildNewer builds the newer program, and returns its path.
func buildNewer(t *testing.T) string {
	t.Helper()
	store, err := filepath.Abs("../../internal/store")
	checktest.MustNoError(t, err, "the folder")
	dir := t.TempDir()
	replace := map[string]string{}
	write := func(name, text string) {
		path := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		checktest.MustNoError(t, os.WriteFile(path, []byte(text), 0o600), "write %s", name)
		replace[filepath.Join(store, name)] = path
	}
	for name, text := range newerSteps {
		write("migrations/"+name, text)
	}
	for name, changes := range newerCode {
		text := rig.ReadFile(t, filepath.Join(store, name))
		for i := 0; i < len(changes); i += 2 {
			checktest.MustTrue(t, strings.Contains(text, changes[i]), "%s does not have %q", name, changes[i])
			text = strings.ReplaceAll(text, changes[i], changes[i+1])
		}
		write(name, text)
	}
	overlay := filepath.Join(dir, "overlay.json")
	checktest.MustNoError(t, os.WriteFile(overlay, []byte(rig.JSON(t, map[string]any{"Replace": replace})), 0o600), "write the overlay")
	program := filepath.Join(dir, "newer")
	checktest.MustNoError(t, binary.Build(t.Context(), "../..", program, "-overlay="+overlay), "build the newer program")
	return program
}

// findBlocked returns the lines of PostgreSQL's log about statements that waited for a migration for 100 ms, or behind one that waited.
func findBlocked(t *testing.T, log string) (lines []string) {
	t.Helper()
	migrations := map[string]bool{} // by process
	for _, m := range regexp.MustCompile(`\[(\d+)\] .*SET LOCAL lock_timeout`).FindAllStringSubmatch(log, -1) {
		migrations[m[1]] = true
	}
	checktest.MustTrue(t, len(migrations) > 2, "there are %d processes of migrations", len(migrations))
	waits := regexp.MustCompile(`(still waiting for .*)\n.*DETAIL:  Process(?:es)? holding the lock: (.*)\. Wait queue: (.*)\.`).FindAllStringSubmatch(log, -1)
	for _, m := range waits {
		if slices.ContainsFunc(strings.Split(m[2]+", "+m[3], ", "), func(process string) bool { return migrations[process] }) {
			lines = append(lines, m[0])
		}
	}
	t.Logf("%d waits of 100 ms, of which %d for one of %d migrations", len(waits), len(lines), len(migrations))
	return lines
}

// TestRollingUpgrade: three processes under load are replaced by a newer program, which replaces a column. Old and new processes
// work side by side. No read fails, no write is lost, and no statement is blocked for 100 ms. The old column stays while an old
// process runs. After that, old programs do not start.
func TestRollingUpgrade(t *testing.T) {
	if !sample.IsFullRun() {
		t.Skip("it builds a second program")
	}
	newer := buildNewer(t)
	dsn := pgtest.Server(t, "deadlock_timeout=100ms", "log_statement=mod")
	g := &group{}
	g.start(t, 3, dsn)
	db, err := sql.Open("pgx", dsn)
	checktest.MustNoError(t, err, "open")
	t.Cleanup(func() { _ = db.Close() })
	query := func(text string) (n int) {
		t.Helper()
		checktest.MustNoError(t, db.QueryRow(text).Scan(&n), "%s", text)
		return n
	}
	random := rig.Random(t)
	l := startLoad(t, g, random, 3)
	awaitLoad := func() {
		t.Helper()
		reads, writes := l.reads.Load(), l.writes.Load()
		rig.Await(t, func() string {
			if l.reads.Load() < reads+100 || l.writes.Load() < writes+20 {
				return fmt.Sprint(l.reads.Load()-reads, " reads, ", l.writes.Load()-writes, " writes")
			}
			return ""
		})
	}
	awaitLoad()
	// So that more than one thousand rows are to be changed.
	_, err = db.Exec("INSERT INTO page (key, source, kind, shape, list, status, generation, at, version, sum, size, body) SELECT key + n, " +
		"source, kind, shape, 0, 200, generation, at, version, sum, size, body FROM (SELECT * FROM page WHERE kind = (SELECT number FROM kind WHERE name = 'calls') LIMIT 1) p, generate_series(1, 2500) n")
	checktest.MustNoError(t, err, "make more pages")
	replace := func(node int, program string) *binary.Server {
		t.Helper()
		former := l.places[node].set(nil)
		l.places[node].busy.Wait() // as a load balancer does
		checktest.MustNoError(t, former.Stop(), "stop")
		rig.ChooseLane(t, g.dirs[node])
		// No step gets its lock while a transaction reads, and nobody may wait behind the step.
		reader, err := db.Begin()
		checktest.MustNoError(t, err, "begin")
		_, err = reader.Exec("SELECT count(*) FROM page, counter, node")
		checktest.MustNoError(t, err, "read")
		l.work.Go(func() {
			_, err := reader.Exec("SELECT pg_sleep(2)")
			checktest.NoError(t, errors.Join(err, reader.Commit()), "read for two seconds")
		})
		s, err := binary.Start(program, g.dirs[node], "serve")
		checktest.MustNoError(t, err, "start")
		t.Cleanup(func() { checktest.NoError(t, s.Stop(), "stop") })
		g.nodes[node] = s
		l.places[node].set(s)
		awaitLoad()
		return s
	}
	waits := fmt.Sprintf(`the process \S+ \(version .+\) is older and uses what step %d of the schema removes; replace that process first`, contract)
	for _, node := range []int{0, 1} {
		s := replace(node, newer)
		checktest.True(t, regexp.MustCompile(waits).MatchString(s.Stderr()), "the newer process %d writes %s", node, s.Stderr())
		checktest.Equal(t, query("SELECT count(*) FROM page WHERE code IS DISTINCT FROM status"), 0, "rows with a difference")
		checktest.True(t, query("SELECT count(*) FROM page") > 2500, "there are too few pages")
		replace(2, rig.Program) // an old program starts beside newer ones
	}
	last := replace(2, newer)
	checktest.True(t, !strings.Contains(last.Stderr(), "is older"), "the last process writes %s", last.Stderr())
	checktest.Equal(t, query("SELECT count(*) FROM information_schema.columns WHERE table_name = 'page' AND column_name = 'status'"), 0, "old columns")
	checktest.Equal(t, query("SELECT count(*) FROM page WHERE code IS NULL"), 0, "rows without a code")
	l.check()
	for _, line := range findBlocked(t, pgtest.ReadLog(t, dsn)) {
		t.Errorf("a statement was blocked: %s", line)
	}
	old := exec.CommandContext(t.Context(), rig.Program, "serve")
	old.Dir = g.dirs[0]
	checktest.MustNoError(t, g.nodes[0].Stop(), "stop")
	out, err := old.CombinedOutput()
	checktest.True(t, err != nil && strings.Contains(string(out), "was changed by a newer Understudy"), "the old program says %s", out)
	t.Logf("%d reads, the slowest %v, %d stale; %d writes, %d refused", l.reads.Load(), time.Duration(l.slowest.Load()), l.stale.Load(),
		l.writes.Load(), l.refused.Load())
}
