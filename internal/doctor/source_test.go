// A stage: everything that is checked, all of it healthy and real, and the ways to break it.

package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
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
	"syscall"
	"testing"
	"time"

	"understudy/internal/certificate"
	"understudy/internal/checktest"
	"understudy/internal/config"
	"understudy/internal/datadir"
	"understudy/internal/store"
	"understudy/internal/store/pgtest"
	"understudy/internal/store/postgres"
	"understudy/internal/store/sqlite"
	"understudy/kit/lockwatch"
)

// quiet receives what the servers of the tests complain about.
var quiet = log.New(io.Discard, "", 0)

const secret = "marked-secret-0123456789"

// authority signs the certificates of the tests; the system trusts it.
var authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "doctor")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		authority.certificate = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
			BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			KeyUsage: x509.KeyUsageCertSign}
		authority.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		raw, err := x509.CreateCertificate(rand.Reader, authority.certificate, authority.certificate, &authority.key.PublicKey, authority.key)
		path := filepath.Join(dir, "authority.pem")
		err = errors.Join(err, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600),
			os.Setenv("SSL_CERT_FILE", path)) // before the first use of the system's certificates
		if err != nil {
			panic(err)
		}
		code := m.Run()
		if err := stopPostgres(); err != nil {
			panic(err)
		}
		return code
	}())
}

// newCertificate returns a certificate for localhost that ends at a time.
func newCertificate(t *testing.T, ends time.Time) tls.Certificate {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{"localhost"},
		NotBefore: ends.Add(-time.Hour * 24 * 365), NotAfter: ends}, authority.certificate, &authority.key.PublicKey, authority.key)
	checktest.MustNoError(t, err, "CreateCertificate")
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: authority.key}
}

// newDatabase returns the bytes of a new database.
var newDatabase = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "doctor")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, datadir.StoreFile)
	db, err := store.Open(context.Background(), store.Options{Path: path, Now: time.Now})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// stage has everything that is checked, all of it healthy.
type stage struct {
	*testing.T
	o        Options
	source   *config.Source
	answer   http.HandlerFunc // the answer of the upstream
	health   any              // the answers of the running server
	pending  config.Pending
	state    string
	healthEr error
	locks    lockwatch.Report
	issued   map[string]certificate.State
	asked    atomic.Int64 // the requests that the upstream received
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, health: map[string]any{"status": "ok"}, state: "ok"}
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("X-Oauth-Scopes", "repo, read:org")
		h.Set("X-Ratelimit-Limit", "5000")
		h.Set("X-Ratelimit-Remaining", "4990")
		h.Set("X-Ratelimit-Reset", fmt.Sprint(time.Now().Add(time.Hour).Unix()))
		_, _ = io.WriteString(w, "[]")
	}
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.asked.Add(1); s.answer(w, r) }))
	up.TLS = &tls.Config{Certificates: []tls.Certificate{newCertificate(t, time.Now().Add(90*24*time.Hour))}, MinVersion: tls.VersionTLS12}
	up.Config.ErrorLog = quiet
	up.StartTLS()
	t.Cleanup(up.Close)
	refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }
	front := httptest.NewServer(http.HandlerFunc(refuse))
	t.Cleanup(front.Close)
	dir := t.TempDir()
	checktest.MustNoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte(secret), 0o600), "write the secret")
	port := up.URL[strings.LastIndexByte(up.URL, ':'):]
	cfg, err := config.Parse([]byte(`data: `+dir+`/data
viewer: {role: all}
sources: {api: {spec: github, user: robin, secret: "file:token", upstream: "https://localhost`+port+`", listen: "127.0.0.1:0"}}
`), func(string) (string, bool) { return "", false })
	checktest.MustNoError(t, err, "Parse")
	sources, err := cfg.ReadSources(dir)
	checktest.MustNoError(t, err, "ReadSources")
	cfg.Viewer.PublicURL, s.source = front.URL, cfg.Sources["api"]
	checktest.MustNoError(t, os.Mkdir(cfg.Data, 0o700), "make the data folder")
	data, err := newDatabase()
	checktest.MustNoError(t, err, "make a database")
	checktest.MustNoError(t, os.WriteFile(filepath.Join(cfg.Data, datadir.StoreFile), data, 0o600), "write the database")
	s.o = Options{Data: cfg.Data, Settings: cfg, Sources: sources, Secrets: config.FileSecrets(dir), Now: time.Now, Ask: s.ask}
	return s
}

// ask answers as the running server does.
func (s *stage) ask(_ context.Context, path string, into any) error {
	answers := map[string]any{"/-/health": s.health, "/-/locks?format=json": s.locks, "/-/reload": s.pending, "/-/stats": map[string]any{
		"certificates": s.issued, "sources": map[string]any{"api": map[string]any{"state": s.state}}}}
	if path == "/-/health" && s.healthEr != nil {
		return s.healthEr
	}
	data, err := json.Marshal(answers[path])
	return errors.Join(err, json.Unmarshal(data, into))
}

// header lets the upstream answer with another field of the header.
func (s *stage) header(name, value string) {
	healthy := s.answer
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		healthy(headerWriter{w, name, value}, r)
	}
}

// headerWriter replaces a field before the answer begins.
type headerWriter struct {
	http.ResponseWriter
	name, value string
}

func (w headerWriter) Write(p []byte) (int, error) {
	w.Header()[http.CanonicalHeaderKey(w.name)] = []string{w.value}
	return w.ResponseWriter.Write(p)
}

// refuse lets the upstream answer with a status.
func (s *stage) refuse(status int, body string) {
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// serve lets the upstream have another certificate.
func (s *stage) serve(c tls.Certificate) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.asked.Add(1); s.answer(w, r) }))
	up.TLS = &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS12}
	up.Config.ErrorLog = quiet
	up.StartTLS()
	s.Cleanup(up.Close)
	s.source.Upstream = "https://localhost" + up.URL[strings.LastIndexByte(up.URL, ':'):]
}

// files lets the ports have a certificate from files, with the key of another one if mixed is true.
func (s *stage) files(c tls.Certificate, mixed bool) {
	key := c.PrivateKey
	if mixed {
		other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		checktest.MustNoError(s, err, "GenerateKey")
		key = other
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	checktest.MustNoError(s, err, "MarshalPKCS8PrivateKey")
	s.o.Folder = s.TempDir()
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: c.Certificate[0]},
		"key.pem": {Type: "PRIVATE KEY", Bytes: der}} {
		checktest.MustNoError(s, os.WriteFile(filepath.Join(s.o.Folder, name), pem.EncodeToMemory(block), 0o600), "write %s", name)
	}
	s.o.Settings.TLS.Cert, s.o.Settings.TLS.Key = "cert.pem", "key.pem"
}

// mount makes the data folder a small disk.
func (s *stage) mount(options string) {
	s.o.Data = s.TempDir()
	if err := syscall.Mount("tmpfs", s.o.Data, "tmpfs", 0, options+",mode=0700"); err != nil {
		s.Skipf("a small disk cannot be mounted here: %v", err)
	}
	s.Cleanup(func() { checktest.NoError(s, syscall.Unmount(s.o.Data, 0), "unmount") })
}

// query runs a statement on the database.
func (s *stage) query(texts ...string) {
	c, err := sqlite.Dial(s.Context(), filepath.Join(s.o.Data, datadir.StoreFile), 64)
	checktest.MustNoError(s, err, "Dial")
	for _, text := range texts {
		checktest.MustNoError(s, c.ExecuteOnce(text), "%s", text)
	}
	checktest.MustNoError(s, c.Close(), "Close")
}

// postgres is one server for all tests: it has room for few connections, and is healthy otherwise.
func (s *stage) postgres(parameter string) {
	postgresMu.Lock()
	defer postgresMu.Unlock()
	if postgresDSN == "" {
		dsn, stop, err := pgtest.Start("fsync=on", "max_connections=40")
		checktest.MustNoError(s, err, "start PostgreSQL")
		postgresDSN, stopPostgres = dsn, stop
	}
	s.o.Settings.Store.DSN = postgresDSN + parameter
}

// connect opens connections to PostgreSQL until the test ends.
func (s *stage) connect(n int) {
	for range n {
		e, err := postgres.NewEngine(postgresDSN)
		checktest.MustNoError(s, err, "NewEngine")
		c, err := e.Dial(s.Context(), false)
		checktest.MustNoError(s, err, "Dial")
		s.Cleanup(func() { checktest.NoError(s, c.Close(), "Close") })
	}
}

// ignoreExpect is a proxy that waits for the body of each request without a word.
func (s *stage) ignoreExpect() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	checktest.MustNoError(s, err, "Listen")
	var served sync.WaitGroup
	s.Cleanup(func() { _ = l.Close(); served.Wait() })
	served.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		all, buffer := "", make([]byte, 4096)
		for !strings.HasSuffix(all, "{}") {
			n, err := c.Read(buffer)
			if err != nil {
				return
			}
			all += string(buffer[:n])
		}
		_, _ = io.WriteString(c, "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	})
	s.o.Settings.Viewer.PublicURL = "http://" + l.Addr().String()
}
