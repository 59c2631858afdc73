// A certificate authority: Let's Encrypt's own for tests (pebble), in this process, with a name server for its validation.

package acme

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/core"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("PEBBLE_VA_NOSLEEP", "1")
	rig.Main(m)
}

// authority is a running pebble.
type authority struct {
	*httptest.Server
	store  *db.MemoryStore
	roots  *x509.CertPool // verify its certificates
	issued atomic.Int64   // the number of certificates
	asked  atomic.Int64   // the number of requests for one
	orders sync.RWMutex   // locked while no order is answered
	down   atomic.Bool
}

// startAuthority starts an authority that validates at a port of this machine. Its certificates are valid for a time. It does not say
// when to renew short ones, because pebble would say any time of their life. Clients then renew them after two thirds.
func startAuthority(t *testing.T, port int, valid time.Duration) *authority {
	t.Helper()
	lines := log.New(t.Output(), "pebble ", 0)
	a := &authority{store: db.NewMemoryStore()}
	issuer := ca.New(lines, a.store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {ValidityPeriod: uint64(valid.Seconds())}})
	front := wfe.New(lines, a.store, va.New(lines, 1, port, false, startNameServer(t), a.store), issuer, nil, false, false, 1, 1)
	serve := front.Handler()
	a.roots = x509.NewCertPool()
	a.roots.AddCert(issuer.GetRootCert(0).Cert)
	a.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.down.Load() {
			http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
			return
		}
		if r.URL.Path == wfe.DirectoryPath && valid < time.Hour {
			all := httptest.NewRecorder()
			serve.ServeHTTP(all, r)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(bytes.Replace(all.Body.Bytes(), []byte("renewalInfo"), []byte("nothing"), 1))
			return
		}
		if r.URL.Path == "/order-plz" {
			a.asked.Add(1)
			a.orders.RLock()
			defer a.orders.RUnlock()
		}
		h := &hurried{ResponseWriter: w}
		if serve.ServeHTTP(h, r); strings.HasPrefix(r.URL.Path, "/finalize-order/") && h.status == http.StatusOK {
			a.issued.Add(1)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

// hurried is a response that asks clients to come back soon, and not after hours.
type hurried struct {
	http.ResponseWriter
	status int // 0 before the header is written
}

// WriteHeader implements http.ResponseWriter.
func (h *hurried) WriteHeader(status int) {
	if h.status = status; h.Header().Get("Retry-After") != "" {
		h.Header().Set("Retry-After", "1")
	}
	h.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (h *hurried) Write(p []byte) (int, error) {
	if h.status == 0 {
		h.WriteHeader(http.StatusOK)
	}
	return h.ResponseWriter.Write(p)
}

// directory returns the URL of the authority's directory.
func (a *authority) directory() string { return a.URL + wfe.DirectoryPath }

// writeRoot writes the certificate that verifies the server of the directory into a file.
func (a *authority) writeRoot(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "root.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw})
	checktest.MustNoError(t, os.WriteFile(path, text, 0o600), "write the root")
	return path
}

// revoke revokes a certificate. It makes the authority ask for another one in a window like that of Let's Encrypt (RFC 9773), because
// pebble's own window of one second is too short for clients that count in seconds.
func (a *authority) revoke(t *testing.T, serial *big.Int) {
	t.Helper()
	c, now := a.store.GetCertificateBySerial(serial), time.Now().UTC()
	checktest.MustTrue(t, c != nil, "the authority does not know the certificate")
	a.store.RevokeCertificate(&core.RevokedCertificate{Certificate: c, RevokedAt: now})
	window := fmt.Sprintf(`{"suggestedWindow": {"start": %q, "end": %q}}`, now.Add(-time.Hour).Format(time.RFC3339),
		now.Add(-30*time.Minute).Format(time.RFC3339))
	checktest.MustNoError(t, a.store.SetARIResponse(serial, window), "renewal information")
}

// startNameServer starts a name server for which every name is an address of this machine.
func startNameServer(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	checktest.MustNoError(t, err, "listen")
	s := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, asked *dns.Msg) {
		answer := new(dns.Msg).SetReply(asked)
		if q := asked.Question[0]; q.Qtype == dns.TypeA {
			answer.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(127, 0, 0, 1)}}
		}
		_ = w.WriteMsg(answer)
	})}
	done := make(chan error)
	go func() { done <- s.ActivateAndServe() }()
	t.Cleanup(func() {
		_ = s.Shutdown()
		<-done
	})
	return l.Addr().String()
}
