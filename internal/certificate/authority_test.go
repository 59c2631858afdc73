// Tests of the authority: what it is trusted for, and that its key stays closed.

package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/datadir"
)

// clock is a time that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newClock() *clock { return &clock{time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)} }

func openAuthority(t testing.TB, dir string, c *clock, hosts ...string) (a *Authority, made bool) {
	t.Helper()
	a, made, err := OpenAuthority(filepath.Join(dir, datadir.AuthorityFile), hosts, c.now)
	if err != nil {
		t.Fatal(err)
	}
	return a, made
}

// verify checks a certificate as a client does that trusts an authority.
func verify(trusted, leaf *x509.Certificate, host string, at time.Time) error {
	roots := x509.NewCertPool()
	roots.AddCert(trusted)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: at})
	return err
}

// signed is a certificate by the authority's key, for whatever is asked: what a thief of the
// key could make.
func signed(t *testing.T, a *Authority, template *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(1), pkix.Name{CommonName: "x"}
	template.NotBefore, template.NotAfter = a.now().Add(-time.Minute), a.now().Add(time.Hour)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, c
}

func TestTheAuthorityIsForItsHostsAlone(t *testing.T) {
	t.Parallel()
	c := newClock()
	a, made := openAuthority(t, t.TempDir(), c, "api.example.com", "monitor.example.com")
	if !made {
		t.Error("the first one is not new")
	}
	for _, host := range []string{"api.example.com", "monitor.example.com"} {
		leaf, err := a.IssueCertificate(host)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(a.cert, leaf.Leaf, host, c.at); err != nil {
			t.Errorf("%s: %v", host, err)
		}
		if err := verify(a.cert, leaf.Leaf, "other.example.com", c.at); err == nil {
			t.Errorf("%s is taken for another host", host)
		}
		// OpenSSL takes a common name like 127.0.0.1 for a host, which the authority may not sign for.
		if name := leaf.Leaf.Subject.CommonName; name != "" {
			t.Errorf("%s has the common name %s", host, name)
		}
		if left := leaf.Leaf.NotAfter.Sub(c.at); left > 25*time.Hour {
			t.Errorf("%s holds for %v", host, left)
		}
	}
	if _, err := a.IssueCertificate("bank.example"); err == nil {
		t.Error("it signs for any host")
	}
	for name, template := range map[string]*x509.Certificate{
		"another host": {DNSNames: []string{"bank.example"}},
		"above":        {DNSNames: []string{"example.com"}},
		"beside":       {DNSNames: []string{"xapi.example.com"}},
		"two":          {DNSNames: []string{"api.example.com", "bank.example"}},
		"a wildcard":   {DNSNames: []string{"*.example.com"}},
		"an address":   {DNSNames: []string{"api.example.com"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}},
		"IPv6":         {IPAddresses: []net.IP{net.IPv6loopback}},
	} {
		host := ""
		if len(template.DNSNames) > 0 {
			host = strings.Replace(template.DNSNames[len(template.DNSNames)-1], "*", "a", 1)
		}
		_, leaf := signed(t, a, template)
		if err := verify(a.cert, leaf, host, c.at); err == nil {
			t.Errorf("%s: a certificate for %v %v is taken", name, template.DNSNames, template.IPAddresses)
		}
	}
	// It makes no authority below it.
	key, below := signed(t, a, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	_, leaf := signed(t, &Authority{now: c.now, cert: below, key: key}, &x509.Certificate{DNSNames: []string{"api.example.com"}})
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(a.cert)
	between.AddCert(below)
	o := x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: "api.example.com", CurrentTime: c.at}
	if _, err := leaf.Verify(o); err == nil {
		t.Error("an authority below it is taken")
	}
}

func TestTheKeyIsForNobodyElse(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	a, _ := openAuthority(t, dir, c, "api.example.com")
	path := filepath.Join(dir, datadir.AuthorityKeyFile)
	if runtime.GOOS != "windows" {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key's mode is %v: %v", info.Mode(), err)
		}
		if info, err := os.Stat(a.Path()); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("the certificate's mode is %v: %v", info.Mode(), err)
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, _, err := OpenAuthority(a.Path(), []string{"api.example.com"}, c.now); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("a key that others may open: %v", err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(a.Path()); err != nil || strings.Contains(string(text), "PRIVATE") {
		t.Errorf("the certificate's file: %v", err)
	}
	const secret = "-----BEGIN PRIVATE KEY-----\nMHNlY3JldA==\n-----END PRIVATE KEY-----\n"
	for _, text := range []string{"", "no key", secret, secret + "more"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := OpenAuthority(filepath.Join(dir, datadir.AuthorityFile), []string{"api.example.com"}, c.now)
		checktest.MustTrue(t, err != nil, "the key %q: err is nil", text)
		checktest.Contains(t, err.Error(), "delete it", "the key %q: err.Error()", text)
		checktest.Lacks(t, err.Error(), "secret", "the key %q: err.Error()", text)
	}
}

func TestOtherHostsGetAnotherCertificateByTheSameKey(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	former, _ := openAuthority(t, dir, c, "api.example.com", "old.example.com")
	if again, made := openAuthority(t, dir, c, "old.example.com", "api.example.com"); made || !again.cert.Equal(former.cert) {
		t.Error("another certificate without need")
	}
	now, made := openAuthority(t, dir, c, "api.example.com", "new.example.com")
	if !made || !now.key.Equal(former.key) {
		t.Fatal("no new certificate by the same key")
	}
	for _, one := range []struct {
		trusted *x509.Certificate
		host    string
		ok      bool
	}{{former.cert, "api.example.com", true}, {former.cert, "new.example.com", false}, {now.cert, "api.example.com", true},
		{now.cert, "new.example.com", true}} {
		leaf, err := now.IssueCertificate(one.host)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(one.trusted, leaf.Leaf, one.host, c.at); (err == nil) != one.ok {
			t.Errorf("%s: %v", one.host, err)
		}
	}
	if _, err := now.IssueCertificate("old.example.com"); err == nil {
		t.Error("it goes on signing for a host that has gone")
	}
}

func TestCertificatesAreRenewedBeforeTheyEnd(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	a, _ := openAuthority(t, dir, c, "api.example.com")
	get := func() *x509.Certificate {
		leaf, err := a.IssueCertificate("api.example.com")
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(a.cert, leaf.Leaf, "api.example.com", c.at); err != nil {
			t.Fatalf("at %v: %v", c.at, err)
		}
		return leaf.Leaf
	}
	first := get()
	for range 15 {
		if c.at = c.at.Add(time.Hour); !get().Equal(first) {
			t.Fatalf("another one at %v", c.at)
		}
	}
	for range 60 * 24 {
		c.at = c.at.Add(time.Hour)
		if left := get().NotAfter.Sub(c.at); left < 7*time.Hour {
			t.Fatalf("%v is left", left)
		}
	}
	if get().Equal(first) {
		t.Error("it was never renewed")
	}
	c.at = a.cert.NotAfter.Add(-time.Hour)
	if left := get().NotAfter; left.After(a.cert.NotAfter) {
		t.Errorf("it outlives the authority: %v", left)
	}
	again, made := openAuthority(t, dir, c, "api.example.com")
	checktest.MustTrue(t, made, "the authority was not renewed: made is false")
	checktest.True(t, again.key.Equal(a.key), "the authority was not renewed: again.key.Equal(a.key) is false")
	checktest.True(t, again.cert.NotAfter.Sub(c.at) >= 1000*24*time.Hour,
		"the authority was not renewed: again.cert.NotAfter.Sub(c.at) is %v", again.cert.NotAfter.Sub(c.at))
	c.at = c.at.Add(-20 * 365 * 24 * time.Hour) // the clock was wrong
	if _, made := openAuthority(t, dir, c, "api.example.com"); !made {
		t.Error("a certificate that has not begun is kept")
	}
}

func TestNoHostsNoAuthority(t *testing.T) {
	t.Parallel()
	if _, _, err := OpenAuthority(t.TempDir(), nil, newClock().now); err == nil {
		t.Error("an authority for every host")
	}
}
