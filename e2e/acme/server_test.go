// Servers whose viewer has a certificate of an authority.

package acme

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/store/pgtest"
)

var databases pgtest.Pool

// A server whose directory is another page starts. Its health and the doctor say so in one sentence.
func TestWrongDirectoryIsShown(t *testing.T) {
	t.Parallel()
	other := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	a := &authority{Server: other}
	api := rig.StartAPI(t, "--latency", "1ms", "--records", "10").URL("slowapi")
	_, dir := rig.StartServer(t, rig.Settings{Upstream: api, Role: "all", Store: fmt.Sprintf("tls: {acme: {directory: %q, ca: %q, "+
		"names: [wrong.example.com], agree: true}}\n", other.URL+"/dir", a.writeRoot(t))})
	say := func(command string) string {
		cmd := exec.CommandContext(t.Context(), rig.Program, command)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput() // a fault is an error
		return string(out)
	}
	rig.Await(t, func() string {
		if out := say("status"); !strings.Contains(out, "the certificate wrong.example.com was not issued at 20") {
			return "understudy status says " + out
		}
		return ""
	})
	checktest.Contains(t, say("doctor"), other.URL+"/dir does not answer as the directory of an authority (HTTP 404: 404 page not found); "+
		"correct tls.acme.directory or ca, then run understudy restart", "understudy doctor")
}

// Two processes on a database obtain one certificate. The authority connects to the process that did not ask for it. Browsers trust
// the viewer. A process that was killed serves the certificate again while the directory is down.
func TestProcessesShareACertificate(t *testing.T) {
	t.Parallel()
	const host = "shared.example.com"
	var ports [2]string
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		checktest.MustNoError(t, err, "listen")
		ports[i] = l.Addr().String()
		checktest.MustNoError(t, l.Close(), "close")
	}
	at, err := net.ResolveTCPAddr("tcp", ports[1])
	checktest.MustNoError(t, err, "address")
	a := startAuthority(t, at.Port, 90*24*time.Hour)
	api := rig.StartAPI(t, "--latency", "1ms", "--records", "10").URL("slowapi")
	store := fmt.Sprintf("store: {dsn: %q}\nnodes: {secret: \"file:demo.secret\"}\ntls: {acme: {directory: %q, ca: %q, email: us@example.com, "+
		"names: [%s], agree: true}}\n", databases.Database(t), a.directory(), a.writeRoot(t), host)
	settings := func(i int) rig.Settings {
		return rig.Settings{Upstream: api, Role: "all", Store: store, Args: []string{"--viewer", ports[i]}}
	}

	a.orders.Lock() // the first process gets the lock, and its order waits until the second process listens
	first, dir := rig.StartServer(t, settings(0))
	rig.Await(t, func() string {
		if a.asked.Load() > 0 {
			return ""
		}
		return "no order has arrived"
	})
	rig.StartServer(t, settings(1))
	checktest.True(t, ask(t, ports[0], host).VerifyHostname("localhost") == nil, "before the certificate is issued, the server has none of its own")
	a.orders.Unlock()
	issued := await(t, ports[0], host, ask(t, ports[0], host))
	checktest.True(t, bytes.Equal(await(t, ports[1], host, nil).Raw, issued.Raw), "the processes have two certificates")
	checktest.Equal(t, a.issued.Load(), 1, "certificates issued")

	browser := &http.Client{Timeout: rig.Patience, Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: a.roots},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, ports[0])
		}}}
	t.Cleanup(browser.CloseIdleConnections)
	page, err := browser.Get("https://" + host + "/-/health")
	checktest.MustNoError(t, err, "the viewer")
	checktest.NoError(t, page.Body.Close(), "close")
	checktest.Equal(t, page.StatusCode, 200, "status of the viewer")
	checktest.Equal(t, page.ProtoMajor, 2, "version of HTTP")
	checktest.True(t, page.Header.Get("Strict-Transport-Security") != "", "browsers may use the viewer without TLS")
	checktest.True(t, !bytes.Equal(ask(t, ports[0], "").Raw, issued.Raw), "commands do not get the certificate of the data folder")

	a.down.Store(true)
	first.Kill()
	rig.Start(t, dir, "serve", "--viewer", ports[0])
	checktest.True(t, bytes.Equal(await(t, ports[0], host, nil).Raw, issued.Raw), "after a kill, another certificate is served")
}
