// Several processes on one PostgreSQL database: they answer as one.

package nodes_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/store/pgtest"
)

func TestMain(m *testing.M) { rig.Main(m) }

var databases pgtest.Pool

// group is a few processes on one database, in front of one simulated API.
type group struct {
	api                         string
	users                       string       // the lines of the file of users; default: nobody signs in
	polls, mirror, source, more string       // as in rig.Settings; more has sections of the settings
	records                     string       // of each kind; default 300
	budget                      string       // as in rig.Settings
	client                      *http.Client // default: rig.Client
	nodes                       []*binary.Server
	dirs                        []string // the folder of each
}

// startGroup starts n processes on a database of their own.
func startGroup(t *testing.T, n int) *group {
	t.Helper()
	g := &group{}
	g.start(t, n, databases.Database(t))
	return g
}

// start starts n processes on a database.
func (g *group) start(t *testing.T, n int, dsn string) {
	t.Helper()
	g.api = rig.StartAPI(t, "--latency", "20ms", "--records", cmp.Or(g.records, "300")).URL("slowapi")
	for range n {
		s, dir := rig.StartServer(t, g.settings(dsn))
		g.nodes, g.dirs = append(g.nodes, s), append(g.dirs, dir)
	}
}

func (g *group) settings(dsn string) rig.Settings {
	writer := fmt.Sprintf("  - {name: writer, source: twilio, user: %s, secret: \"file:twilio.token\", role: all, allow: "+
		"[POST /2010-04-01/Accounts/*/Messages/*]}\n", rig.Account)
	return rig.Settings{Upstream: g.api, More: writer, Users: g.users, Polls: g.polls, Mirror: g.mirror, Source: g.source, Budget: g.budget,
		Store: fmt.Sprintf("store: {dsn: %q}\nnodes: {secret: \"file:demo.secret\"}\n%s", dsn, g.more)}
}

// ask sends a request to a node as a program of the account.
func (g *group) ask(t *testing.T, node int, method, path, body string) rig.Reply {
	t.Helper()
	r, err := rig.AskBy(cmp.Or(g.client, rig.Client), method, rig.Account+":"+rig.APIToken, g.nodes[node].URL("twilio")+"/2010-04-01/Accounts/"+rig.Account+path, body)
	checktest.MustNoError(t, err, "%s %s at node %d", method, path, node)
	return r
}

// message is what the test reads of a message.
type message struct {
	Sid  string `json:"sid"`
	Body string `json:"body"`
}

func parse[T any](t *testing.T, r rig.Reply) (v T) {
	t.Helper()
	checktest.MustNoError(t, json.Unmarshal(r.Body, &v), "answer %d %.200s", r.Status, r.Body)
	return v
}

// TestPageOfOneNodeIsWarmAtTheOthers: what one process has fetched, the others answer without a request upstream.
func TestPageOfOneNodeIsWarmAtTheOthers(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	const list = "/Calls.json?PageSize=20"
	first := g.ask(t, 0, http.MethodGet, list, "")
	checktest.MustEqual(t, first.Status, 200, "status")
	target := "/2010-04-01/Accounts/" + rig.Account + list
	checktest.MustEqual(t, rig.ReadAPIStats(t, g.api).ByTarget[target], 1, "requests upstream of %s", target)
	for node := range g.nodes {
		r := g.ask(t, node, http.MethodGet, list, "")
		checktest.Equal(t, string(r.Body), string(first.Body), "list at node %d", node)
		checktest.True(t, strings.Contains(r.Header.Get("Cache-Status"), "hit"), "Cache-Status at node %d is %q", node, r.Header.Get("Cache-Status"))
	}
	checktest.Equal(t, rig.ReadAPIStats(t, g.api).ByTarget[target], 1, "requests upstream")
}

// TestColdPageIsFetchedOnce: a page that all processes are asked for at once costs one request upstream.
func TestColdPageIsFetchedOnce(t *testing.T) {
	g := startGroup(t, 3)
	for n := range 5 {
		list := fmt.Sprintf("/Calls.json?PageSize=%d", 30+n)
		bodies := make(chan string)
		for node := range g.nodes {
			go func() { bodies <- string(g.ask(t, node, http.MethodGet, list, "").Body) }()
		}
		first := <-bodies
		for range len(g.nodes) - 1 {
			checktest.Equal(t, <-bodies, first, "the answer of another node")
		}
		checktest.Equal(t, rig.ReadAPIStats(t, g.api).ByTarget["/2010-04-01/Accounts/"+rig.Account+list], 1, "requests upstream of %s", list)
	}
}

// TestWriteAtOneNodeIsSeenAtTheOthers: once a write has returned, no process answers what was before.
func TestWriteAtOneNodeIsSeenAtTheOthers(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 3)
	random := rig.Random(t)
	all := parse[struct{ Messages []message }](t, g.ask(t, 0, http.MethodGet, "/Messages.json?PageSize=20", "")).Messages
	checktest.MustEqual(t, len(all), 20, "messages")
	began := time.Now()
	for i, m := range all {
		path := "/Messages/" + m.Sid + ".json"
		for node := range g.nodes { // the old text is in the memory of each
			got := parse[message](t, g.ask(t, node, http.MethodGet, path, ""))
			checktest.MustEqual(t, got.Body, m.Body, "text of message %d at node %d", i, node)
		}
		writer := random.IntN(len(g.nodes))
		w := g.ask(t, writer, http.MethodPost, path, "Body=")
		checktest.MustEqual(t, w.Status, 200, "status of the write")
		node := otherThan(random, writer, len(g.nodes))
		got := parse[message](t, g.ask(t, node, http.MethodGet, path, ""))
		checktest.Equal(t, got.Body, "", "text of message %d at node %d after node %d has redacted it", i, node, writer)
	}
	t.Logf("%d writes in %v", len(all), time.Since(began))
}

func otherThan(random *rand.Rand, node, n int) int { return (node + 1 + random.IntN(n-1)) % n }

// TestPausedNodeDoesNotBlockWrites: a process that is stopped holds others up until its lease has ended, and knows when it
// goes on that its memory is old.
func TestPausedNodeDoesNotBlockWrites(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 2)
	m := parse[struct{ Messages []message }](t, g.ask(t, 0, http.MethodGet, "/Messages.json?PageSize=5", "")).Messages[0]
	path := "/Messages/" + m.Sid + ".json"
	checktest.Equal(t, parse[message](t, g.ask(t, 1, http.MethodGet, path, "")).Body, m.Body, "text before")
	paused := g.nodes[1].Process()
	checktest.MustNoError(t, syscall.Kill(paused, syscall.SIGSTOP), "stop")
	began := time.Now()
	w := g.ask(t, 0, http.MethodPost, path, "Body=")
	took := time.Since(began)
	checktest.MustNoError(t, syscall.Kill(paused, syscall.SIGCONT), "continue")
	checktest.Equal(t, w.Status, 200, "status of the write")
	checktest.True(t, took < 5*time.Second, "the write took %v, longer than the lease of the stopped process", took)
	checktest.Equal(t, parse[message](t, g.ask(t, 1, http.MethodGet, path, "")).Body, "", "text at the process that was stopped")
}

// TestOtherSettingsAreRefused: a process whose settings differ from those of the processes on its database does not start.
func TestOtherSettingsAreRefused(t *testing.T) {
	t.Parallel()
	dsn := databases.Database(t)
	g := &group{api: rig.StartAPI(t, "--records", "10").URL("slowapi")}
	_, dir := rig.StartServer(t, g.settings(dsn))
	config := filepath.Join(dir, "understudy.yml")
	text := strings.Replace(rig.ReadFile(t, config), "rate: 2000", "rate: 1000", 1)
	text = strings.Replace(text, "data: ./data", "data: ./other", 1)
	checktest.MustNoError(t, os.WriteFile(config, []byte(text), 0o600), "write the settings")
	cmd := exec.CommandContext(t.Context(), rig.Program, "serve")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	checktest.True(t, err != nil, "it starts: %s", out)
	checktest.True(t, strings.Contains(string(out), "sources.twilio.rate"), "it says %q", out)
}
