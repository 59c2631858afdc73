package acme

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"understudy/internal/certificate"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// certify returns a certificate of a host.
func certify(t *testing.T, host string, ends time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	checktest.MustNoError(t, err, "key")
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: ends.Add(-time.Hour), NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	checktest.MustNoError(t, err, "certificate")
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A failure is shown with its time until the host has another certificate, which another process may have obtained.
func TestFailureIsShownUntilThereIsAnotherCertificate(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	m := New(Options{Directory: "https://ca.example.com/dir", Names: []string{"a.example.com", "b.example.com"}, Address: "127.0.0.1:4114",
		Storage: newStorage(t, storetest.Open(t, store.Options{}).KV, 1, nil), Now: func() time.Time { return now },
		Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(m.cache.Stop)
	ends := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	fail := func(host, text string) {
		t.Helper()
		checktest.NoError(t, m.note(ctx, "cert_failed", map[string]any{"identifier": host, "error": errors.New(text)}), "note")
	}
	use := func(host string, ends time.Time) {
		t.Helper()
		_, err := m.config.CacheUnmanagedTLSCertificate(ctx, certify(t, host, ends), nil)
		checktest.MustNoError(t, err, "use a certificate")
	}
	checktest.Equal(t, m.States()["a.example.com"], certificate.State{}, "state at first")
	fail("a.example.com", "[a.example.com] Obtain: refused")
	checktest.Equal(t, m.States()["a.example.com"], certificate.State{FailedAt: now, Error: "[a.example.com] Obtain: refused"},
		"state after a failure")
	checktest.Equal(t, m.States()["b.example.com"], certificate.State{}, "state of another host")
	use("a.example.com", ends)
	checktest.Equal(t, m.States()["a.example.com"], certificate.State{Ends: ends}, "state with a certificate")
	fail("a.example.com", "[a.example.com] Renew: a timeout")
	checktest.Equal(t, m.States()["a.example.com"], certificate.State{Ends: ends, FailedAt: now, Error: "[a.example.com] Renew: a timeout"},
		"state after a failed renewal")
	use("a.example.com", ends.Add(time.Hour))
	checktest.Equal(t, m.States()["a.example.com"], certificate.State{Ends: ends.Add(time.Hour)}, "state with another certificate")

	fail("b.example.com", "account: provisioning client: HTTP 404: <html>\n\n"+strings.Repeat("long ", 1000))
	text := m.States()["b.example.com"].Error
	checktest.Contains(t, text, "https://ca.example.com/dir does not answer as the directory of an authority (HTTP 404: <html> long",
		"a wrong directory")
	checktest.Contains(t, text, "; correct tls.acme.directory or ca, then run understudy restart", "a wrong directory")
	checktest.True(t, len(text) < 400, "the error has %d bytes", len(text))
}
