// Processes that reach their database through PgBouncer in transaction mode.

package nodes_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/store/pgtest"
)

// behindPgBouncer returns the DSN of an empty database behind PgBouncer, and the DSN of the database itself.
func behindPgBouncer(t *testing.T) (through, dsn string) {
	t.Helper()
	dsn = databases.Database(t)
	return pgtest.Bouncer(t, dsn) + "&default_query_exec_mode=exec", dsn
}

// TestTwoProcessesBehindPgBouncer: processes behind PgBouncer answer as one, also after one of them was killed.
func TestTwoProcessesBehindPgBouncer(t *testing.T) {
	t.Parallel()
	through, dsn := behindPgBouncer(t)
	g := &group{}
	g.start(t, 2, through)
	const list = "/Messages.json?PageSize=20"
	first := g.ask(t, 0, http.MethodGet, list, "")
	checktest.MustEqual(t, first.Status, 200, "status")
	r := g.ask(t, 1, http.MethodGet, list, "")
	checktest.Equal(t, string(r.Body), string(first.Body), "list at the other process")
	checktest.True(t, strings.Contains(r.Header.Get("Cache-Status"), "hit"), "Cache-Status at the other process is %q", r.Header.Get("Cache-Status"))
	checktest.Equal(t, rig.ReadAPIStats(t, g.api).ByTarget[rig.Base+list], 1, "requests upstream")
	write := func(m message, writer int) {
		t.Helper()
		path := "/Messages/" + m.Sid + ".json"
		for node := range g.nodes {
			checktest.MustEqual(t, parse[message](t, g.ask(t, node, http.MethodGet, path, "")).Body, m.Body, "text at node %d", node)
		}
		checktest.MustEqual(t, g.ask(t, writer, http.MethodPost, path, "Body=").Status, 200, "status of a write at node %d", writer)
		for node := range g.nodes {
			checktest.Equal(t, parse[message](t, g.ask(t, node, http.MethodGet, path, "")).Body, "", "text at node %d after the write", node)
		}
	}
	all := parse[struct{ Messages []message }](t, first).Messages
	checktest.MustEqual(t, len(all), 20, "messages")
	for i, m := range all[:10] {
		write(m, i%2)
	}
	g.nodes[0].Kill()
	path := "/Messages/" + all[10].Sid + ".json"
	checktest.Equal(t, g.ask(t, 1, http.MethodPost, path, "Body=").Status, 200, "status of a write after the other process was killed")
	checktest.Equal(t, parse[message](t, g.ask(t, 1, http.MethodGet, path, "")).Body, "", "text after that write")
	g.nodes[0] = rig.StartAgain(t, g.dirs[0])
	write(all[11], 0)
	for _, s := range g.nodes {
		checktest.NoError(t, s.Stop(), "stop")
	}
	checktest.Equal(t, pgtest.Query(t, dsn, "SELECT count(*) FROM node WHERE alive > extract(epoch FROM clock_timestamp()) * 1e9"), "0", "nodes with a lease")
}

// TestMoveThroughPgBouncer: a store is moved to a database behind PgBouncer, and back. Each server answers what the one before has stored.
func TestMoveThroughPgBouncer(t *testing.T) {
	t.Parallel()
	through, _ := behindPgBouncer(t)
	g := &group{api: rig.StartAPI(t, "--records", "200").URL("slowapi")}
	set := g.settings("")
	set.Store = ""
	s, dir := rig.StartServer(t, set)
	config, file := filepath.Join(dir, "understudy.yml"), filepath.Join(dir, rig.DataFolder, "understudy.db")
	onSQLite := rig.ReadFile(t, config)
	g.nodes = append(g.nodes, s)
	const list = "/Calls.json?PageSize=100"
	first := g.ask(t, 0, http.MethodGet, list, "")
	checktest.MustEqual(t, first.Status, 200, "status")
	for _, next := range []struct{ dsn, settings string }{
		{through, "store: {dsn: \"" + through + "\"}\n" + onSQLite},
		{file, onSQLite},
	} {
		checktest.MustNoError(t, g.nodes[0].Stop(), "stop")
		if next.dsn == file {
			for _, path := range []string{file, file + "-wal", file + "-shm"} {
				checktest.NoError(t, os.RemoveAll(path), "remove the older file")
			}
		}
		cmd := exec.CommandContext(t.Context(), rig.Program, "store", "move", "--to", next.dsn)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		checktest.MustNoError(t, err, "move to %s: %s", next.dsn, out)
		checktest.MustNoError(t, os.WriteFile(config, []byte(next.settings), 0o600), "write the settings")
		g.nodes[0] = rig.StartAgain(t, dir)
		r := g.ask(t, 0, http.MethodGet, list, "")
		checktest.Equal(t, string(r.Body), string(first.Body), "list after the move to %s", next.dsn)
		checktest.Equal(t, rig.ReadAPIStats(t, g.api).ByTarget[rig.Base+list], 1, "requests upstream after the move to %s", next.dsn)
	}
}
