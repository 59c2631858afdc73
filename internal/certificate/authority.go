// This file contains a certificate authority of this machine. It issues certificates for the hosts that it may sign.

package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"understudy/internal/datadir"
	"understudy/internal/smallfile"
	"understudy/kit/lockwatch"
)

// How long certificates are valid. Every certificate is valid from a time in the past, because clocks differ.
const (
	authorityLife = 5 * 365 * 24 * time.Hour
	authorityLeft = 60 * 24 * time.Hour // if the authority's certificate is valid for less time at a start, it is renewed
	hostLife      = 24 * time.Hour
	hostLeft      = 8 * time.Hour // if a host's certificate is valid for less time, it is renewed
	clockSkew     = time.Hour
)

// Authority signs certificates for some hosts only. Its own certificate contains this restriction (RFC 5280,
// 4.2.1.10), so that clients trust it only for these hosts. Its key is stored only in a file of the data folder.
// Certificates of hosts are kept in memory. It is safe for concurrent use.
type Authority struct {
	now   func() time.Time
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	path  string // the path of the certificate's file
	hosts []string

	hostKey     *ecdsa.PrivateKey // the key of all hosts
	fingerprint string            // that of hostKey

	mu     lockwatch.Mutex
	issued map[string]*tls.Certificate // the issued certificates by host
}

// OpenAuthority reads the authority with a certificate in the file path, which ends with .pem, or creates it. Its key is in a file beside
// it. It renews the certificate with the same key if the certificate has other hosts or expires soon. made is true if it created or renewed
// the certificate. Clients that trust the old certificate still work for the hosts that are in both. Only one server at a time may use the
// authority.
func OpenAuthority(path string, hosts []string, now func() time.Time) (a *Authority, made bool, err error) {
	a = &Authority{now: now, path: path, hosts: slices.Compact(slices.Sorted(slices.Values(hosts))), issued: map[string]*tls.Certificate{}}
	if a.key, err = readKey(strings.TrimSuffix(path, ".pem") + ".key"); err != nil {
		return nil, false, fmt.Errorf("certificate: %w", err)
	}
	if a.hostKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, false, err
	}
	public, err := x509.MarshalPKIXPublicKey(&a.hostKey.PublicKey)
	if err != nil {
		return nil, false, err
	}
	a.fingerprint = fingerprint(public)
	if a.cert, err = readCertificate(a.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("certificate: %w; delete the file, and a new one is created", err)
	}
	if a.cert != nil && a.isCurrent() {
		return a, false, nil
	}
	if err := a.renew(); err != nil {
		return nil, false, fmt.Errorf("certificate: certificate of the authority: %w", err)
	}
	return a, true, nil
}

// isCurrent reports whether the certificate belongs to the key, has the same hosts, and is valid for long enough.
func (a *Authority) isCurrent() bool {
	now := a.now()
	return a.key.PublicKey.Equal(a.cert.PublicKey) && a.cert.IsCA && a.cert.PermittedDNSDomainsCritical &&
		slices.Equal(permittedHosts(a.cert), a.hosts) &&
		!now.Before(a.cert.NotBefore) && now.Add(authorityLeft).Before(a.cert.NotAfter)
}

// permittedHosts returns the hosts for which an authority may sign.
func permittedHosts(authority *x509.Certificate) []string {
	hosts := slices.Clone(authority.PermittedDNSDomains)
	for _, addresses := range authority.PermittedIPRanges {
		hosts = append(hosts, addresses.IP.String())
	}
	slices.Sort(hosts)
	return hosts
}

// split sorts hosts into names and addresses.
func split(hosts []string) (names []string, addresses []net.IP) {
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			addresses = append(addresses, ip.AsSlice())
		} else {
			names = append(names, host)
		}
	}
	return names, addresses
}

// renew creates the certificate of the authority and writes it to its file.
func (a *Authority) renew() error {
	public, err := x509.MarshalPKIXPublicKey(&a.key.PublicKey)
	if err != nil {
		return err
	}
	id := sha256.Sum256(public)
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	names, addresses := split(a.hosts)
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Understudy of this machine " + hex.EncodeToString(id[:4])},
		SubjectKeyId: id[:20],
		NotBefore:    a.now().Add(-clockSkew), NotAfter: a.now().Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: names,
	}
	for _, ip := range addresses { // then it may sign for no others
		template.PermittedIPRanges = append(template.PermittedIPRanges, &net.IPNet{IP: ip, Mask: net.CIDRMask(8*len(ip), 8*len(ip))})
	}
	if len(addresses) == 0 {
		template.ExcludedIPRanges = []*net.IPNet{{IP: make(net.IP, net.IPv4len), Mask: make(net.IPMask, net.IPv4len)},
			{IP: make(net.IP, net.IPv6len), Mask: make(net.IPMask, net.IPv6len)}}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	if err := datadir.WriteFile(a.path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})); err != nil {
		return err
	}
	return os.Chmod(a.path, 0o644) // other users must be able to read the certificate, which contains no secret
}

// Path returns the path of the certificate's file, which does not contain the key.
func (a *Authority) Path() string { return a.path }

// IssueCertificate returns the certificate of a host with its key. For a host that the authority may not sign
// it returns an error.
func (a *Authority) IssueCertificate(host string) (*tls.Certificate, error) {
	if !slices.Contains(a.hosts, host) {
		return nil, fmt.Errorf("certificate: none for %q", host)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.issued[host]; c != nil && a.now().Add(hostLeft).Before(c.Leaf.NotAfter) && !a.now().Before(c.Leaf.NotBefore) {
		return c, nil
	}
	c, err := a.signCertificate(host)
	if err != nil {
		return nil, fmt.Errorf("certificate: of %s: %w", host, err)
	}
	a.issued[host] = c
	return c, nil
}

// signCertificate creates a certificate for a host.
func (a *Authority) signCertificate(host string) (*tls.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := a.now()
	names, addresses := split([]string{host})
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{Organization: []string{"Understudy"}}, DNSNames: names, IPAddresses: addresses,
		NotBefore: now.Add(-clockSkew), NotAfter: slices.MinFunc([]time.Time{now.Add(hostLife), a.cert.NotAfter}, time.Time.Compare),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &a.hostKey.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.hostKey, Leaf: leaf}, err
}

// maxFile is the maximum size in bytes of the files with the key and the certificate.
const maxFile = 1 << 20

// readKey reads the key from a file, or creates it.
func readKey(path string) (*ecdsa.PrivateKey, error) {
	data, err := smallfile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(path)
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, errors.Join(err, fmt.Errorf("%s: other users can read it; run chmod 600 on it, or delete it, and a new one is created", path))
	}
	block, rest := pem.Decode(data)
	if block == nil || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("%s is not a key; delete it, and a new one is created", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	ec, ok := key.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		// the parser's error may quote the key, so it is not used
		return nil, fmt.Errorf("%s is not a key of Understudy; delete it, and a new one is created", path)
	}
	return ec, nil
}

func makeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, datadir.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func readCertificate(path string) (*x509.Certificate, error) {
	data, err := smallfile.Read(path, maxFile)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s is not a certificate", path)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cert, nil
}
