// Restart with TLS: clients of HTTP/2 and of HTTP/1.1 lose no request when the server becomes its next program.

package operation

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// TestRestartOverTLS: clients of HTTP/2 and HTTP/1.1, with requests in flight, with connections that are kept and with a new one for each
// request, ask without a pause. The server restarts again and again, and no request fails. A request that the server has answered is not
// asked again: each line of the access log is an answer that a client has.
func TestRestartOverTLS(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "5ms", "--records", "2000").URL("slowapi")
	server, dir := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: "{newest: 1h, older: 1h, settled_age: 1h}", Store: "tls: self\n"})
	at := server.URL("twilio") + rig.Base
	clients := rig.NewSteady(t, dir)
	held := func(int) string { return at + "/Calls.json?PageSize=20" }
	for _, version := range []int{1, 2} {
		kept := clients.Client(version) // HTTP/2 has one connection for all
		for n := range 3 {
			clients.Start(fmt.Sprintf("client %d of HTTP/%d", n, version), version, kept, held)
		}
		clients.Start(fmt.Sprintf("a client of HTTP/%d whose lists are fetched", version), version, kept, func(n int) string {
			return fmt.Sprintf("%s/Messages.json?PageSize=%d", at, 1+n%900)
		})
		clients.Start(fmt.Sprintf("clients of HTTP/%d with new connections", version), version, nil, held)
	}
	clients.Await(50)
	var slowest time.Duration
	for range sample.Count(1, 50) {
		began := time.Now()
		out, err := command(dir, "restart")
		checktest.MustNoError(t, err, "restart: %s", out)
		slowest = max(slowest, time.Since(began))
		if clients.Await(50); t.Failed() {
			break
		}
	}
	clients.Stop()
	checktest.NoError(t, server.Stop(), "stop")
	lines := strings.Count(rig.ReadFile(t, filepath.Join(dir, rig.AccessLog)), rig.Base)
	checktest.Equal(t, int64(lines), clients.Answers.Load(), "lines of the access log")
	t.Logf("%d answers, none failed; the slowest restart took %v", clients.Answers.Load(), slowest)
}
