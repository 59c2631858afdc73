// Package certificate has the certificate with which the ports of a process serve TLS, from files or signed by an authority of the data
// folder. Commands and other nodes recognise a server by the fingerprint of its key.
package certificate

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/datadir"
	"understudy/internal/smallfile"
)

// Options say where certificates come from.
type Options struct {
	Cert, Key string   // the paths of the files with the chain and its key; "" for an authority
	Hosts     []string // the names and addresses for which the authority signs certificates, localHost among them
}

// Certificate is a certificate with its key, or an authority that signs certificates.
type Certificate struct {
	pair        tls.Certificate
	authority   *Authority // nil if the certificate comes from files
	fingerprint string
}

// Source has the certificate in use. It is safe for concurrent use.
type Source struct {
	current atomic.Pointer[Certificate]
	// Issued returns a certificate that an authority has issued for one of Names, or nil. Set them before Config is called.
	Issued       func(*tls.ClientHelloInfo) *tls.Certificate
	Names        []string
	IssuedStates func() map[string]State // the states of these certificates by name; nil if there are none
}

// State says how long a certificate is valid, and whether it could be renewed.
type State struct {
	Ends     time.Time `json:"ends,omitzero"`      // zero if there is no certificate yet
	FailedAt time.Time `json:"failed_at,omitzero"` // when the authority last issued none; zero since it has issued this certificate
	Error    string    `json:"error,omitempty"`    // why
}

// States returns the state of each issued certificate by host, or that of the files by the name file.
func (s *Source) States() map[string]State {
	if s == nil {
		return nil
	}
	if s.IssuedStates != nil {
		return s.IssuedStates()
	}
	if leaf := s.current.Load().Leaf(); leaf != nil {
		return map[string]State{"file": {Ends: leaf.NotAfter.UTC()}}
	}
	return nil
}

// Read reads a certificate with its key, or opens the authority of the data folder dir.
func Read(dir string, o Options, now func() time.Time) (c *Certificate, err error) {
	c = &Certificate{}
	if o.Cert == "" {
		if c.authority, _, err = OpenAuthority(filepath.Join(dir, datadir.CertificateFile), o.Hosts, now); err == nil {
			c.fingerprint = c.authority.fingerprint
		}
		return c, err
	}
	var texts [2][]byte
	for i, path := range []string{o.Cert, o.Key} {
		if texts[i], err = smallfile.Read(path, maxFile); err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
	}
	if c.pair, err = tls.X509KeyPair(texts[0], texts[1]); err != nil { // its text contains nothing of the key
		return nil, fmt.Errorf("certificate: %s and %s do not belong together, or one of them is damaged (%w); name a certificate and its key",
			o.Cert, o.Key, err)
	}
	c.fingerprint = fingerprint(c.pair.Leaf.RawSubjectPublicKeyInfo)
	return c, nil
}

// Leaf returns the certificate of the files, or nil if there are none.
func (c *Certificate) Leaf() *x509.Certificate { return c.pair.Leaf }

// Use makes a certificate the one in use. Open connections keep the certificate with which they began.
func (s *Source) Use(c *Certificate) { s.current.Store(c) }

// find returns the certificate for a connection to a host, or to an address of this machine if the client names no host.
func (c *Certificate) find(host string, to net.Addr) (*tls.Certificate, error) {
	if c.authority == nil {
		return &c.pair, nil
	}
	if at, err := netip.ParseAddrPort(to.String()); host == "" && err == nil {
		host = at.Addr().Unmap().String()
	}
	if signed, err := c.authority.IssueCertificate(host); err == nil {
		return signed, nil
	}
	return c.authority.IssueCertificate(localHost)
}

// localHost is the name of this machine for programs that run on it.
const localHost = "localhost"

// Config returns the configuration of servers that use the certificate.
func (s *Source) Config() *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if s.Issued != nil {
				if issued := s.Issued(hello); issued != nil {
					return issued, nil
				}
			}
			return s.current.Load().find(hello.ServerName, hello.Conn.LocalAddr())
		},
		DynamicRecordSizingDisabled: true, // an answer is sent in few large records, and not in many of the size of a packet
	}
	if s.Issued != nil {
		c.NextProtos = []string{"acme-tls/1"} // the authority asks by it (RFC 8737, 6.2)
	}
	return c
}

// Key returns the private key of the authority in the data folder.
func (s *Source) Key() ([]byte, error) { return s.current.Load().authority.key.Bytes() }

// Fingerprint returns the fingerprint of the server's key, or "" for a nil source.
func (s *Source) Fingerprint() string {
	if s == nil {
		return ""
	}
	return s.current.Load().fingerprint
}

func fingerprint(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

// NewClientConfig returns the configuration of clients that know their servers by the fingerprints of the keys. isKnown reports whether
// a fingerprint is one of theirs.
func NewClientConfig(isKnown func(fingerprint string) bool) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection decides instead, also if the certificate names other hosts
		VerifyConnection: func(c tls.ConnectionState) error {
			if !isKnown(fingerprint(c.PeerCertificates[0].RawSubjectPublicKeyInfo)) {
				return fmt.Errorf("certificate: %w: another server answers, or its key has changed", understudy.ErrForbidden)
			}
			return nil
		},
	}
}

// Handler returns a handler that tells browsers to use only TLS for the host of a request (RFC 6797), for a year. It does not tell them so
// if the certificate is signed by an authority of the data folder, nor for this machine, where other programs may serve without TLS.
func (s *Source) Handler(next http.Handler) http.Handler {
	if s == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.Host)
		host = cmp.Or(host, r.Host) // it may have no port
		if _, err := netip.ParseAddr(host); r.TLS != nil && err != nil && host != localHost &&
			(s.current.Load().authority == nil || slices.Contains(s.Names, host)) {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}
