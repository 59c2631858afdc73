// Two processes with TLS: what they tell each other is encrypted, and one restarts while the other serves.

package nodes_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// relay stands at the address of a process for the others, and reads the records of TLS that pass.
type relay struct {
	net.Listener
	to     atomic.Pointer[string] // the address of the process
	plain  atomic.Int64           // connections with anything else
	spoken atomic.Int64           // connections with messages: after a handshake that was refused, there is only an alert
}

func startRelay(t *testing.T) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	checktest.MustNoError(t, err, "listen")
	t.Cleanup(func() { _ = l.Close() })
	r := &relay{Listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.pass(c)
		}
	}()
	return r
}

// pass passes on one connection.
func (r *relay) pass(from net.Conn) {
	defer from.Close()
	at := r.to.Load()
	if at == nil {
		return // the process starts
	}
	to, err := net.Dial("tcp", *at)
	if err != nil {
		return
	}
	defer to.Close()
	go func() { _, _ = io.Copy(from, to) }()
	in, encrypted := bufio.NewReader(from), 0
	for {
		head, err := in.Peek(5) // the type, the version and the length of a record (RFC 8446, 5.1)
		if err != nil {
			return
		}
		if head[0] < 20 || head[0] > 23 || head[1] != 3 {
			r.plain.Add(1)
			return
		}
		if head[0] == 23 {
			if encrypted++; encrypted == 3 { // the end of the handshake, and two of messages
				r.spoken.Add(1)
			}
		}
		if _, err := io.CopyN(to, in, 5+int64(binary.BigEndian.Uint16(head[3:]))); err != nil {
			return
		}
	}
}

// TestTwoProcessesWithTLS: two processes speak TLS, also with each other, and a write at one is seen at the other. They restart in turn
// while clients of HTTP/2 and HTTP/1.1 ask both without a pause. No request fails.
func TestTwoProcessesWithTLS(t *testing.T) {
	t.Parallel()
	dsn := databases.Database(t)
	g := &group{api: rig.StartAPI(t, "--latency", "5ms", "--records", "300").URL("slowapi")}
	var relays [2]*relay
	for node := range relays {
		relays[node] = startRelay(t)
		set := g.settings(dsn)
		set.Store = fmt.Sprintf("tls: self\nstore: {dsn: %q}\nnodes: {url: \"https://%s\", secret: \"file:demo.secret\"}\n", dsn,
			relays[node].Addr())
		s, dir := rig.StartServer(t, set)
		to := strings.TrimPrefix(s.URL("viewer"), "https://")
		relays[node].to.Store(&to)
		g.nodes, g.dirs = append(g.nodes, s), append(g.dirs, dir)
	}
	clients := rig.NewSteady(t, g.dirs...)
	g.client = clients.Client(2)
	all := parse[struct{ Messages []message }](t, g.ask(t, 0, http.MethodGet, "/Messages.json?PageSize=100", "")).Messages
	checktest.MustEqual(t, len(all), 100, "messages")
	write := func(writer int) {
		t.Helper()
		path := "/Messages/" + all[0].Sid + ".json"
		for node := range g.nodes {
			checktest.Equal(t, parse[message](t, g.ask(t, node, http.MethodGet, path, "")).Body, all[0].Body, "text at node %d", node)
		}
		checktest.MustEqual(t, g.ask(t, writer, http.MethodPost, path, "Body=").Status, 200, "status of a write at node %d", writer)
		checktest.Equal(t, parse[message](t, g.ask(t, 1-writer, http.MethodGet, path, "")).Body, "", "text at the other node after the write")
		all = all[1:]
	}
	for n := range 4 {
		write(n % 2)
	}
	for node := range g.nodes {
		log := rig.ReadFile(t, filepath.Join(g.dirs[node], rig.AccessLog)) // after a restart, it may have messages for the process before
		checktest.True(t, !strings.Contains(log, "/-/nodes/poke"), "node %d has refused messages of the other", node)
		at := g.nodes[node].URL("twilio") + rig.Base
		held := func(int) string { return at + "/Calls.json?PageSize=20" }
		clients.Start(fmt.Sprint("a client of HTTP/2 at node ", node), 2, clients.Client(2), func(n int) string {
			return fmt.Sprintf("%s/Messages.json?PageSize=%d", at, 1+n%200)
		})
		clients.Start(fmt.Sprint("a client of HTTP/1.1 at node ", node), 1, clients.Client(1), held)
		clients.Start(fmt.Sprint("new clients at node ", node), 1+node, nil, held)
	}
	clients.Await(20)
	var slowest time.Duration
	for n := range sample.Count(1, 40) {
		began := time.Now()
		cmd := exec.CommandContext(t.Context(), rig.Program, "restart")
		cmd.Dir = g.dirs[n%2]
		out, err := cmd.CombinedOutput()
		checktest.MustNoError(t, err, "restart node %d: %s", n%2, out)
		slowest = max(slowest, time.Since(began))
		clients.Await(20)
		write(n % 2)
	}
	clients.Stop()
	for node := range g.nodes {
		checktest.Equal(t, relays[node].plain.Load(), 0, "connections to node %d without TLS", node)
		checktest.True(t, relays[node].spoken.Load() > 0, "node %d got no messages over TLS", node)
	}
	t.Logf("%d answers, none failed; the slowest restart took %v", clients.Answers.Load(), slowest)
}
