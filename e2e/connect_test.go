// Connect: programs that nobody has changed are led here by variables of their environment
// alone, and where they follow none, by the lines of their vendors.

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
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
	"time"

	"understudy/e2e/binary"
)

// tunnelled is a server with the proxy in front of three simulated APIs, which are asked at
// the vendors' own hosts.
type tunnelled struct {
	*binary.Server
	dir string
	up  map[string]string // by source
}

// startTunnelled has the proxy's settings in one line, and more for the simulated APIs.
func startTunnelled(t testing.TB, connect string, more ...string) *tunnelled {
	t.Helper()
	s := &tunnelled{dir: t.TempDir(), up: map[string]string{}}
	for name, args := range map[string][]string{
		"twilio": {"--records", "200"}, "github": {"--shape", "github", "--records", "60"}, "stripe": {"--shape", "stripe", "--records", "60"},
	} {
		s.up[name] = startAPI(t, slices.Concat(args, []string{"--latency", "1ms"}, more)...).URL("slowapi")
	}
	s.Server = s.serve(t, connect)
	return s
}

func (s *tunnelled) serve(t testing.TB, connect string) *binary.Server {
	t.Helper()
	for name, text := range map[string]string{
		"token": apiToken, "stripe.token": "sk_test_" + apiToken, "demo": demoToken, "program": programSecret,
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
`, comma(connect), s.up["twilio"], account, s.up["github"], s.up["stripe"], account),
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return start(t, s.dir, "serve")
}

// certificate is what `understudy ca` prints, also as a file.
func (s *tunnelled) certificate(t testing.TB) (pem []byte, path string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "ca")
	cmd.Dir = s.dir
	out, err := cmd.Output()
	if err != nil || strings.Contains(string(out), "PRIVATE") {
		t.Fatalf("understudy ca: %v\n%s", err, out)
	}
	path = filepath.Join(s.dir, "ca.pem")
	if err := os.WriteFile(path, out, 0o600); err != nil {
		t.Fatal(err)
	}
	return out, path
}

// client is one that goes through the proxy and trusts its certificate alone.
func (s *tunnelled) client(t testing.TB) *http.Client {
	t.Helper()
	pem, _ := s.certificate(t)
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
	return &http.Client{Transport: tr, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// relay passes requests on, as they are, through the proxy to a host. It returns its address.
func relay(t testing.TB, s *tunnelled, host string) string {
	t.Helper()
	r := httptest.NewServer(&httputil.ReverseProxy{Transport: s.client(t).Transport, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", host, host }})
	t.Cleanup(r.Close)
	return r.URL
}

// lines are those of docs/proxy.md in a language, for this server.
func (s *tunnelled) lines(t testing.TB, language string) string {
	t.Helper()
	_, path := s.certificate(t)
	for _, b := range blocks(t.(*testing.T), "../docs/proxy.md") {
		if b.language == language {
			return strings.NewReplacer("http://127.0.0.1:4117", s.URL("connect"), "$PWD/ca.pem", path).Replace(strings.Join(b.lines, "\n") + "\n")
		}
	}
	t.Fatalf("docs/proxy.md has no lines in %s", language)
	return ""
}

// run runs a program in a folder, under the variables of the page.
func (s *tunnelled) run(t *testing.T, dir, variables string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", variables + `exec "$@"`, "sh"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(withoutProxies(os.Environ()), "STRIPE_KEY=sk_test_"+apiToken, "GITHUB_TOKEN="+apiToken)
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

const (
	pythonProgram = ".venv/bin/python"
	pythonDir     = "sdks/python"
	nodeDir       = "sdks/node"
)

// The page's own variables and lines, and code that nobody has changed. What each prints is
// what it prints of upstream itself, and the access log says who asked.
func TestZeroCode(t *testing.T) {
	t.Parallel()
	s := startTunnelled(t, "role: all")
	variables := s.lines(t, "env")
	calls := rowsOf(t, get(t, account+":"+apiToken, s.up["twilio"]+base+"/Calls.json?PageSize=50").body, "calls", "sid")
	issues := rowsOf(t, get(t, "x:"+apiToken, s.up["github"]+"/repos/acme/tracker/issues?per_page=100").body, "", "number")
	customers := rowsOf(t, get(t, "", s.up["stripe"]+"/v1/customers?limit=100", "Authorization", "Bearer sk_test_"+apiToken).body, "data", "id")
	const five = 5
	for name, one := range map[string]struct {
		want []string
		dir  string
		args []string
	}{
		"curl": {calls[:five], ".", []string{"sh", "-c", "curl -sS --fail-with-body -u " + account + ":" + apiToken +
			" 'https://api.twilio.com" + base + "/Calls.json?PageSize=5' | grep -o '\"sid\":\"CA[0-9a-f]*\"' | cut -d'\"' -f4"}},
		"npm twilio": {calls[:five], nodeDir, []string{"node", "--input-type=module", "-e", `import twilio from 'twilio';
const client = twilio('` + account + `', '` + apiToken + `');
for (const call of await client.calls.list({ limit: 5 })) console.log(call.sid);`}},
		"PyPI twilio": {calls[:five], pythonDir, []string{pythonProgram, "-c", `from twilio.rest import Client
for call in Client("` + account + `", "` + apiToken + `").calls.list(limit=5):
    print(call.sid)`}},
		"PyGithub": {issues, pythonDir, []string{pythonProgram, "-c", `from github import Auth, Github
for issue in Github(auth=Auth.Token("` + apiToken + `"), per_page=7).get_repo("acme/tracker").get_issues():
    print(issue.number)`}},
		"npm stripe":  {customers[:five], nodeDir, []string{"node", "--input-type=module", "-e", s.lines(t, "js stripe")}},
		"PyPI stripe": {customers, pythonDir, []string{pythonProgram, "-c", s.lines(t, "python stripe")}},
		"octokit":     {issues, nodeDir, []string{"node", "--input-type=module", "-e", s.lines(t, "js octokit")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Fields(string(s.run(t, one.dir, variables, one.args...)))
			if len(got) > len(one.want) { // npm stripe goes on by itself
				got = got[:len(one.want)]
			}
			if !slices.Equal(got, one.want) {
				t.Errorf("%d: %v, want %v", len(got), got, one.want)
			}
		})
	}
	t.Cleanup(func() {
		text, err := os.ReadFile(filepath.Join(s.dir, accessLog))
		if err != nil || !strings.Contains(string(text), "caller=connect") || strings.Contains(string(text), apiToken) {
			t.Errorf("the access log: %v\n%.2000s", err, text)
		}
	})
}

// rowsOf is a field of every record of an answer, as text.
func rowsOf(t *testing.T, body []byte, key, field string) (all []string) {
	t.Helper()
	var rows []map[string]any
	if key != "" {
		var whole map[string]json.RawMessage
		if err := json.Unmarshal(body, &whole); err != nil {
			t.Fatalf("%v: %.300s", err, body)
		}
		body = whole[key]
	}
	if err := json.Unmarshal(body, &rows); err != nil || len(rows) < 5 {
		t.Fatalf("%d rows, %v: %.300s", len(rows), err, body)
	}
	for _, row := range rows {
		all = append(all, fmt.Sprint(row[field]))
	}
	return all
}

// What is answered in a tunnel is what the drop-in answers, but for where URLs lead.
func TestTunnelsAnswerAsDropInsDo(t *testing.T) {
	t.Parallel()
	s := startTunnelled(t, "role: all")
	c := s.client(t)
	for _, one := range []struct{ source, host, user, path string }{
		{"twilio", "api.twilio.com", account + ":" + demoToken, base + "/Calls.json?PageSize=20"},
		{"twilio", "api.twilio.com", account + ":" + demoToken, base + "/Messages.json?PageSize=3"},
		{"twilio", "monitor.twilio.com", account + ":" + demoToken, "/v1/Alerts?PageSize=5"},
		{"twilio", "api.twilio.com", account + ":" + demoToken, base + "/Nothing.json"},
		{"twilio", "api.twilio.com", account + ":wrong", base + "/Calls.json"},
		{"twilio", "api.twilio.com", "", base + "/Calls.json"},
		{"github", "api.github.com", "x:" + programSecret, "/repos/acme/tracker/issues?per_page=7&page=2"},
		{"github", "api.github.com", "x:" + programSecret, "/repos/acme/tracker/issues/3"},
		{"github", "api.github.com", "x:" + programSecret, "/user/repos?per_page=2"},
	} {
		for range 2 { // cold, and held
			here := get(t, one.user, s.URL(one.source)+one.path)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+one.host+one.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if name, secret, ok := strings.Cut(one.user, ":"); ok {
				req.SetBasicAuth(name, secret)
			}
			resp, err := c.Do(req)
			if err != nil {
				t.Fatalf("%s: %v", one.path, err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			want := strings.ReplaceAll(string(here.body), s.URL(one.source), "https://"+one.host)
			if err != nil || resp.StatusCode != here.status || string(body) != want {
				t.Fatalf("%s: %s, %v; the drop-in %d: %s", one.path, resp.Status, err, here.status, firstDifference([]byte(want), body))
			}
			if resp.ProtoMajor != 2 || strings.Contains(string(body), s.URL(one.source)) {
				t.Errorf("%s: HTTP/%d, or it leads to the drop-in", one.path, resp.ProtoMajor)
			}
			for _, name := range []string{"Content-Type", "Link", "Vary", "Cache-Control", "Www-Authenticate", "Content-Security-Policy",
				"X-Content-Type-Options"} {
				if got, want := resp.Header.Get(name), strings.ReplaceAll(here.header.Get(name), s.URL(one.source), "https://"+one.host); got != want {
					t.Errorf("%s: %s is %q, want %q", one.path, name, got, want)
				}
			}
		}
	}
}

// Without a role the source's own credential opens nothing and the answer says what to do.
// At a drop-in port it opens nothing with a role either.
func TestTheSourcesOwnCredential(t *testing.T) {
	t.Parallel()
	s := startTunnelled(t, "")
	asks := func(c *http.Client, method, secret string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "https://api.twilio.com"+base+"/Messages.json", strings.NewReader("To=x"))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(account, secret)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	status, body := asks(s.client(t), http.MethodGet, apiToken)
	if status != 403 || !strings.Contains(body, `"code":20003`) || !strings.Contains(body, "connect: {role: support}") {
		t.Errorf("no role: %d %s", status, body)
	}
	if status, _ := asks(s.client(t), http.MethodGet, demoToken); status != 200 {
		t.Errorf("a credential of ours: %d", status)
	}
	if status, body := asks(s.client(t), http.MethodGet, apiToken[1:]); status != 401 {
		t.Errorf("a wrong one: %d %s", status, body)
	}
	if resp, err := s.client(t).Get("https://api.twilio.com/-/health"); err != nil || resp.StatusCode != 404 {
		t.Errorf("what is our own, at upstream's host: %v, %v", resp, err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	before, _ := s.certificate(t)
	s.Server = s.serve(t, "role: support")
	if after, _ := s.certificate(t); string(after) != string(before) {
		t.Error("another start, another certificate")
	}
	if status, body := asks(s.client(t), http.MethodGet, apiToken); status != 200 || !strings.Contains(body, `"body":null`) {
		t.Errorf("with a role: %d %.300s", status, body)
	}
	if status, body := asks(s.client(t), http.MethodPost, apiToken); status != 403 {
		t.Errorf("a write: %d %s", status, body)
	}
	if r := get(t, account+":"+apiToken, s.URL("twilio")+base+"/Messages.json"); r.status != 401 {
		t.Errorf("at the drop-in port: %d", r.status)
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(s.dir, "data", e.Name()))
		if err == nil && strings.Contains(string(text), apiToken) {
			t.Errorf("%s holds the credential", e.Name())
		}
	}
}

// What connect.allow names passes to upstream, once, and its answer comes back; every other write
// is refused in the upstream's shape, and upstream hears nothing of it.
func TestWritesInTunnels(t *testing.T) {
	t.Parallel()
	s := startTunnelled(t, `role: all, allow: ["POST /2010-04-01/Accounts/*/Messages.json", "POST /repos/*/*/issues"]`)
	c := s.client(t)
	asks := func(method, host, secret, path, contentType, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "https://"+host+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if user, password, ok := strings.Cut(secret, ":"); ok {
			req.SetBasicAuth(user, password)
		} else {
			req.Header.Set("Authorization", "Bearer "+secret)
		}
		req.Header.Set("Content-Type", contentType)
		resp, err := c.Do(req)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(got)
	}
	const form, document = "application/x-www-form-urlencoded", "application/json"
	basic := account + ":" + apiToken
	for name, one := range map[string]struct {
		method, host, secret, path, contentType, body string
		status                                        int
		want                                          string // in the answer
	}{
		"a message": {"POST", "api.twilio.com", basic, base + "/Messages.json", form, "To=%2B15005550001&From=%2B15005550006&Body=by+tunnel",
			201, `"body":"by tunnel"`},
		"an issue":                {"POST", "api.github.com", apiToken, "/repos/acme/tracker/issues", document, `{"title":"by tunnel"}`, 201, `"title":"by tunnel"`},
		"a call":                  {"POST", "api.twilio.com", basic, base + "/Calls.json", form, "To=%2B1&From=%2B1&Url=http://x.example", 403, `"code":20003`},
		"a message of a sub-path": {"POST", "api.twilio.com", basic, base + "/Messages/SM1.json", form, "Body=", 403, `"code":20003`},
		"its end":                 {"DELETE", "api.twilio.com", basic, base + "/Messages.json", form, "", 403, `"code":20003`},
		"a comment": {"POST", "api.github.com", apiToken, "/repos/acme/tracker/issues/1/comments", document, `{"body":"x"}`, 403,
			`"documentation_url"`},
		"a customer":          {"POST", "api.stripe.com", "sk_test_" + apiToken, "/v1/customers", form, "name=x", 403, `{"error":{`},
		"by a wrong secret":   {"POST", "api.twilio.com", basic + "x", base + "/Messages.json", form, "To=x", 401, `"code":20003`},
		"by another's secret": {"POST", "api.twilio.com", account + ":" + demoToken, base + "/Messages.json", form, "To=x", 403, `"code":20003`},
	} {
		if status, body := asks(one.method, one.host, one.secret, one.path, one.contentType, one.body); status != one.status ||
			!strings.Contains(strings.ReplaceAll(body, `": `, `":`), one.want) {
			t.Errorf("%s: %d %.300s; want %d with %s", name, status, body, one.status, one.want)
		}
	}
	// Upstream has the two that passed, and no other; what is read after them shows them.
	for source, list := range map[string]string{"twilio": base + "/Messages.json?PageSize=5", "github": "/repos/acme/tracker/issues?per_page=5"} {
		user, host := basic, "api.twilio.com"
		if source == "github" {
			user, host = "x:"+apiToken, "api.github.com"
		}
		there := get(t, user, s.up[source]+list)
		status, here := asks("GET", host, map[string]string{"twilio": basic, "github": apiToken}[source], list, document, "")
		if n := strings.Count(string(there.body), "by tunnel"); n == 0 || status != 200 || strings.Count(here, "by tunnel") != n {
			t.Errorf("%s: %d of upstream's, here %d: %.300s", source, n, status, here)
		}
	}
	var stats struct {
		Faces map[string]struct{ Tunnels map[string]int64 }
	}
	r := get(t, "", s.URL("viewer")+"/-/stats")
	if err := json.Unmarshal(r.body, &stats); err != nil || stats.Faces["connect"].Tunnels["made"] < 3 || stats.Faces["connect"].Tunnels["open"] < 3 ||
		stats.Faces["viewer"].Tunnels != nil {
		t.Errorf("%v, %v", err, stats.Faces)
	}
}

// Errors that no handler answers say in a tunnel, too, that they are this server's own.
func TestErrorsInTunnelsAreSigned(t *testing.T) {
	s := startTunnelled(t, "")
	pem, _ := s.certificate(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	for head, status := range map[string]int{
		"GET / HTTP/1.1\r\n\r\n":                                                   400,
		"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n":                            421,
		"GET / HTTP/1.1\r\nHost: api.twilio.com\r\nExpect: tea\r\n\r\n":            417,
		"GET / HTTP/1.1\r\nHost: api.twilio.com\r\nTransfer-Encoding: odd\r\n\r\n": 501,
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL("connect"), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(c, "CONNECT api.twilio.com:443 HTTP/1.1\r\nHost: api.twilio.com:443\r\n\r\n")
		if resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		inside := tls.Client(c, &tls.Config{RootCAs: pool, ServerName: "api.twilio.com"})
		_, _ = io.WriteString(inside, head)
		resp, err := http.ReadResponse(bufio.NewReader(inside), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != status || resp.Header.Get("Understudy-Error") == "" {
			t.Errorf("%q is answered %d, %v; want %d", head, resp.StatusCode, resp.Header, status)
		}
	}
}
