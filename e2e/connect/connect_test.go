// Connect: programs that nobody has changed are led here by variables of their environment
// alone, and where they follow none, by the lines of their vendors.

package connect

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

const (
	pythonProgram = ".venv/bin/python"
	pythonDir     = "../sdks/python"
	nodeDir       = "../sdks/node"
)

// The page's own variables and lines, and code that nobody has changed. What each prints is
// what it prints of upstream itself, and the access log says who asked.
func TestZeroCode(t *testing.T) {
	t.Parallel()
	s := rig.StartTunnels(t, "role: all")
	variables := s.Lines(t, "env")
	calls := rowsOf(t, rig.Get(t, rig.Account+":"+rig.APIToken, s.Upstreams["twilio"]+rig.Base+"/Calls.json?PageSize=50").Body, "calls", "sid")
	issues := rowsOf(t, rig.Get(t, "x:"+rig.APIToken, s.Upstreams["github"]+"/repos/acme/tracker/issues?per_page=100").Body, "", "number")
	customers := rowsOf(t, rig.Get(t, "", s.Upstreams["stripe"]+"/v1/customers?limit=100", "Authorization", "Bearer sk_test_"+rig.APIToken).Body, "data", "id")
	const five = 5
	for name, one := range map[string]struct {
		want []string
		dir  string
		args []string
	}{
		"curl": {calls[:five], ".", []string{"sh", "-c", "curl -sS --fail-with-body -u " + rig.Account + ":" + rig.APIToken +
			" 'https://api.twilio.com" + rig.Base + "/Calls.json?PageSize=5' | grep -o '\"sid\":\"CA[0-9a-f]*\"' | cut -d'\"' -f4"}},
		"npm twilio": {calls[:five], nodeDir, []string{"node", "--input-type=module", "-e", `import twilio from 'twilio';
const client = twilio('` + rig.Account + `', '` + rig.APIToken + `');
for (const call of await client.calls.list({ limit: 5 })) console.log(call.sid);`}},
		"PyPI twilio": {calls[:five], pythonDir, []string{pythonProgram, "-c", `from twilio.rest import Client
for call in Client("` + rig.Account + `", "` + rig.APIToken + `").calls.list(limit=5):
    print(call.sid)`}},
		"PyGithub": {issues, pythonDir, []string{pythonProgram, "-c", `from github import Auth, Github
for issue in Github(auth=Auth.Token("` + rig.APIToken + `"), per_page=7).get_repo("acme/tracker").get_issues():
    print(issue.number)`}},
		"npm stripe":  {customers[:five], nodeDir, []string{"node", "--input-type=module", "-e", s.Lines(t, "js stripe")}},
		"PyPI stripe": {customers, pythonDir, []string{pythonProgram, "-c", s.Lines(t, "python stripe")}},
		"octokit":     {issues, nodeDir, []string{"node", "--input-type=module", "-e", s.Lines(t, "js octokit")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := strings.Fields(string(s.Run(t, one.dir, variables, one.args...)))
			if len(got) > len(one.want) { // npm stripe goes on by itself
				got = got[:len(one.want)]
			}
			if !slices.Equal(got, one.want) {
				t.Errorf("%d: %v, want %v", len(got), got, one.want)
			}
		})
	}
	t.Cleanup(func() {
		text, err := os.ReadFile(filepath.Join(s.Dir, rig.AccessLog))
		checktest.MustNoError(t, err, "the access log; text %.2000s", text)
		checktest.Contains(t, string(text), "caller=connect", "the access log: string(text)")
		checktest.Lacks(t, string(text), rig.APIToken, "the access log: string(text)")
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
	s := rig.StartTunnels(t, "role: all")
	c := s.Client(t)
	for _, one := range []struct{ source, host, user, path string }{
		{"twilio", "api.twilio.com", rig.Account + ":" + rig.DemoToken, rig.Base + "/Calls.json?PageSize=20"},
		{"twilio", "api.twilio.com", rig.Account + ":" + rig.DemoToken, rig.Base + "/Messages.json?PageSize=3"},
		{"twilio", "monitor.twilio.com", rig.Account + ":" + rig.DemoToken, "/v1/Alerts?PageSize=5"},
		{"twilio", "api.twilio.com", rig.Account + ":" + rig.DemoToken, rig.Base + "/Nothing.json"},
		{"twilio", "api.twilio.com", rig.Account + ":wrong", rig.Base + "/Calls.json"},
		{"twilio", "api.twilio.com", "", rig.Base + "/Calls.json"},
		{"github", "api.github.com", "x:" + rig.ProgramSecret, "/repos/acme/tracker/issues?per_page=7&page=2"},
		{"github", "api.github.com", "x:" + rig.ProgramSecret, "/repos/acme/tracker/issues/3"},
		{"github", "api.github.com", "x:" + rig.ProgramSecret, "/user/repos?per_page=2"},
	} {
		for range 2 { // cold, and held
			here := rig.Get(t, one.user, s.URL(one.source)+one.path)
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
			want := strings.ReplaceAll(string(here.Body), s.URL(one.source), "https://"+one.host)
			checktest.MustNoError(t, err, "%s", one.path)
			checktest.MustEqual(t, resp.StatusCode, here.Status, "%s: resp.StatusCode", one.path)
			checktest.MustEqual(t, string(body), want, "%s: string(body)", one.path)
			if resp.ProtoMajor != 2 || strings.Contains(string(body), s.URL(one.source)) {
				t.Errorf("%s: HTTP/%d, or it leads to the drop-in", one.path, resp.ProtoMajor)
			}
			for _, name := range []string{"Content-Type", "Link", "Vary", "Cache-Control", "Www-Authenticate", "Content-Security-Policy",
				"X-Content-Type-Options"} {
				if got, want := resp.Header.Get(name), strings.ReplaceAll(here.Header.Get(name), s.URL(one.source), "https://"+one.host); got != want {
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
	s := rig.StartTunnels(t, "")
	asks := func(c *http.Client, method, secret string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "https://api.twilio.com"+rig.Base+"/Messages.json", strings.NewReader("To=x"))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(rig.Account, secret)
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
	status, body := asks(s.Client(t), http.MethodGet, rig.APIToken)
	checktest.Equal(t, status, 403, "no role: status; body %s", body)
	checktest.Contains(t, body, `"code":20003`, "no role: body")
	checktest.Contains(t, body, "connect: {role: support}", "no role: body")
	if status, _ := asks(s.Client(t), http.MethodGet, rig.DemoToken); status != 200 {
		t.Errorf("a credential of ours: %d", status)
	}
	if status, body := asks(s.Client(t), http.MethodGet, rig.APIToken[1:]); status != 401 {
		t.Errorf("a wrong one: %d %s", status, body)
	}
	if resp, err := s.Client(t).Get("https://api.twilio.com/-/health"); err != nil || resp.StatusCode != 404 {
		t.Errorf("what is our own, at upstream's host: %v, %v", resp, err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	before, _ := s.Certificate(t)
	s.Server = s.Serve(t, "role: support")
	if after, _ := s.Certificate(t); string(after) != string(before) {
		t.Error("another start, another certificate")
	}
	if status, body := asks(s.Client(t), http.MethodGet, rig.APIToken); status != 200 || !strings.Contains(body, `"body":null`) {
		t.Errorf("with a role: %d %.300s", status, body)
	}
	if status, body := asks(s.Client(t), http.MethodPost, rig.APIToken); status != 403 {
		t.Errorf("a write: %d %s", status, body)
	}
	if r := rig.Get(t, rig.Account+":"+rig.APIToken, s.URL("twilio")+rig.Base+"/Messages.json"); r.Status != 401 {
		t.Errorf("at the drop-in port: %d", r.Status)
	}
	entries, err := os.ReadDir(filepath.Join(s.Dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(s.Dir, "data", e.Name()))
		if err == nil && strings.Contains(string(text), rig.APIToken) {
			t.Errorf("%s holds the credential", e.Name())
		}
	}
}

// What connect.allow names passes to upstream, once, and its answer comes back; every other write
// is refused in the upstream's shape, and upstream hears nothing of it.
func TestWritesInTunnels(t *testing.T) {
	t.Parallel()
	s := rig.StartTunnels(t, `role: all, allow: ["POST /2010-04-01/Accounts/*/Messages.json", "POST /repos/*/*/issues"]`)
	c := s.Client(t)
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
	basic := rig.Account + ":" + rig.APIToken
	for name, one := range map[string]struct {
		method, host, secret, path, contentType, body string
		status                                        int
		want                                          string // in the answer
	}{
		"a message": {"POST", "api.twilio.com", basic, rig.Base + "/Messages.json", form, "To=%2B15005550001&From=%2B15005550006&Body=by+tunnel",
			201, `"body":"by tunnel"`},
		"an issue":                {"POST", "api.github.com", rig.APIToken, "/repos/acme/tracker/issues", document, `{"title":"by tunnel"}`, 201, `"title":"by tunnel"`},
		"a call":                  {"POST", "api.twilio.com", basic, rig.Base + "/Calls.json", form, "To=%2B1&From=%2B1&Url=http://x.example", 403, `"code":20003`},
		"a message of a sub-path": {"POST", "api.twilio.com", basic, rig.Base + "/Messages/SM1.json", form, "Body=", 403, `"code":20003`},
		"its end":                 {"DELETE", "api.twilio.com", basic, rig.Base + "/Messages.json", form, "", 403, `"code":20003`},
		"a comment": {"POST", "api.github.com", rig.APIToken, "/repos/acme/tracker/issues/1/comments", document, `{"body":"x"}`, 403,
			`"documentation_url"`},
		"a customer":          {"POST", "api.stripe.com", "sk_test_" + rig.APIToken, "/v1/customers", form, "name=x", 403, `{"error":{`},
		"by a wrong secret":   {"POST", "api.twilio.com", basic + "x", rig.Base + "/Messages.json", form, "To=x", 401, `"code":20003`},
		"by another's secret": {"POST", "api.twilio.com", rig.Account + ":" + rig.DemoToken, rig.Base + "/Messages.json", form, "To=x", 403, `"code":20003`},
	} {
		if status, body := asks(one.method, one.host, one.secret, one.path, one.contentType, one.body); status != one.status ||
			!strings.Contains(strings.ReplaceAll(body, `": `, `":`), one.want) {
			t.Errorf("%s: %d %.300s; want %d with %s", name, status, body, one.status, one.want)
		}
	}
	// Upstream has the two that passed, and no other; what is read after them shows them.
	for source, list := range map[string]string{"twilio": rig.Base + "/Messages.json?PageSize=5", "github": "/repos/acme/tracker/issues?per_page=5"} {
		user, host := basic, "api.twilio.com"
		if source == "github" {
			user, host = "x:"+rig.APIToken, "api.github.com"
		}
		there := rig.Get(t, user, s.Upstreams[source]+list)
		status, here := asks("GET", host, map[string]string{"twilio": basic, "github": rig.APIToken}[source], list, document, "")
		n := strings.Count(string(there.Body), "by tunnel")
		checktest.True(t, n != 0, "%s: n is 0", source)
		checktest.Equal(t, status, 200, "%s: status", source)
		checktest.Equal(t, strings.Count(here, "by tunnel"), n, `%s: strings.Count(here, "by tunnel")`, source)
	}
	var stats struct {
		Faces map[string]struct{ Tunnels map[string]int64 }
	}
	r := rig.Get(t, "", s.URL("viewer")+"/-/stats")
	{
		err := json.Unmarshal(r.Body, &stats)
		checktest.MustNoError(t, err, "")
		checktest.True(t, stats.Faces["connect"].Tunnels["made"] >= 3,
			`stats.Faces["connect"].Tunnels["made"] is %v, want >= 3`, stats.Faces["connect"].Tunnels["made"])
		checktest.True(t, stats.Faces["connect"].Tunnels["open"] >= 3,
			`stats.Faces["connect"].Tunnels["open"] is %v, want >= 3`, stats.Faces["connect"].Tunnels["open"])
		checktest.True(t, stats.Faces["viewer"].Tunnels == nil, `stats.Faces["viewer"].Tunnels is %v`,
			stats.Faces["viewer"].Tunnels)
	}
}

// Errors that no handler answers say in a tunnel, too, that they are this server's own.
func TestErrorsInTunnelsAreSigned(t *testing.T) {
	s := rig.StartTunnels(t, "")
	pem, _ := s.Certificate(t)
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
		_ = c.SetDeadline(time.Now().Add(rig.Patience))
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
