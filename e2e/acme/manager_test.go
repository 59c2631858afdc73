// Package acme has tests of certificates that are obtained from an authority.
package acme

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/e2e/rig"
	"understudy/internal/acme"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// port is a port with TLS whose certificates a manager obtains.
type port struct {
	net.Listener
	host string
	log  lines
	m    *acme.Manager // nil before serve is called
}

// lines are the lines of a log.
type lines chan string

// Write implements io.Writer.
func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// listen opens a port for a host. Each test has another host, because certmagic counts the failures of a host in the whole process.
func listen(t *testing.T, host string) *port {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	checktest.MustNoError(t, err, "listen")
	t.Cleanup(func() { _ = l.Close() })
	return &port{Listener: l, host: host, log: make(lines, 100)}
}

func (p *port) number() int { return p.Addr().(*net.TCPAddr).Port }

// openStore opens an empty database.
func openStore(t *testing.T) understudy.KV {
	t.Helper()
	return storetest.Open(t, store.Options{}).KV
}

// serve runs a manager on the port until stop is called, or the test ends.
func (p *port) serve(t *testing.T, from *authority, kv understudy.KV) (stop func()) {
	t.Helper()
	storage, err := acme.NewStorage(kv, []byte("key"), nil)
	checktest.MustNoError(t, err, "storage")
	roots := x509.NewCertPool()
	roots.AddCert(from.Certificate())
	p.m = acme.New(acme.Options{Directory: from.directory(), Roots: roots, Names: []string{p.host}, Address: p.Addr().String(),
		Storage: storage, Interval: 50 * time.Millisecond, Now: time.Now,
		Logger: slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), p.log), nil))})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { checktest.NoError(t, p.m.Run(ctx), "run") })
	running.Go(func() {
		config := &tls.Config{NextProtos: []string{"h2", "http/1.1", "acme-tls/1"}}
		config.GetCertificate = func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return p.m.Certificate(h), nil }
		for ctx.Err() == nil {
			c, err := p.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				_ = tls.Server(c, config).HandshakeContext(ctx)
				_ = c.Close()
			})
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		_ = p.Close()
		running.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// ask returns the certificate that a port has for a host; nil if it has none.
func ask(t *testing.T, address, host string) *x509.Certificate {
	t.Helper()
	d := tls.Dialer{Config: &tls.Config{ServerName: host, InsecureSkipVerify: true}}
	c, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		return nil
	}
	defer c.Close()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// await waits until a port has another certificate of a host than before.
func await(t *testing.T, address, host string, before *x509.Certificate) (c *x509.Certificate) {
	t.Helper()
	rig.Await(t, func() string {
		if c = ask(t, address, host); c == nil || c.VerifyHostname(host) != nil {
			return "there is no certificate of " + host
		}
		if before != nil && bytes.Equal(c.Raw, before.Raw) {
			return "it has the same certificate as before"
		}
		return ""
	})
	return c
}

// A certificate is obtained once, kept over restarts, and renewed before its end. Other hosts have none.
func TestCertificateIsRenewedBeforeItsEnd(t *testing.T) {
	t.Parallel()
	p, kv := listen(t, "renewed.example.com"), openStore(t)
	a := startAuthority(t, p.number(), 12*time.Second)
	p.serve(t, a, kv)
	first := await(t, p.Addr().String(), p.host, nil)
	checktest.True(t, ask(t, p.Addr().String(), "other.example.com") == nil, "another host has a certificate")
	second := await(t, p.Addr().String(), p.host, first)
	checktest.True(t, time.Now().Before(first.NotAfter), "it is renewed after its end")
	checktest.True(t, second.NotAfter.After(first.NotAfter), "the new one ends at %v, and the former one at %v", second.NotAfter, first.NotAfter)
}

// The authority has revoked a certificate, and says so in its renewal information. The certificate is replaced long before its end.
func TestCertificateIsReplacedWhenTheAuthorityAsks(t *testing.T) {
	t.Parallel()
	p, kv := listen(t, "replaced.example.com"), openStore(t)
	a := startAuthority(t, p.number(), 90*24*time.Hour)
	p.serve(t, a, kv)
	first := await(t, p.Addr().String(), p.host, nil)
	a.revoke(t, first.SerialNumber)
	second := await(t, p.Addr().String(), p.host, first)
	checktest.True(t, a.store.GetRevokedCertificateBySerial(second.SerialNumber) == nil, "the new certificate is revoked")
	checktest.Equal(t, a.issued.Load(), 2, "certificates issued")
}

// While the directory is down, the stored certificate is served, also one that has ended. It is replaced when the directory answers.
func TestStoredCertificateIsServedWhileTheDirectoryIsDown(t *testing.T) {
	t.Parallel()
	p, kv := listen(t, "stored.example.com"), openStore(t)
	a := startAuthority(t, p.number(), 5*time.Second)
	stop := p.serve(t, a, kv)
	first := await(t, p.Addr().String(), p.host, nil)
	a.down.Store(true)
	stop()
	rig.Await(t, func() string {
		if left := time.Until(first.NotAfter); left > 0 {
			return "the certificate is still valid for " + left.String()
		}
		return ""
	})
	again := listen(t, p.host)
	stop = again.serve(t, a, kv)
	checktest.True(t, bytes.Equal(await(t, again.Addr().String(), p.host, nil).Raw, first.Raw), "another certificate than the stored one is served")
	select {
	case line := <-again.log:
		checktest.True(t, strings.Contains(line, "stays in use") && strings.Contains(line, p.host) && strings.Contains(line, "503"),
			"the log says %s", line)
		s := again.m.States()[p.host]
		checktest.True(t, strings.Contains(s.Error, "503") && time.Since(s.FailedAt) < rig.Patience, "the state of the certificate is %+v", s)
	case <-time.After(rig.Patience):
		t.Error("the log does not say that the certificate could not be renewed")
	}
	stop()
}
