package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/datadir"
)

// open returns a source that uses the certificate of the options.
func open(t *testing.T, dir string, o Options, now func() time.Time) *Source {
	t.Helper()
	c, err := Read(dir, o, now)
	checktest.MustNoError(t, err, "read")
	s := &Source{}
	s.Use(c)
	return s
}

var local = Options{Hosts: []string{"::1", "127.0.0.1", localHost}}

// writePair writes a certificate of localhost and its key to files.
func writePair(t *testing.T) (o Options) {
	t.Helper()
	dir := t.TempDir()
	open(t, dir, local, time.Now)
	return Options{Cert: filepath.Join(dir, datadir.CertificateFile), Key: filepath.Join(dir, datadir.CertificateKeyFile)}
}

// presented returns the certificate that a server presents to a client that connects to 127.0.0.1 and names a host.
func (s *Source) presented(t *testing.T, host string) *x509.Certificate {
	t.Helper()
	server, client := net.Pipe()
	defer client.Close()
	go func() {
		_ = tls.Server(localConn{server}, s.Config()).Handshake()
		_ = server.Close()
	}()
	c := tls.Client(client, &tls.Config{InsecureSkipVerify: true, ServerName: host})
	checktest.MustNoError(t, c.Handshake(), "handshake")
	return c.ConnectionState().PeerCertificates[0]
}

// localConn is a connection to 127.0.0.1.
type localConn struct{ net.Conn }

func (localConn) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4114} }

// A client that trusts the authority of the data folder trusts the server at each of its hosts, after restarts and renewals too.
func TestOwnCertificateIsTrustedAndRenewed(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	s := open(t, dir, local, c.now)
	trusted, err := readCertificate(filepath.Join(dir, datadir.CertificateFile))
	checktest.MustNoError(t, err, "certificate")
	key := s.Fingerprint()
	for _, after := range []time.Duration{0, hostLife, 365 * 24 * time.Hour, authorityLife - authorityLeft - 2*time.Hour} {
		c.at = newClock().at.Add(after)
		for name, host := range map[string]string{"localhost": "localhost", "": "127.0.0.1", "unknown.example": "localhost"} {
			checktest.NoError(t, verify(trusted, s.presented(t, name), host, c.at), "after %v: host %q", after, name)
		}
		checktest.Equal(t, s.Fingerprint(), key, "after %v: fingerprint", after)
		s = open(t, dir, local, c.now)
		key = s.Fingerprint()
		again, err := readCertificate(filepath.Join(dir, datadir.CertificateFile))
		checktest.NoError(t, err, "certificate")
		checktest.True(t, again.Equal(trusted), "after %v, a restart makes another certificate", after)
	}
	c.at = newClock().at.Add(authorityLife - authorityLeft/2)
	open(t, dir, local, c.now)
	again, err := readCertificate(filepath.Join(dir, datadir.CertificateFile))
	checktest.NoError(t, err, "certificate")
	checktest.True(t, !again.Equal(trusted), "it is not renewed before its end")
	checktest.True(t, bytes.Equal(again.RawSubjectPublicKeyInfo, trusted.RawSubjectPublicKeyInfo), "the renewed one has another key")
}

// The authority signs for no other addresses.
func TestAuthorityOfAddresses(t *testing.T) {
	c := newClock()
	a, _ := openAuthority(t, t.TempDir(), c, local.Hosts...)
	for host, ok := range map[string]bool{"127.0.0.1": true, "::1": true, "127.0.0.2": false, "10.0.0.1": false, "::2": false} {
		_, leaf := signed(t, a, &x509.Certificate{IPAddresses: []net.IP{net.ParseIP(host)}})
		checktest.Equal(t, verify(a.cert, leaf, host, c.at) == nil, ok, "%s is accepted", host)
	}
}

// Files that do not belong together, or that are none, are refused in one sentence that names them.
func TestWrongFilesAreRefused(t *testing.T) {
	right, other := writePair(t), writePair(t)
	for _, wrong := range []Options{
		{Cert: right.Cert, Key: other.Key}, {Cert: right.Key, Key: right.Cert}, {Cert: right.Cert, Key: right.Cert},
		{Cert: right.Cert, Key: filepath.Join(t.TempDir(), "nothing")},
	} {
		_, err := Read("", wrong, time.Now)
		checktest.MustTrue(t, err != nil, "%v is accepted", wrong)
		checktest.Contains(t, err.Error(), wrong.Key, "%v", wrong)
		checktest.Lacks(t, err.Error(), "\n", "%v", wrong)
	}
	info, err := os.Stat(right.Key)
	checktest.MustNoError(t, err, "key")
	checktest.Equal(t, info.Mode().Perm(), 0o600, "mode of a key")
}

// Browsers are told to use only TLS, except for this machine, for addresses, and for a certificate that they do not trust.
func TestStrictTransport(t *testing.T) {
	own, files := open(t, t.TempDir(), local, time.Now), open(t, "", writePair(t), time.Now)
	const strict = "max-age=31536000"
	for _, c := range []struct {
		of   *Source
		host string
		tls  bool
		want string
	}{
		{files, "calls.example.com", true, strict}, {files, "calls.example.com:4114", true, strict},
		{files, "calls.example.com", false, ""}, {own, "calls.example.com", true, ""}, {files, "localhost:4114", true, ""},
		{files, "127.0.0.1:4114", true, ""}, {files, "[::1]:4114", true, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if r.Host = c.host; c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		w := httptest.NewRecorder()
		c.of.Handler(http.NotFoundHandler()).ServeHTTP(w, r)
		checktest.Equal(t, w.Header().Get("Strict-Transport-Security"), c.want, "%v", c)
	}
}

// A client that knows a fingerprint accepts this server and no other.
func TestClientsKnowTheServer(t *testing.T) {
	for _, s := range []*Source{open(t, t.TempDir(), local, time.Now), open(t, "", writePair(t), time.Now)} {
		l, err := tls.Listen("tcp", "127.0.0.1:0", s.Config())
		checktest.MustNoError(t, err, "listen")
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
			}
		}()
		for name, isKnown := range map[string]bool{s.Fingerprint(): true, "": false, strings.Repeat("0", 64): false} {
			d := tls.Dialer{Config: NewClientConfig(func(fingerprint string) bool { return fingerprint == name })}
			c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
			checktest.Equal(t, err == nil, isKnown, "%q is accepted", name)
			if err == nil {
				checktest.NoError(t, c.Close(), "close")
			}
		}
	}
}
