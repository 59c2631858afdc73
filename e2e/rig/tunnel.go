// Tunnels: programs that nobody has changed go through the proxy of connect.

package rig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"understudy/e2e/binary"
)

// Tunnels is a server with the proxy of connect. In its tunnels it answers for the vendors' own hosts, from three
// simulated APIs.
type Tunnels struct {
	*binary.Server
	Dir       string
	Upstreams map[string]string // by source
}

// StartTunnels starts the server and its APIs. It takes the settings of connect in one line, and more arguments for
// the simulated APIs.
func StartTunnels(t testing.TB, connect string, more ...string) *Tunnels {
	t.Helper()
	s := &Tunnels{Dir: t.TempDir(), Upstreams: map[string]string{}}
	for name, args := range map[string][]string{
		"twilio": {"--records", "200"}, "github": {"--shape", "github", "--records", "60"}, "stripe": {"--shape", "stripe", "--records", "60"},
	} {
		s.Upstreams[name] = StartAPI(t, slices.Concat(args, []string{"--latency", "1ms"}, more)...).URL("slowapi")
	}
	s.Server = s.Serve(t, connect)
	return s
}

// Serve starts the server on its folder, once more after Stop.
func (s *Tunnels) Serve(t testing.TB, connect string) *binary.Server {
	t.Helper()
	for name, text := range map[string]string{
		"token": APIToken, "stripe.token": "sk_test_" + APIToken, "demo": DemoToken, "program": ProgramSecret,
		"understudy.yml": fmt.Sprintf(`data: ./data
viewer: {listen: "127.0.0.1:0", sign_in: none, role: all}
connect: {listen: "127.0.0.1:0"%s}
sources:
  twilio: {spec: twilio, upstream: %q, user: %s, secret: "file:token", listen: "127.0.0.1:0", rate: 2000, polls: []}
  github: {spec: github, upstream: %q, user: robin, secret: "file:token", listen: "127.0.0.1:0", rate: 2000}
  stripe: {spec: stripe, upstream: %q, secret: "file:stripe.token", listen: "127.0.0.1:0", rate: 2000}
credentials:
  - {name: demo, source: twilio, user: %s, secret: "file:demo", role: support}
  - {name: program, source: github, secret: "file:program", role: all}
roles:
  support: {twilio: {"*": see, phone: last4, body: hide}}
log: {access: access.log}
`, AfterComma(connect), s.Upstreams["twilio"], Account, s.Upstreams["github"], s.Upstreams["stripe"], Account),
	} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Start(t, s.Dir, "serve")
}

// Certificate returns what `understudy ca` prints, and a file that has it.
func (s *Tunnels) Certificate(t testing.TB) (pem []byte, path string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Program, "ca")
	cmd.Dir = s.Dir
	out, err := cmd.Output()
	if err != nil || strings.Contains(string(out), "PRIVATE") {
		t.Fatalf("understudy ca: %v\n%s", err, out)
	}
	path = filepath.Join(s.Dir, "ca.pem")
	if err := os.WriteFile(path, out, 0o600); err != nil {
		t.Fatal(err)
	}
	return out, path
}

// Client returns a client that goes through the proxy and trusts its certificate alone.
func (s *Tunnels) Client(t testing.TB) *http.Client {
	t.Helper()
	pem, _ := s.Certificate(t)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatal("no certificate")
	}
	proxy, err := url.Parse(s.URL("connect"))
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: Patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Relay starts a server that passes requests on through the proxy to a host, and returns its address.
func Relay(t testing.TB, s *Tunnels, host string) string {
	t.Helper()
	r := httptest.NewServer(&httputil.ReverseProxy{Transport: s.Client(t).Transport, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", host, host }})
	t.Cleanup(r.Close)
	return r.URL
}

// Lines returns the lines of docs/reference/proxy.md in a language, with the addresses of this server.
func (s *Tunnels) Lines(t testing.TB, language string) string {
	t.Helper()
	_, path := s.Certificate(t)
	for _, b := range ReadBlocks(t, "../../docs/reference/proxy.md") {
		if b.Language == language {
			return strings.NewReplacer("http://127.0.0.1:4117", s.URL("connect"), "$PWD/ca.pem", path).Replace(strings.Join(b.Lines, "\n") + "\n")
		}
	}
	t.Fatalf("docs/reference/proxy.md has no lines in %s", language)
	return ""
}

// Run runs a program in a folder with environment variables, as lines of the shell, and returns its output.
func (s *Tunnels) Run(t *testing.T, dir, variables string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", variables + `exec "$@"`, "sh"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(WithoutProxies(os.Environ()), "STRIPE_KEY=sk_test_"+APIToken, "GITHUB_TOKEN="+APIToken)
	out, err := cmd.Output()
	if err != nil {
		var why *exec.ExitError
		if errors.As(err, &why) {
			out = append(out, why.Stderr...)
		}
		t.Fatalf("%.80s: %v (is its package installed? `make setup`)\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// StartBefore starts the server with the proxy in front of an origin that speaks TLS and has no spec. It takes more
// settings of the source, and the writes to allow. It returns the origin's own host.
func (s *Tunnels) StartBefore(t *testing.T, o *httptest.Server, more, allow string) (host string) {
	t.Helper()
	trusted, key := WriteCertificate(t, s.Dir)
	certificate, err := tls.LoadX509KeyPair(trusted, key)
	if err != nil {
		t.Fatal(err)
	}
	o.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	o.StartTLS()
	t.Cleanup(o.Close)
	host = strings.Replace(strings.TrimPrefix(o.URL, "https://"), "127.0.0.1", "localhost", 1)
	for name, text := range map[string]string{"web.token": OriginToken, "understudy.yml": fmt.Sprintf(`data: ./data
viewer: {listen: "127.0.0.1:0", sign_in: none, role: all}
connect: {listen: "127.0.0.1:0", role: all, allow: [%q]}
sources:
  web: {generic: "https://%s", secret: "file:web.token", listen: "127.0.0.1:0"%s}
`, allow, host, AfterComma(more))} {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s.Server, err = binary.Start("/usr/bin/env", s.Dir, "SSL_CERT_FILE="+trusted, "SSL_CERT_DIR="+s.Dir, Program, "serve"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return host
}

// WithoutProxies returns an environment without the variables that lead packages elsewhere.
func WithoutProxies(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(v), "=")
		return strings.HasSuffix(name, "_PROXY") || strings.HasPrefix(name, "TWILIO_")
	})
}
