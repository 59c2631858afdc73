// A database that does not answer.

package nodes_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// wire stands between the processes and their database. It can be cut.
type wire struct {
	t        *testing.T
	to       string // the socket of the database
	address  string
	mu       sync.Mutex
	listener net.Listener
	open     []net.Conn
}

// newWire returns a wire to a database, and the data source name that leads through it.
func newWire(t *testing.T, dsn string) (w *wire, through string) {
	t.Helper()
	u, err := url.Parse(dsn)
	checktest.MustNoError(t, err, "parse %s", dsn)
	query := u.Query()
	w = &wire{t: t, to: query.Get("host") + "/.s.PGSQL." + query.Get("port"), address: "127.0.0.1:0"}
	w.join()
	t.Cleanup(w.cut)
	host, port, err := net.SplitHostPort(w.address)
	checktest.MustNoError(t, err, "the address")
	query.Set("host", host)
	query.Set("port", port)
	query.Set("sslmode", "disable")
	u.RawQuery = query.Encode()
	return w, u.String()
}

// join lets connections through.
func (w *wire) join() {
	w.t.Helper()
	l, err := net.Listen("tcp", w.address)
	checktest.MustNoError(w.t, err, "listen")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listener, w.address = l, l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("unix", w.to)
			if err != nil {
				_ = c.Close()
				continue
			}
			w.mu.Lock()
			w.open = append(w.open, c, up)
			w.mu.Unlock()
			for _, ends := range [][2]net.Conn{{c, up}, {up, c}} {
				go func() {
					_, _ = io.Copy(ends[0], ends[1])
					_, _ = ends[0].Close(), ends[1].Close()
				}()
			}
		}
	}()
}

// cut closes all connections, and refuses new ones.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.listener.Close()
	for _, c := range w.open {
		_ = c.Close()
	}
	w.open = nil
}

// health is what the test reads of /-/health.
type health struct {
	Status  string
	Reasons []string
	Nodes   []struct {
		ID    string
		Self  bool
		Lease int64 `json:"lease_ms"`
	}
}

// lease returns how long the process that has answered may answer from memory, in milliseconds.
func (h health) lease() int64 {
	for _, n := range h.Nodes {
		if n.Self {
			return n.Lease
		}
	}
	return 0
}

// readHealth returns the health of a node. The status must be 200.
func (g *group) readHealth(t *testing.T, node int) (h health) {
	t.Helper()
	r := rig.Get(t, "", g.nodes[node].URL("viewer")+"/-/health")
	checktest.MustEqual(t, r.Status, 200, "status of health")
	checktest.MustNoError(t, json.Unmarshal(r.Body, &h), "health %s", r.Body)
	return h
}

// awaitRenewals waits until a node has renewed its lease twice. It has then followed all changes that were saved before.
func (g *group) awaitRenewals(t *testing.T, node int) {
	t.Helper()
	last, renewals := g.readHealth(t, node).lease(), 0
	rig.Await(t, func() string {
		now := g.readHealth(t, node).lease()
		if now > last { // it falls until it is renewed
			renewals++
		}
		if last = now; renewals < 2 {
			return fmt.Sprint("renewals: ", renewals)
		}
		return ""
	})
}

// staleAnswer is the Cache-Status of a stored answer that is not fresh because the database does not answer.
var staleAnswer = regexp.MustCompile(`hit; ttl=(0|-\d+); detail="the database does not answer"`)

// TestDatabaseIsAway: without the database, each process answers from memory and says so, and refuses writes. Afterwards all is
// as before, and nothing is lost.
func TestDatabaseIsAway(t *testing.T) {
	t.Parallel()
	w, dsn := newWire(t, databases.Database(t))
	g := &group{}
	g.start(t, 2, dsn)
	all := parse[struct{ Messages []message }](t, g.ask(t, 0, http.MethodGet, "/Messages.json?PageSize=20", "")).Messages
	checktest.MustEqual(t, len(all), 20, "messages")
	path := func(i int) string { return "/Messages/" + all[i].Sid + ".json" }
	w0, err := rig.Ask(http.MethodPost, rig.Account+":"+rig.DemoToken, g.nodes[0].URL("twilio")+rig.Base+"/Messages.json",
		"To=%2B14155550123&From=%2B14155550100&Body=before")
	checktest.MustNoError(t, err, "write")
	checktest.MustEqual(t, w0.Status, 201, "status of a write before (%.300s)", w0.Body)
	written := "/Messages/" + parse[message](t, w0).Sid + ".json"
	for node := range g.nodes {
		g.awaitRenewals(t, node)
		for i := range all {
			checktest.MustEqual(t, g.ask(t, node, http.MethodGet, path(i), "").Status, 200, "status of message %d at node %d", i, node)
		}
	}
	checktest.Equal(t, len(g.readHealth(t, 0).Nodes), 2, "processes that health lists")
	w.cut()
	const reason = "the database does not answer; answers come from memory as during an outage"
	for node := range g.nodes {
		rig.Await(t, func() string {
			if h := g.readHealth(t, node); h.Status != "degraded" || !slices.Contains(h.Reasons, reason) {
				return fmt.Sprint("health: ", h)
			}
			return ""
		})
		rig.Await(t, func() string { // it answers as fresh until its lease has ended
			if how := g.ask(t, node, http.MethodGet, path(1), "").Header.Get("Cache-Status"); !staleAnswer.MatchString(how) {
				return how
			}
			return ""
		})
	}
	rounds, noticed := 0, time.Now()
	for away := time.Duration(sample.Count(2, 30)) * time.Second; time.Since(noticed) < away; rounds++ {
		for node := range g.nodes {
			i := 1 + rounds%10
			r := g.ask(t, node, http.MethodGet, path(i), "")
			checktest.Equal(t, r.Status, 200, "status of what is in memory of node %d (%.200s)", node, r.Body)
			checktest.True(t, staleAnswer.MatchString(r.Header.Get("Cache-Status")), "Cache-Status of message %d at node %d in round %d is %q", i, node, rounds, r.Header.Get("Cache-Status"))
			wrote := g.ask(t, node, http.MethodPost, path(11+node), "Body=")
			checktest.MustEqual(t, wrote.Status, 503, "status of a write at node %d (%.200s)", node, wrote.Body)
			checktest.Equal(t, g.readHealth(t, node).Status, "degraded", "health of node %d", node)
		}
	}
	w.join()
	back := time.Now()
	for node := range g.nodes {
		rig.Await(t, func() string {
			if h := g.readHealth(t, node); h.Status != "ok" {
				return fmt.Sprint("health: ", h)
			}
			return ""
		})
	}
	t.Logf("%d rounds without the database; all is well %v after its return", rounds, time.Since(back))
	for node := range g.nodes {
		checktest.Equal(t, parse[message](t, g.ask(t, node, http.MethodGet, written, "")).Body, "before", "what was written before, at node %d", node)
		for _, i := range []int{11, 12} {
			checktest.Equal(t, parse[message](t, g.ask(t, node, http.MethodGet, path(i), "")).Body, all[i].Body, "text of a refused write at node %d", node)
		}
	}
	checktest.Equal(t, g.ask(t, 1, http.MethodPost, path(11), "Body=").Status, 200, "status of a write afterwards")
	checktest.Equal(t, parse[message](t, g.ask(t, 0, http.MethodGet, path(11), "")).Body, "", "text at the other process")
}
