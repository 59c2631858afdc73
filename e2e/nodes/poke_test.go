// Messages between processes, and the settings of docs/how-to/nodes.md.

package nodes_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// TestPokePathIsHidden: to everybody but the other processes, the path of their messages is like any unknown path: the answers
// are equal byte for byte and header for header.
func TestPokePathIsHidden(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 1)
	answer := func(method, user, path string, headers ...string) string {
		t.Helper()
		r, err := rig.Ask(method, user, g.nodes[0].URL("viewer")+path, "", headers...)
		checktest.MustNoError(t, err, "%s %s", method, path)
		text := fmt.Sprintln(r.Status)
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			if name != "Date" && name != "X-Request-Id" {
				text += fmt.Sprintln(name, r.Header[name])
			}
		}
		return text + string(r.Body)
	}
	now := time.Now().Unix()
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		for _, user := range []string{"", rig.Account + ":" + rig.DemoToken, rig.Account + ":wrong"} {
			for _, signed := range []string{"", "x", ":", fmt.Sprint(now, ":"), fmt.Sprint(now, ":", strings.Repeat("0", 64)), fmt.Sprint(now, ":", rig.DemoToken)} {
				var headers []string
				if signed != "" {
					headers = []string{"Understudy-Node", signed}
				}
				got, want := answer(method, user, "/-/nodes/poke", headers...), answer(method, user, "/-/nodes/pokf", headers...)
				checktest.Equal(t, got, want, "answer to %s of %q with the signature %q", method, user, signed)
				checktest.True(t, strings.HasPrefix(got, "404"), "%s of %q answers %s", method, user, got)
			}
		}
	}
}

// TestDocumentedSettings: two processes with the settings of docs/how-to/nodes.md answer as one, and reach each other at nodes.url.
func TestDocumentedSettings(t *testing.T) {
	t.Parallel()
	_, written, _ := strings.Cut(rig.ReadFile(t, "../../docs/how-to/nodes.md"), "```yaml\n")
	written, _, _ = strings.Cut(written, "```\n")
	dsn := databases.Database(t)
	g := &group{api: rig.StartAPI(t, "--latency", "20ms", "--records", "300").URL("slowapi")}
	var pokes [2]atomic.Int64
	for node := range pokes {
		var viewer atomic.Pointer[url.URL] // of the process behind nodes.url
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			to := viewer.Load()
			if to == nil {
				http.NotFound(w, r)
				return
			}
			proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) },
				ModifyResponse: func(r *http.Response) error {
					if r.StatusCode == http.StatusNoContent {
						pokes[node].Add(1)
					}
					return nil
				}}
			proxy.ServeHTTP(w, r)
		}))
		t.Cleanup(front.Close)
		settings := written
		for from, to := range map[string]string{"postgres://understudy@db.internal/understudy": dsn, "http://10.0.0.2:4114": front.URL,
			"file:nodes.secret": "file:demo.secret"} {
			checktest.MustTrue(t, strings.Contains(settings, from), "the page does not have %s:\n%s", from, written)
			settings = strings.ReplaceAll(settings, from, to)
		}
		set := g.settings(dsn)
		set.Store = settings
		s, dir := rig.StartServer(t, set)
		to, err := url.Parse(s.URL("viewer"))
		checktest.MustNoError(t, err, "the address of the viewer")
		viewer.Store(to)
		g.nodes, g.dirs = append(g.nodes, s), append(g.dirs, dir)
	}
	checktest.Equal(t, len(g.readHealth(t, 1).Nodes), 2, "processes that health lists")
	for i, m := range parse[struct{ Messages []message }](t, g.ask(t, 0, http.MethodGet, "/Messages.json?PageSize=4", "")).Messages {
		path := "/Messages/" + m.Sid + ".json"
		checktest.Equal(t, parse[message](t, g.ask(t, (i+1)%2, http.MethodGet, path, "")).Body, m.Body, "text before the write")
		checktest.MustEqual(t, g.ask(t, i%2, http.MethodPost, path, "Body=").Status, 200, "status of the write")
		checktest.Equal(t, parse[message](t, g.ask(t, (i+1)%2, http.MethodGet, path, "")).Body, "", "text at the other process")
	}
	for node := range pokes {
		checktest.True(t, pokes[node].Load() > 0, "no message reached process %d at its nodes.url", node)
	}
}

// TestLostMessagesOnlyDelayWrites: every message between the processes is lost. A write takes longer, and is seen at all others
// when it has returned.
func TestLostMessagesOnlyDelayWrites(t *testing.T) {
	t.Parallel()
	var lost atomic.Int64
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		lost.Add(1)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	dsn := databases.Database(t)
	g := &group{api: rig.StartAPI(t, "--latency", "20ms", "--records", "300").URL("slowapi")}
	for range 3 {
		set := g.settings(dsn)
		set.Store = fmt.Sprintf("store: {dsn: %q}\nnodes: {url: %q, secret: \"file:demo.secret\"}\n", dsn, silent.URL)
		s, dir := rig.StartServer(t, set)
		g.nodes, g.dirs = append(g.nodes, s), append(g.dirs, dir)
	}
	all := parse[struct{ Messages []message }](t, g.ask(t, 0, http.MethodGet, "/Messages.json?PageSize=100", "")).Messages
	writes := sample.Count(6, 100)
	checktest.MustTrue(t, len(all) >= writes, "%d messages", len(all))
	var took []time.Duration
	for i, m := range all[:writes] {
		path, writer := "/Messages/"+m.Sid+".json", i%len(g.nodes)
		for node := range g.nodes {
			body, _ := g.readMessage(t, node, path)
			checktest.MustEqual(t, body, m.Body, "text before the write at node %d", node)
		}
		began := time.Now()
		checktest.MustEqual(t, g.ask(t, writer, http.MethodPost, path, "Body=").Status, 200, "status of the write")
		took = append(took, time.Since(began))
		for node := range g.nodes {
			body, fresh := g.readMessage(t, node, path)
			checktest.True(t, body == "" || !fresh, "node %d calls the text of before a write at node %d fresh", node, writer)
		}
	}
	slices.Sort(took)
	checktest.True(t, took[writes-1] < 3*time.Second, "a write took %v", took[writes-1])
	checktest.True(t, lost.Load() > 0, "no message was sent")
	t.Logf("%d writes: p50 %v, the slowest %v; %d messages lost", writes, took[writes/2], took[writes-1], lost.Load())
}
