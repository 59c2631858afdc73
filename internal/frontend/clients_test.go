// Ports that serve only some clients, over real connections.

package frontend

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/config"
	"understudy/kit/header"
)

// makeCertificate returns a certificate that is its own authority, valid until a time.
func makeCertificate(t *testing.T, until time.Time, usage x509.ExtKeyUsage) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	checktest.MustNoError(t, err, "key")
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{usage}}
	signed, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	checktest.MustNoError(t, err, "certificate")
	leaf, err := x509.ParseCertificate(signed)
	checktest.MustNoError(t, err, "certificate")
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key, Leaf: leaf}
}

// clientsOf returns the clients with certificates of some authorities.
func clientsOf(all ...tls.Certificate) *config.Clients {
	c := &config.Clients{Authorities: x509.NewCertPool()}
	for _, one := range all {
		c.Authorities.AddCert(one.Leaf)
	}
	return c
}

// A client without the right certificate is refused by an alert, and no handler is called. A session of a former authority is not resumed.
func TestClientsNeedACertificate(t *testing.T) {
	later := time.Now().Add(30 * time.Minute)
	right, other := makeCertificate(t, later, x509.ExtKeyUsageClientAuth), makeCertificate(t, later, x509.ExtKeyUsageClientAuth)
	expired := makeCertificate(t, time.Now().Add(-time.Minute), x509.ExtKeyUsageClientAuth)
	forServers := makeCertificate(t, later, x509.ExtKeyUsageServerAuth)
	for _, known := range []Known{nil, warmPaths{}} {
		s := serveTLS(t, overTLS(""), known, config.Limits{})
		sessions := tls.NewLRUClientSessionCache(8)
		get := func(version uint16, http2 bool, shown ...tls.Certificate) error {
			transport := &http.Transport{ForceAttemptHTTP2: http2, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MaxVersion: version,
				Certificates: shown, ClientSessionCache: sessions}}
			defer transport.CloseIdleConnections()
			resp, err := (&http.Client{Transport: transport, Timeout: waitTime}).Get(s.URL() + "/warm")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.ReadAll(resp.Body)
			return err
		}
		checktest.NoError(t, get(0, false), "before clients need a certificate")
		s.SetClients(clientsOf(right, expired, forServers))
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, http2 := range []bool{false, true} {
				checktest.NoError(t, get(version, http2, right), "version %x: the right certificate", version)
				for name, shown := range map[string][]tls.Certificate{
					"no": nil, "another": {other}, "an expired": {expired}, "a server's": {forServers}} {
					checktest.True(t, get(version, http2, shown...) != nil, "version %x: a client with %s certificate is answered", version, name)
				}
			}
		}
		for deadline := time.Now().Add(waitTime); s.Load().RefusedClients < 16 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond) // the server counts after it has sent the alert
		}
		checktest.Equal(t, s.Load().RefusedClients, 16, "refused clients")
		s.SetClients(clientsOf(other))
		checktest.True(t, get(0, false, right) != nil, "the certificate of a former authority is accepted")
		checktest.NoError(t, get(0, false, other), "the certificate of the new authority")
		s.SetClients(&config.Clients{})
		checktest.NoError(t, get(0, false), "after clients need no certificate")
	}
}

// A connection from another address is closed before anything is read, TLS or not. A request through a proxy, or on a connection that was
// opened before, gets one refusal, also if the lane knows it.
func TestClientsNeedAnAddress(t *testing.T) {
	onBoth(t, func(*config.Limits) {}, func(t *testing.T, p *port) {
		next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "whole") })
		blocks := func(texts ...string) (all header.Proxies) {
			for _, text := range texts {
				all = append(all, netip.MustParsePrefix(text))
			}
			return all
		}
		p.SetHandler(blocks("127.0.0.2/32").Handler(p.GuardRequests(next)), allButSlow{}, nil)
		dial := func(from string) net.Conn {
			t.Helper()
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
			c, err := d.DialContext(t.Context(), "tcp", p.Addr().String())
			checktest.MustNoError(t, err, "dial")
			t.Cleanup(func() { _ = c.Close() })
			_ = c.SetDeadline(time.Now().Add(waitTime))
			return c
		}
		ask := func(c net.Conn, client string) int {
			t.Helper()
			_, err := io.WriteString(c, "GET /a HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: "+client+"\r\n\r\n")
			checktest.MustNoError(t, err, "write")
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			checktest.MustNoError(t, err, "answer")
			defer resp.Body.Close()
			_, err = io.ReadAll(resp.Body)
			checktest.NoError(t, err, "body")
			return resp.StatusCode
		}
		direct, proxied := dial("127.0.0.1"), dial("127.0.0.2")
		for range 3 {
			checktest.Equal(t, ask(direct, "10.9.9.9"), http.StatusOK, "without a list")
			checktest.Equal(t, ask(proxied, "10.9.9.9"), http.StatusOK, "without a list, through the proxy")
		}
		p.SetClients(&config.Clients{From: blocks("10.0.0.0/8", "127.0.0.3/32"), Proxies: blocks("127.0.0.2/32")})
		for range 3 {
			checktest.Equal(t, ask(direct, "10.9.9.9"), http.StatusForbidden, "an open connection from another address")
			checktest.Equal(t, ask(proxied, "10.9.9.9"), http.StatusOK, "a client of the list, through the proxy")
			checktest.Equal(t, ask(proxied, "11.9.9.9"), http.StatusForbidden, "another client, through the proxy")
			checktest.Equal(t, ask(proxied, ""), http.StatusForbidden, "the proxy itself")
			checktest.Equal(t, ask(dial("127.0.0.3"), "11.9.9.9"), http.StatusOK, "an address of the list")
		}
		refused := p.Load().RefusedClients
		n, err := dial("127.0.0.1").Read(make([]byte, 1))
		checktest.True(t, n == 0 && err != nil, "a connection from another address gets %d bytes: %v", n, err)
		checktest.Equal(t, p.Load().RefusedClients, refused+1, "refused clients")
		p.SetClients(&config.Clients{})
		checktest.Equal(t, ask(direct, "10.9.9.9"), http.StatusOK, "after the list was removed")
	})
}
