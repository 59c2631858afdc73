// Drop-in ports that serve only clients with a certificate, or from some addresses.

package operation

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// signClient returns a certificate for a client, signed by the authority in files and valid until a time.
func signClient(t *testing.T, authority, key string, until time.Time) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(authority, key)
	checktest.MustNoError(t, err, "authority")
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	checktest.MustNoError(t, err, "key")
	about := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: until.Add(-time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	signed, err := x509.CreateCertificate(rand.Reader, about, pair.Leaf, own.Public(), pair.PrivateKey)
	checktest.MustNoError(t, err, "sign")
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: own}
}

// guarded is a server whose settings a test changes.
type guarded struct {
	t           *testing.T
	url, dir    string
	certificate string // that of the server; "" without TLS
	settings    string // with the words CLIENTS for the setting and PROXIES for the proxies
}

// ask sends a request with a right credential on a new connection. It returns the status, or 0 without an answer.
func (g *guarded) ask(from string, shown []tls.Certificate, header ...string) int {
	g.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(g.certificate))
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: shown},
		DialContext: func(ctx context.Context, _, at string) (net.Conn, error) { return d.DialContext(ctx, "tcp", at) }}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, g.url+rig.Base+"/Calls.json?PageSize=20", nil)
	checktest.MustNoError(g.t, err, "request")
	r.SetBasicAuth(rig.Account, rig.DemoToken)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Do(r)
	if err != nil {
		late, ok := errors.AsType[net.Error](err)
		checktest.True(g.t, !ok || !late.Timeout(), "no answer and no refusal: %v", err)
		return 0
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	checktest.NoError(g.t, err, "body")
	if resp.StatusCode == http.StatusForbidden {
		checktest.Equal(g.t, strings.TrimSpace(string(body)), `{"error":"forbidden"}`, "what a refused client is told")
	}
	return resp.StatusCode
}

// reload writes the settings and reloads them. refused is a part of the message if they are wrong.
func (g *guarded) reload(clients, proxies, refused string) {
	g.t.Helper()
	text := strings.NewReplacer("CLIENTS", clients, "PROXIES", proxies).Replace(g.settings)
	checktest.MustNoError(g.t, os.WriteFile(filepath.Join(g.dir, "understudy.yml"), []byte(text), 0o600), "write")
	for _, command := range []string{"check", "reload"} {
		out, ok := understudyIn(g.t, g.dir, command)
		checktest.Equal(g.t, ok, refused == "", "%s with %s succeeds, and prints %s", command, clients, out)
		if !strings.Contains(out, refused) {
			g.t.Errorf("%s with %s prints %q, want %q", command, clients, out, refused)
		}
	}
}

// startGuarded starts a server with sections of settings.
func startGuarded(t *testing.T, sections string) *guarded {
	t.Helper()
	up := rig.StartAPI(t, "--latency", "1ms", "--records", "50").URL("slowapi")
	s, dir := rig.StartServer(t, rig.Settings{Upstream: up, Role: "all", Mirror: "{newest: 1h, older: 1h, settled_age: 1h}",
		Source: "clients: {}", Store: sections + "proxies: []\n"})
	g := &guarded{t: t, url: s.URL("twilio"), dir: dir}
	g.settings = strings.Replace(rig.ReadFile(t, filepath.Join(dir, "understudy.yml")), "clients: {}", "clients: CLIENTS", 1)
	g.settings = strings.Replace(g.settings, "proxies: []", "proxies: PROXIES", 1)
	return g
}

func TestClientCertificatesAsDocumented(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, "tls: self\n")
	own, ok := understudyIn(t, g.dir, "cert")
	checktest.MustTrue(t, ok, "understudy cert: %s", own)
	g.certificate = own
	authority, key := rig.WriteCertificate(t, g.dir)
	otherAuthority, otherKey := rig.WriteCertificate(t, t.TempDir())
	later := time.Now().Add(30 * time.Minute)
	right, other := signClient(t, authority, key, later), signClient(t, otherAuthority, otherKey, later)
	expired := signClient(t, authority, key, time.Now().Add(-time.Minute))
	asks := func(when string, wantRight, wantOther, wantNone int) {
		t.Helper()
		for range 2 { // the lane answers the second request
			checktest.Equal(t, g.ask("127.0.0.1", []tls.Certificate{right}), wantRight, "%s: the right certificate", when)
			checktest.Equal(t, g.ask("127.0.0.1", []tls.Certificate{other}), wantOther, "%s: a certificate of another authority", when)
			checktest.Equal(t, g.ask("127.0.0.1", []tls.Certificate{expired}), wantNone, "%s: an expired certificate", when)
			checktest.Equal(t, g.ask("127.0.0.1", nil), wantNone, "%s: no certificate", when)
		}
	}
	asks("without the setting", 200, 200, 200)
	g.reload("{ca: mail.crt}", "[]", "")
	asks("with an authority", 200, 0, 0)
	checktest.Equal(t, g.ask("127.0.0.1", []tls.Certificate{right}, "Authorization", "Basic eDp5"), 401, "a certificate without a credential")
	g.reload("{ca: "+otherAuthority+"}", "[]", "")
	asks("with another authority", 0, 200, 0)
	checktest.MustNoError(t, os.WriteFile(filepath.Join(g.dir, "empty.pem"), nil, 0o600), "write")
	for clients, refused := range map[string]string{
		"{ca: empty.pem}":          "contains no certificate",
		"{ca: nothing.pem}":        "nothing.pem",
		"{ca: mail.crt}, tls: off": "clients: the port has no TLS",
	} {
		g.reload(clients, "[]", refused)
	}
	asks("after refused reloads", 0, 200, 0)
	g.reload("{ca: mail.crt, addresses: [127.0.0.2/32]}", "[]", "")
	asks("from another address", 0, 0, 0)
	checktest.Equal(t, g.ask("127.0.0.2", []tls.Certificate{right}), 200, "the right certificate and address")
	checktest.Equal(t, g.ask("127.0.0.2", nil), 0, "the right address without a certificate")
}

func TestClientAddressesAsDocumented(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, "")
	asks := func(when string, want map[string]int) {
		t.Helper()
		for from, status := range want {
			peer, client, _ := strings.Cut(from, " for ")
			for range 2 { // the lane answers the second request
				checktest.Equal(t, g.ask(peer, nil, "X-Forwarded-For", client), status, "%s: from %s", when, from)
			}
		}
	}
	asks("without the setting", map[string]int{"127.0.0.1": 200, "127.0.0.2": 200})
	g.reload("{addresses: [127.0.0.2/32, 10.0.0.0/8]}", "[]", "")
	asks("with a list", map[string]int{"127.0.0.1": 0, "127.0.0.2": 200, "127.0.0.1 for 10.1.2.3": 0})
	g.reload("{addresses: [127.0.0.2/32, 10.0.0.0/8]}", "[127.0.0.1/32]", "")
	asks("with a proxy", map[string]int{"127.0.0.1": 403, "127.0.0.2": 200, "127.0.0.1 for 10.1.2.3": 200, "127.0.0.1 for 11.1.2.3": 403,
		"127.0.0.3 for 10.1.2.3": 0})
	g.reload("{addresses: [nowhere]}", "[]", "not an address block")
	asks("after a refused reload", map[string]int{"127.0.0.2": 200, "127.0.0.3": 0})
	g.reload("{addresses: [127.0.0.3/32]}", "[]", "")
	asks("with another list", map[string]int{"127.0.0.2": 0, "127.0.0.3": 200})
	g.reload("{ca: mail.crt}", "[]", "clients: the port has no TLS")
}
