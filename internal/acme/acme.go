// Package acme obtains certificates of hosts from an authority, and renews them (ACME, RFC 8555). The authority connects to a port of this
// process to see that it serves a host (TLS-ALPN-01, RFC 8737). Processes on one database share certificates. certmagic does the work.
package acme

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"understudy"
	"understudy/internal/certificate"
	"understudy/kit/lockwatch"
	"understudy/kit/retry"
)

// Options say which certificates to obtain, and where.
type Options struct {
	Directory string         // the URL of the authority's directory
	Roots     *x509.CertPool // verify the server of the directory; nil means those of the system
	Email     string
	Names     []string // the hosts
	Address   string   // HOST:PORT of a port that answers the authority
	Storage   *Storage
	Interval  time.Duration // how often certificates are checked; 0 means every ten minutes
	Now       func() time.Time
	Logger    *slog.Logger
}

// Manager has the certificates. It is safe for concurrent use.
type Manager struct {
	o      Options
	config *certmagic.Config
	cache  *certmagic.Cache
	mu     lockwatch.Mutex
	failed map[string]certificate.State // what States returned after the last failure of a host
}

// New returns a manager. Run must be called.
func New(o Options) *Manager {
	m, quiet := &Manager{o: o, failed: map[string]certificate.State{}}, zap.NewNop() // note logs what matters
	host, text, _ := net.SplitHostPort(o.Address)                                    // the settings were checked
	port, _ := strconv.Atoi(text)
	m.cache = certmagic.NewCache(certmagic.CacheOptions{RenewCheckInterval: o.Interval, Logger: quiet,
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return m.config, nil }})
	m.config = certmagic.New(m.cache, certmagic.Config{Storage: o.Storage, OnEvent: m.note, Logger: quiet})
	m.config.Issuers = []certmagic.Issuer{certmagic.NewACMEIssuer(m.config, certmagic.ACMEIssuer{CA: o.Directory, TrustedRoots: o.Roots,
		Email: o.Email, Agreed: true, DisableHTTPChallenge: true, ListenHost: host, AltTLSALPNPort: port, Logger: quiet})}
	return m
}

// note logs what happens to a certificate.
func (m *Manager) note(ctx context.Context, event string, data map[string]any) error {
	name, _ := data["identifier"].(string)
	err, _ := data["error"].(error)
	switch log := m.o.Logger.With("host", name, "directory", m.o.Directory); {
	case event == "cert_obtained":
		log.Info("a certificate was issued")
	case event == "cert_failed" && ctx.Err() == nil:
		log.Error("no certificate was issued; the previous one stays in use; trying again later", "err", m.noteFailure(name, err))
	}
	return nil
}

// noteFailure notes why a host gets no certificate, and returns that as a text.
func (m *Manager) noteFailure(name string, err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ") // it may quote the page of another server
	if _, cause, ok := strings.Cut(text, "provisioning client: "); ok {
		text = fmt.Sprintf("%s does not answer as the directory of an authority (%s); correct tls.acme.directory or ca, then run "+
			"understudy restart", m.o.Directory, understudy.ClipTo(cause, 120))
	}
	s := m.States()[name]
	s.FailedAt, s.Error = m.o.Now().UTC(), understudy.ClipTo(text, 500)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed[name] = s
	return s.Error
}

// States returns the state of each host's certificate. A failure is over when the host has another certificate, which another process may
// have obtained.
func (m *Manager) States() map[string]certificate.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]certificate.State{}
	for _, name := range m.o.Names {
		var s certificate.State
		for _, c := range m.cache.AllMatchingCertificates(name) {
			s.Ends = time.Unix(max(s.Ends.Unix(), c.Leaf.NotAfter.Unix()), 0).UTC()
		}
		if f := m.failed[name]; f.Ends.Equal(s.Ends) {
			s = f
		}
		all[name] = s
	}
	return all
}

// Run obtains and renews the certificates until ctx ends.
func (m *Manager) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, name := range m.o.Names {
		all.Go(func() { m.load(ctx, name) })
	}
	all.Wait()
	<-ctx.Done()
	m.cache.Stop()
	return nil
}

// load reads the certificate of a host, or obtains it. From then on the cache renews it.
func (m *Manager) load(ctx context.Context, name string) {
	for failed := 0; ctx.Err() == nil; failed++ {
		_, err := m.config.CacheManagedCertificate(ctx, name)
		if err == nil {
			_ = m.cache.RenewManagedCertificates(ctx) // never returns an error
			return
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = m.config.ObtainCertAsync(ctx, name) // tries again for 30 days
		}
		if err != nil && ctx.Err() == nil {
			m.o.Logger.Error("a certificate can be neither read nor obtained; trying again", "host", name, "err", m.noteFailure(name, err))
			_ = retry.Wait(ctx, retry.Backoff(time.Second, 5*time.Minute, failed))
		}
	}
}

// Certificate returns the certificate for a client, or nil if there is none for its host.
func (m *Manager) Certificate(hello *tls.ClientHelloInfo) *tls.Certificate {
	if !slices.Contains(m.o.Names, hello.ServerName) {
		return nil
	}
	c, err := m.config.GetCertificate(hello)
	if err != nil || len(c.Certificate) == 0 {
		return nil
	}
	return c
}
