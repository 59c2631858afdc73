// Certificates.

package rig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// WriteCertificate writes a self-signed certificate of 127.0.0.1 and localhost, and its key, into a folder. It returns
// their paths.
func WriteCertificate(t *testing.T, dir string) (certificate, key string) {
	t.Helper()
	return writeCertificate(t, dir, newKey())
}

// WriteTrusted does what WriteCertificate does, with a key that the browser of this program trusts.
func WriteTrusted(t *testing.T, dir string) (certificate, key string) {
	t.Helper()
	return writeCertificate(t, dir, trustedKey())
}

// TrustedKeyHash returns the hash of the key of WriteTrusted as browsers want it.
func TrustedKeyHash() string {
	public, err := x509.MarshalPKIXPublicKey(trustedKey().Public())
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256(public)
	return base64.StdEncoding.EncodeToString(sum[:])
}

var trustedKey = sync.OnceValue(newKey)

func newKey() *ecdsa.PrivateKey {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return private
}

func writeCertificate(t *testing.T, dir string, private *ecdsa.PrivateKey) (certificate, key string) {
	t.Helper()
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:  []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	signed, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"mail.crt": {Type: "CERTIFICATE", Bytes: signed}, "mail.key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "mail.crt"), filepath.Join(dir, "mail.key")
}
