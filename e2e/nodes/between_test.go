// A process that loses the database, or is killed, between the answer of the API to a write and the mark in the database.

package nodes_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// between is a group of two processes. The first has a wire of its own to the database. Before the answer of the API to a write
// reaches the first process, the function in answered is called.
type between struct {
	group
	wire     *wire
	answered atomic.Pointer[func()]
}

func startBetween(t *testing.T) *between {
	t.Helper()
	g := &between{}
	api, err := url.Parse(rig.StartAPI(t, "--latency", "20ms", "--records", "300").URL("slowapi"))
	checktest.MustNoError(t, err, "address of the API")
	proxy := httputil.NewSingleHostReverseProxy(api)
	proxy.ModifyResponse = func(r *http.Response) error {
		if f := g.answered.Load(); f != nil && r.Request.Method == http.MethodPost {
			(*f)()
		}
		return nil
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	g.api = front.URL
	dsn := databases.Database(t)
	w, through := newWire(t, dsn)
	g.wire = w
	for _, dsn := range []string{through, dsn} {
		settings := g.settings(dsn)
		settings.Mirror = "{settled_age: 24h, default_age: 24h, newest: 24h, older: 24h}"
		s, dir := rig.StartServer(t, settings)
		g.nodes, g.dirs = append(g.nodes, s), append(g.dirs, dir)
	}
	return g
}

// prepare reads a message and the list at the second process until both are in its memory.
func (g *between) prepare(t *testing.T) (path string) {
	t.Helper()
	m := parse[struct{ Messages []message }](t, g.ask(t, 1, http.MethodGet, list, "")).Messages[0]
	path = "/Messages/" + m.Sid + ".json"
	checktest.MustTrue(t, m.Body != "", "the message has no text")
	for _, at := range []string{path, list} {
		g.ask(t, 1, http.MethodGet, at, "")
		r := g.ask(t, 1, http.MethodGet, at, "")
		checktest.MustTrue(t, strings.Contains(r.Header.Get("Cache-Status"), "; hit"), "Cache-Status of %s is %q", at, r.Header.Get("Cache-Status"))
	}
	return path
}

const list = "/Messages.json?PageSize=20"

// texts returns the text of the message, and the text that the list has of it, at a node.
func (g *between) texts(t *testing.T, node int, path string) [2]string {
	t.Helper()
	one := parse[message](t, g.ask(t, node, http.MethodGet, path, ""))
	for _, m := range parse[struct{ Messages []message }](t, g.ask(t, node, http.MethodGet, list, "")).Messages {
		if m.Sid == one.Sid {
			return [2]string{one.Body, m.Body}
		}
	}
	t.Errorf("%s is not in the list of node %d", path, node)
	return [2]string{}
}

// TestDatabaseIsCutOffBetween: upstream has done a write, and then its process loses the database. The write is answered as
// done. From then on, the other process answers nothing from before, though nobody could tell it.
func TestDatabaseIsCutOffBetween(t *testing.T) {
	t.Parallel()
	g := startBetween(t)
	path := g.prepare(t)
	cut := func() { g.answered.Store(nil); g.wire.cut() }
	g.answered.Store(&cut)
	w := g.ask(t, 0, http.MethodPost, path, "Body=")
	checktest.Equal(t, w.Status, 200, "status of the write (%.200s)", w.Body)
	checktest.True(t, strings.Contains(w.Header.Get("Cache-Status"), "not stored"), "Cache-Status of the write is %q", w.Header.Get("Cache-Status"))
	checktest.Equal(t, g.texts(t, 1, path), [2]string{}, "texts at the other process")
	checktest.Equal(t, g.ask(t, 0, http.MethodPost, path, "Body=").Status, 503, "status of a write without the database")
	g.wire.join()
	rig.Await(t, func() string {
		if w := g.ask(t, 0, http.MethodPost, path, "Body="); w.Status != 200 {
			return string(w.Body)
		}
		return ""
	})
	for node := range g.nodes {
		checktest.Equal(t, g.texts(t, node, path), [2]string{}, "texts at node %d afterwards", node)
	}
}

// TestProcessIsKilledBetween: upstream has done a write, and then its process is killed. The other process soon shows the result.
func TestProcessIsKilledBetween(t *testing.T) {
	t.Parallel()
	g := startBetween(t)
	path := g.prepare(t)
	kill := func() { g.answered.Store(nil); g.nodes[0].Kill() }
	g.answered.Store(&kill)
	if r, err := rig.Ask(http.MethodPost, rig.Account+":"+rig.APIToken, g.nodes[0].URL("twilio")+rig.Base+path, "Body="); err == nil {
		t.Errorf("the killed process answers %d", r.Status)
	}
	rig.Await(t, func() string {
		if all := g.texts(t, 1, path); all != [2]string{} {
			return all[0] + " " + all[1]
		}
		return ""
	})
}
