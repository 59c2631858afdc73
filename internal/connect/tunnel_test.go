// Tests of tunnels to other hosts: bytes pass as they are, few at once, and none stays.

package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
)

var errDeadline = os.ErrDeadlineExceeded

func TestTunnelledHostsAreNotTouched(t *testing.T) {
	t.Parallel()
	far := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "far") }))
	t.Cleanup(far.Close)
	at := far.Listener.Addr().String()
	r := run(t, Options{Tunnel: []string{at}, AllowPrivate: true}, patience)
	c := r.client(t, false)
	pool := x509.NewCertPool()
	pool.AddCert(far.Certificate())
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
	resp, err := c.Get(far.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "far" {
		t.Errorf("%q, %v", body, err)
	}
	if !resp.TLS.PeerCertificates[0].Equal(far.Certificate()) {
		t.Error("the certificate is not the far one's")
	}
	// A host that is named is looked at like any other, once its name is resolved.
	closed := run(t, Options{Tunnel: []string{at}}, patience)
	if _, resp := closed.dial(t, at, ""); resp.StatusCode != http.StatusForbidden {
		t.Errorf("into this machine: %s", resp.Status)
	}
}

// far is a server of which the test has the connections.
func far(t *testing.T) (address string, accept func() net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), func() net.Conn {
		t.Helper()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(patience))
		return c
	}
}

func TestOneWayMayEndBeforeTheOther(t *testing.T) {
	t.Parallel()
	at, accept := far(t)
	r := run(t, Options{Tunnel: []string{at}, AllowPrivate: true}, patience)
	near, _ := r.dial(t, at, "early ")
	there := accept()
	if _, err := io.WriteString(near, "question"); err != nil {
		t.Fatal(err)
	}
	if err := closeWrite(near); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(there); err != nil || string(got) != "early question" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := io.WriteString(there, "answer"); err != nil {
		t.Fatal(err)
	}
	_ = there.Close()
	if got, err := io.ReadAll(near); err != nil || string(got) != "answer" {
		t.Errorf("%q, %v", got, err)
	}
}

// Tunnels in which nothing moves end, half-closed ones too, and so does what fails.
func TestIdleTunnelsEnd(t *testing.T) {
	t.Parallel()
	at, accept := far(t)
	r := run(t, Options{Tunnel: []string{at}, AllowPrivate: true, Idle: 100 * time.Millisecond}, patience)
	for name, do := range map[string]func(near, there net.Conn){
		"silent":                func(net.Conn, net.Conn) {},
		"half-closed by client": func(near, _ net.Conn) { _ = closeWrite(near) },
		"half-closed by host":   func(_, there net.Conn) { _ = closeWrite(there) },
		"reset by host":         func(_, there net.Conn) { _ = there.(*net.TCPConn).SetLinger(0); _ = there.Close() },
	} {
		near, _ := r.dial(t, at, "")
		there := accept()
		do(near, there)
		if _, err := io.Copy(io.Discard, near); errors.Is(err, errDeadline) {
			t.Errorf("%s: the client waits: %v", name, err)
		}
		if _, err := io.Copy(io.Discard, there); errors.Is(err, errDeadline) {
			t.Errorf("%s: the host waits: %v", name, err)
		}
	}
}

func TestTunnelsAreFew(t *testing.T) {
	t.Parallel()
	at, accept := far(t)
	r := run(t, Options{Tunnel: []string{at}, AllowPrivate: true, Tunnels: 2}, patience)
	var open []net.Conn
	for range 2 {
		near, resp := r.dial(t, at, "")
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
		accept()
		open = append(open, near)
	}
	_, resp := r.dial(t, at, "")
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "connect.tunnels") {
		t.Fatalf("%s %q", resp.Status, body)
	}
	// Requests inside need no place.
	answer, err := r.client(t, true).Get("https://api.example.com/v1")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	r.End()
	for _, c := range open {
		if _, err := io.Copy(io.Discard, c); errors.Is(err, errDeadline) {
			t.Error("a tunnel outlives the proxy")
		}
	}
}

func TestHostsThatAreTunnelled(t *testing.T) {
	t.Parallel()
	all := []string{"one.example", "*.two.example", "three.example:8443", "192.0.2.1", "[2001:db8::1]:444"}
	for authority, want := range map[string]bool{
		"one.example:443": true, "ONE.example.:443": true, "a.one.example:443": false, "one.example:80": false, "xone.example:443": false,
		"two.example:443": false, "a.two.example:443": true, "a.b.two.example:443": true, "atwo.example:443": false,
		"three.example:8443": true, "three.example:443": false, "192.0.2.1:443": true, "[::ffff:192.0.2.1]:443": true,
		"[2001:db8:0:0::1]:444": true, "192.0.2.2:443": false,
	} {
		host, port, err := splitAuthority(authority)
		if err != nil {
			t.Fatal(err)
		}
		if got := matchTunnel(all, host, port); got != want {
			t.Errorf("%s: %v", authority, got)
		}
	}
	for _, text := range append(all, "*", "*:8443") {
		if err := CheckTunnel(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "a.*", "*a.example", "**", "https://x.example", "x.example:0", "x.example:y", "*.", "*.1.2.3.*",
		"X.example", "a@b", ".x"} {
		if CheckTunnel(text) == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// FuzzSplitAuthority: what is read of CONNECT is one spelling of a host and a port, which is
// read again as the same.
func FuzzSplitAuthority(f *testing.F) {
	for _, seed := range []string{"api.example.com:443", "A.b.:1", "[::1]:2", "[fe80::1%eth0]:443", "1.2.3.4:65535", "x:0", ":1", ".:1",
		"a..:1", "1.2.3.4.:1", "a:b:c", "a b:1", "%61:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		host, port, err := splitAuthority(text)
		if err != nil {
			return
		}
		again, at, err := splitAuthority(net.JoinHostPort(host, port))
		checktest.MustNoError(t, err, "text %q", text)
		checktest.Equal(t, again, host, "again; text %q", text)
		checktest.Equal(t, at, port, "at; text %q", text)
		checktest.Equal(t, host, strings.ToLower(host), "host; text %q", text)
	})
}
