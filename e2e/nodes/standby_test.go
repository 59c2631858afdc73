// A standby that takes over and lacks the last writes.

package nodes_test

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/store/pgtest"
)

// killServer kills a PostgreSQL server.
func killServer(t *testing.T, dsn string) {
	t.Helper()
	u, err := url.Parse(dsn)
	checktest.MustNoError(t, err, "parse %s", dsn)
	first, _, _ := strings.Cut(rig.ReadFile(t, filepath.Join(u.Query().Get("host"), "data", "postmaster.pid")), "\n")
	server, err := strconv.Atoi(first)
	checktest.MustNoError(t, err, "the id of the server's process")
	checktest.MustNoError(t, syscall.Kill(server, syscall.SIGQUIT), "kill the server")
}

// TestPromotedStandbyThatLags: the database's standby does not receive the last writes, and is promoted. No process calls fresh what
// was before these writes. Cursors of the feed behind the last change that the standby has are refused.
func TestPromotedStandbyThatLags(t *testing.T) {
	t.Parallel()
	settings := []string{"wal_level=replica", "max_wal_senders=4"}
	primary := pgtest.Server(t, settings...)
	replication, throughReplication := newWire(t, primary)
	standby := pgtest.Standby(t, throughReplication, settings...)
	w, dsn := newWire(t, primary)
	g := &group{api: rig.StartAPI(t, "--latency", "20ms", "--records", "300").URL("slowapi")}
	for range 2 {
		set := g.settings(dsn)
		set.Args = []string{"--viewer", rig.FreeAddress(t), "--drop-in", "twilio=" + rig.FreeAddress(t)}
		s, dir := rig.StartServer(t, set)
		g.nodes, g.dirs = append(g.nodes, s), append(g.dirs, dir)
	}
	all := parse[struct{ Messages []message }](t, g.ask(t, 0, http.MethodGet, "/Messages.json?PageSize=100", "")).Messages
	n := sample.Count(5, 40)
	checktest.MustTrue(t, len(all) >= 2*n, "%d messages", len(all))
	path := func(i int) string { return "/Messages/" + all[i].Sid + ".json" }
	inMemory := func() {
		for i := range 2 * n {
			for node := range g.nodes {
				g.readMessage(t, node, path(i))
			}
		}
	}
	inMemory()
	rig.Await(t, func() string {
		at := pgtest.Query(t, primary, "SELECT pg_current_wal_lsn()::text")
		return pgtest.Query(t, standby, "SELECT CASE WHEN pg_last_wal_replay_lsn() >= '"+at+"' THEN '' ELSE 'it lags' END")
	})
	replication.cut()
	for i := range n {
		checktest.MustEqual(t, g.ask(t, i%2, http.MethodPost, path(i), "Body=").Status, 200, "status of a write that will be lost")
	}
	inMemory()
	feed := func(node int, after string) rig.Reply {
		return rig.Get(t, rig.Account+":"+rig.DemoToken, g.nodes[node].URL("viewer")+"/-/feed?kind=messages&after="+after, "Accept", "application/json")
	}
	lost := parse[struct{ Next string }](t, feed(0, "now")).Next

	killServer(t, primary)
	w.cut()
	checktest.MustEqual(t, pgtest.Query(t, standby, "SELECT pg_promote()::text"), "true", "promotion")
	u, err := url.Parse(standby)
	checktest.MustNoError(t, err, "parse %s", standby)
	w.to = filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432")
	w.join()
	took := time.Now()
	answers, refused, stale := 0, 0, 0
	look := func(i int) {
		for node := range g.nodes {
			r, err := rig.Ask(http.MethodGet, rig.Account+":"+rig.APIToken, g.nodes[node].URL("twilio")+rig.Base+path(i), "")
			if err != nil || r.Status != 200 {
				refused++ // it opens the database again
				continue
			}
			answers++
			if isStale.MatchString(r.Header.Get("Cache-Status")) {
				stale++
			} else if body := parse[message](t, r).Body; body != "" {
				t.Errorf("node %d calls the text of before a write fresh, %v after the promotion: %s", node, time.Since(took), r.Header.Get("Cache-Status"))
			}
		}
	}
	round := 0
	rig.Await(t, func() string {
		round++
		look(round % n)
		for node := range g.nodes {
			r, err := rig.Ask(http.MethodGet, "", g.nodes[node].URL("viewer")+"/-/health", "")
			if err != nil || r.Status != 200 || !strings.Contains(string(r.Body), `"ok"`) || !strings.Contains(g.nodes[node].Log(), "another server answers") {
				return fmt.Sprintf("health of node %d: %s %v", node, r.Body, err)
			}
		}
		return ""
	})
	t.Logf("all is well %v after the promotion", time.Since(took))
	for i := range n {
		look(i)
		for node := range g.nodes {
			body, _ := g.readMessage(t, node, path(i))
			checktest.Equal(t, body, "", "text of message %d at node %d afterwards", i, node)
		}
	}
	for node := range g.nodes {
		r := feed(node, lost)
		checktest.Equal(t, r.Status, 400, "status of the feed at node %d after a lost change (%.300s)", node, r.Body)
		checktest.True(t, strings.Contains(string(r.Body), "this cursor is not valid any more"), "the feed at node %d answers %s", node, r.Body)
	}
	for i := n; i < 2*n; i++ { // the processes are as one again
		checktest.MustEqual(t, g.ask(t, i%2, http.MethodPost, path(i), "Body=").Status, 200, "status of a write afterwards")
		body, _ := g.readMessage(t, (i+1)%2, path(i))
		checktest.Equal(t, body, "", "text of message %d at the other process", i)
		look(i - n) // the write may have removed it from memory
	}
	t.Logf("%d answers while the database was replaced, %d of them stale; %d requests failed", answers, stale, refused)
}
