// Tests of the proxy: whose requests are answered inside, what is refused, and that no tunnel stays.

package connect

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/internal/certificate"
	"understudy/internal/checktest"
	"understudy/internal/datadir"
	"understudy/kit/jsonhttp"
	"understudy/spec"
)

// running is a proxy over real TCP, with a server inside that echoes what it was asked.
type running struct {
	*Proxy
	address string
	pool    *x509.CertPool
}

// patience bounds every single thing a test waits for.
const patience = 30 * time.Second

func run(t testing.TB, o Options, headTime time.Duration) *running {
	t.Helper()
	sp := &spec.Spec{Hosts: []spec.Host{{URL: "https://api.example.com", Prefixes: []string{"/v1"}},
		{URL: "https://Files.Example.com:8443/base/", Prefixes: []string{"/files"}}}}
	o.Origins = Origins(sp, "")
	hosts := []string{}
	served := []Served{}
	for _, at := range o.Origins {
		hosts = append(hosts, at.Host)
		served = append(served, Served{at, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s at %s by HTTP/%d: %s", r.Method, r.RequestURI, at.Host, r.ProtoMajor, body)
		})})
	}
	a, _, err := certificate.OpenAuthority(filepath.Join(t.TempDir(), datadir.AuthorityFile), hosts, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	o.Authority, o.HandshakeTimeout = a, headTime
	p := New(o)
	outside := httptest.NewServer(p)
	inside := &http.Server{Handler: NewHandler(served), ReadHeaderTimeout: headTime, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan error, 1)
	go func() { done <- inside.Serve(p.Listener()) }()
	t.Cleanup(func() {
		outside.Close()
		if err := errors.Join(inside.Close(), p.Close()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	text, err := os.ReadFile(a.Path())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &running{p, outside.Listener.Addr().String(), pool}
}

// client is one that has only heard of the proxy and of the authority.
func (r *running) client(t testing.TB, two bool) *http.Client {
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: r.address}), TLSClientConfig: &tls.Config{RootCAs: r.pool},
		ForceAttemptHTTP2: two}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

// dial asks for a tunnel, and sends something right behind.
func (r *running) dial(t testing.TB, authority, behind string) (net.Conn, *http.Response) {
	t.Helper()
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n%s", authority, authority, behind); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	return &bufferedConn{c, in}, resp
}

func TestRequestsInsideAreAnsweredByTheirHost(t *testing.T) {
	t.Parallel()
	r := run(t, Options{}, patience)
	for _, two := range []bool{false, true} {
		c, version := r.client(t, two), 1
		if two {
			version = 2
		}
		for address, want := range map[string]string{
			"https://api.example.com/v1/x?a=1":          "POST /v1/x?a=1 at api.example.com by HTTP/%d: body",
			"https://API.example.com:443/":              "POST / at api.example.com by HTTP/%d: body",
			"https://files.example.com:8443/base/a%2Fb": "POST /a%%2Fb at files.example.com by HTTP/%d: body",
		} {
			resp, err := c.Post(address, "text/plain", strings.NewReader("body"))
			if err != nil {
				t.Fatalf("%s: %v", address, err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if want := fmt.Sprintf(want, version); err != nil || string(body) != want {
				t.Errorf("%s: %q, %v; want %q", address, body, err, want)
			}
		}
		resp, err := c.Get("https://files.example.com:8443/basement")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("a path beside the base: %s", resp.Status)
		}
	}
}

// Whoever has a tunnel to one host asks no other one in it.
func TestATunnelIsForOneHost(t *testing.T) {
	t.Parallel()
	r := run(t, Options{}, patience)
	c := r.client(t, true)
	for _, host := range []string{"files.example.com", "api.example.com:444", "bank.example", "", "[::1]", "api.example.com:x"} {
		req, err := http.NewRequest(http.MethodGet, "https://api.example.com/v1", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := c.Do(req)
		if err != nil {
			t.Fatalf("%q: %v", host, err)
		}
		_ = resp.Body.Close()
		if want := http.StatusMisdirectedRequest; host != "" && resp.StatusCode != want {
			t.Errorf("Host %q: %s", host, resp.Status)
		}
	}
	for _, name := range []string{"files.example.com", "bank.example", ""} {
		nc, resp := r.dial(t, "api.example.com:443", "")
		if resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
		if err := tls.Client(nc, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake(); err == nil {
			t.Errorf("TLS for %q in a tunnel to another host", name)
		}
	}
}

// Who does not wait for our word is served, too.
func TestWhatComesBehindTheHeadIsOfTheTunnel(t *testing.T) {
	t.Parallel()
	r := run(t, Options{}, patience)
	near, far := net.Pipe()
	hello := make(chan string, 1)
	go func() {
		buf := make([]byte, 8<<10)
		n, _ := far.Read(buf)
		hello <- string(buf[:n])
		_ = far.Close()
	}()
	_ = tls.Client(near, &tls.Config{ServerName: "api.example.com"}).Handshake()
	nc, resp := r.dial(t, "api.example.com:443", <-hello)
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	record := make([]byte, 6)
	_, err := io.ReadFull(nc, record)
	checktest.NoError(t, err, "% x", record)
	checktest.Equal(t, record[0], 22, "the record's type (22 is a handshake)")
	checktest.Equal(t, record[5], 2, "the message (2 is ServerHello)")
}

func TestOtherHostsAreRefused(t *testing.T) {
	t.Parallel()
	closed, open := run(t, Options{}, patience), run(t, Options{Tunnel: []string{"*", "*:80", "*:22"}}, patience)
	for _, one := range []struct {
		r         *running
		authority string
		status    int
		text      string
	}{
		{closed, "example.com:443", 403, "connect: {tunnel: [example.com:443]}"},
		{closed, "127.0.0.1:443", 403, "is not the host of a source"},
		{closed, "api.example.com.evil.example:443", 403, "is not the host of a source"},
		{closed, "xapi.example.com:443", 403, "is not the host of a source"},
		{closed, "api.example.com:22", 403, "Only port 443"},
		{open, "api.example.com:22", 403, "Only port 443"},
		{closed, "files.example.com:443", 403, "Only port 8443"},
		{open, "127.0.0.1:443", 403, "connect.allow_private"},
		{open, "[::ffff:127.0.0.1]:443", 403, "connect.allow_private"},
		{open, "[::1]:443", 403, "connect.allow_private"},
		{open, "localhost:443", 403, "connect.allow_private"},
		{open, "169.254.169.254:80", 403, "connect.allow_private"},
		{open, "10.0.0.1:22", 403, "connect.allow_private"},
		{open, "example.com:25", 403, "is not the host of a source"},
		{closed, "api.example.com", 400, "HOST:PORT"},
		{closed, "api.example.com:0", 400, "HOST:PORT"},
		{closed, "api.example.com:65537", 400, ""},
		{closed, ":443", 400, ""},
	} {
		_, resp := one.r.dial(t, one.authority, "")
		body, err := io.ReadAll(resp.Body)
		checktest.MustNoError(t, err, "%s; body %q", one.authority, body)
		checktest.Equal(t, resp.StatusCode, one.status, "%s: resp.StatusCode; body %q", one.authority, body)
		checktest.Contains(t, string(body), one.text, "%s: string(body)", one.authority)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		req, err := http.NewRequest(method, "http://"+closed.address+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Opaque = "http://api.example.com/v1" // a whole URL, as proxies are asked
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != http.MethodConnect {
			t.Errorf("%s: %s", method, resp.Status)
		}
	}
}

// A client that is silent after CONNECT, or in the midst of TLS, is not waited for.
func TestSilentClientsEnd(t *testing.T) {
	t.Parallel()
	r := run(t, Options{}, 50*time.Millisecond)
	for _, begun := range []string{"", "\x16\x03\x01\x02\x00\x01"} {
		nc, _ := r.dial(t, "api.example.com:443", begun)
		if _, err := io.Copy(io.Discard, nc); errors.Is(err, errDeadline) {
			t.Errorf("after %q: %v", begun, err)
		}
	}
}

// A client that speaks HTTP where TLS must begin is told so.
func TestHTTPInsteadOfTLSIsRefused(t *testing.T) {
	t.Parallel()
	r := run(t, Options{}, patience)
	nc, _ := r.dial(t, "api.example.com:443", "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if why := resp.Header.Get(jsonhttp.ErrorHeader); resp.StatusCode != http.StatusBadRequest || !strings.Contains(why, "start TLS") {
		t.Errorf("%s, %q", resp.Status, why)
	}
}

// A handshake that is under way does not keep the proxy from its end.
func TestEndDoesNotWaitForHandshakes(t *testing.T) {
	t.Parallel()
	r := run(t, Options{}, time.Hour)
	nc, _ := r.dial(t, "api.example.com:443", "")
	r.End()
	if _, err := io.Copy(io.Discard, nc); errors.Is(err, errDeadline) {
		t.Error(err)
	}
}
