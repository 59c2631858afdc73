// Restart with TLS: clients of HTTP/2 and of HTTP/1.1 lose no request when the server becomes its next program.

package operation

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// tlsLoad is a few clients of net/http that ask one server with TLS without a pause.
type tlsLoad struct {
	config  *tls.Config
	url     string // of the account at the drop-in port
	clients sync.WaitGroup
	answers atomic.Int64
}

// client returns a client that speaks one version of HTTP. net/http repeats a GET of its own accord if its connection, which was used
// before, ends without a byte of the answer, or if HTTP/2 says that the server did not begin it. It reports every other loss.
func (l *tlsLoad) client(version int, keepAlive bool) *http.Client {
	return &http.Client{Timeout: rig.Patience, Transport: &http.Transport{TLSClientConfig: l.config.Clone(), ForceAttemptHTTP2: version == 2,
		DisableKeepAlives: !keepAlive, DisableCompression: true}}
}

// ask asks for one path of the account.
func (l *tlsLoad) ask(ctx context.Context, client *http.Client, version int, path string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+path, nil)
	if err != nil {
		return err
	}
	r.SetBasicAuth(rig.Account, rig.DemoToken)
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != 200 || resp.ProtoMajor != version {
		return fmt.Errorf("%s over %s: %w", resp.Status, resp.Proto, err)
	}
	l.answers.Add(1)
	return nil
}

// start starts a client that asks again and again until ctx ends. Afterwards no request is on its way.
func (l *tlsLoad) start(t *testing.T, ctx context.Context, name string, version int, next func() *http.Client, path func(n int) string) {
	l.clients.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			client := next()
			if err := l.ask(t.Context(), client, version, path(n)); err != nil {
				t.Errorf("%s, request %d: %v", name, n, err)
				return
			}
		}
	})
}

// TestRestartOverTLS: clients of HTTP/2 and HTTP/1.1, with requests in flight, with connections that are kept and with a new one for each
// request, ask without a pause. The server restarts again and again, and no request fails. A request that the server has answered is not
// asked again: each line of the access log is an answer that a client has.
func TestRestartOverTLS(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "5ms", "--records", "2000").URL("slowapi")
	server, dir := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: "{newest: 1h, older: 1h, settled_age: 1h}", Store: "tls: self\n"})
	own, ok := understudyIn(t, dir, "cert")
	checktest.MustTrue(t, ok, "understudy cert: %s", own)
	roots := x509.NewCertPool()
	checktest.MustTrue(t, roots.AppendCertsFromPEM([]byte(own)), "%q is no certificate", own)
	l := &tlsLoad{config: &tls.Config{RootCAs: roots}, url: server.URL("twilio") + rig.Base}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	held := func(int) string { return "/Calls.json?PageSize=20" }
	fetched := func(n int) string { return fmt.Sprintf("/Messages.json?PageSize=%d", 1+n%900) }
	for _, version := range []int{1, 2} {
		kept := l.client(version, true) // HTTP/2 has one connection for all
		t.Cleanup(kept.CloseIdleConnections)
		keep := func() *http.Client { return kept }
		for n := range 3 {
			l.start(t, ctx, fmt.Sprintf("client %d of HTTP/%d", n, version), version, keep, held)
		}
		l.start(t, ctx, fmt.Sprintf("a client of HTTP/%d whose lists are fetched", version), version, keep, fetched)
		l.start(t, ctx, fmt.Sprintf("clients of HTTP/%d with new connections", version), version,
			func() *http.Client { return l.client(version, false) }, held)
	}
	await := func(more int64) {
		t.Helper()
		before := l.answers.Load()
		rig.Await(t, func() string {
			if l.answers.Load() < before+more && !t.Failed() {
				return "the clients get no answers"
			}
			return ""
		})
	}
	await(50)
	var slowest time.Duration
	for range sample.Count(1, 50) {
		began := time.Now()
		out, err := command(dir, "restart")
		checktest.MustNoError(t, err, "restart: %s", out)
		slowest = max(slowest, time.Since(began))
		if await(50); t.Failed() {
			break
		}
	}
	stop()
	l.clients.Wait()
	checktest.NoError(t, server.Stop(), "stop")
	lines := strings.Count(rig.ReadFile(t, filepath.Join(dir, rig.AccessLog)), rig.Base)
	checktest.Equal(t, int64(lines), l.answers.Load(), "lines of the access log")
	t.Logf("%d answers, none failed; the slowest restart took %v", l.answers.Load(), slowest)
}
