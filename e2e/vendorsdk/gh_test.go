// GitHub's command gh, through the proxy and directly.

package vendorsdk

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
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
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/certificate"
	"understudy/internal/datadir"
)

const gitHubHost = "api.github.com"

// atGitHub answers as a simulated API does at GitHub's own host.
func atGitHub(t *testing.T, up string) http.Handler {
	t.Helper()
	to, err := url.Parse(up)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		ErrorLog: log.New(io.Discard, "", 0),
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Header.Set("Accept-Encoding", "identity") },
		ModifyResponse: func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			body = bytes.ReplaceAll(body, []byte(up), []byte("https://"+gitHubHost))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", fmt.Sprint(len(body)))
			r.Header.Set("Link", strings.ReplaceAll(r.Header.Get("Link"), up, "https://"+gitHubHost))
			return nil
		},
	}
}

// gh runs GitHub's command through a proxy and returns all that it prints.
func gh(t *testing.T, proxy, certificate, input string, args ...string) string {
	t.Helper()
	return runGH(t, input, args, "HTTPS_PROXY="+proxy, "SSL_CERT_FILE="+certificate, "GH_TOKEN="+rig.APIToken)
}

// runGH runs GitHub's command with more variables. It returns all that the command prints, and its exit code.
func runGH(t *testing.T, input string, args []string, variables ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "gh", args...)
	cmd.Env = append(rig.WithoutProxies(os.Environ()), "GH_CONFIG_DIR="+t.TempDir(), "GH_NO_UPDATE_NOTIFIER=1", "TZ=Europe/Berlin")
	cmd.Env = append(cmd.Env, variables...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("gh: %v (is Debian's package gh installed? `make setup`)", err)
	}
	return fmt.Sprintf("%sends with %d", out, cmd.ProcessState.ExitCode())
}

// Each command prints what it prints of upstream itself: cold, warm, and where upstream
// refuses.
func TestGhPrintsWhatItPrintsDirectly(t *testing.T) {
	t.Parallel()
	s := rig.StartTunnels(t, `role: all, allow: ["POST /graphql"]`, "--arrivals", "0")
	direct, directCA := tunnelTo(t, gitHubHost, atGitHub(t, s.Upstreams["github"]))
	_, ca := s.Certificate(t)
	through := s.URL("connect")
	for command, want := range map[string]string{
		"auth status": "Logged in to github.com as robin",
		"api --paginate repos/acme/tracker/issues?state=all&per_page=7": `"number":1,`,
		"api user":                                 `"login":"robin"`,
		"repo view acme/tracker":                   "Where work is tracked",
		"repo view acme/nothing":                   "Could not resolve",
		"issue list -R acme/tracker":               "OPEN",
		"issue list -R acme/tracker -s all -L 120": "CLOSED",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			directly := gh(t, direct, directCA, "", strings.Fields(command)...)
			if !strings.Contains(directly, want) {
				t.Fatalf("directly: %.600s", directly)
			}
			for _, state := range []string{"cold", "warm"} {
				if got := gh(t, through, ca, "", strings.Fields(command)...); got != directly {
					t.Errorf("%s: %.600s\ndirectly: %.600s", state, got, directly)
				}
			}
		})
	}
}

// ghAt runs GitHub's command for a server of one's own. It returns all that the command prints, with HOST for the server and TOKEN for the
// token.
func ghAt(t *testing.T, server, certificate, token string, args ...string) string {
	t.Helper()
	host := strings.TrimPrefix(server, "https://")
	printed := runGH(t, "", args, "GH_HOST="+host, "GH_ENTERPRISE_TOKEN="+token, "SSL_CERT_FILE="+certificate)
	return strings.NewReplacer(host, "HOST", strings.Repeat("*", len(token)), "TOKEN").Replace(printed)
}

// With GH_HOST, gh asks a drop-in port as it asks a GitHub Enterprise Server: by TLS, below /api.
func TestGhPrintsTheSameAtADropInPort(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--shape", "github", "--records", "60", "--latency", "1ms", "--arrivals", "0").URL("slowapi")
	dir := t.TempDir()
	for name, text := range map[string]string{"token": rig.APIToken, "program": rig.ProgramSecret, "understudy.yml": fmt.Sprintf(`data: ./data
tls: self
viewer: {listen: "127.0.0.1:0", sign_in: none, role: all}
sources:
  github: {spec: github, upstream: %q, user: robin, secret: "file:token", listen: "127.0.0.1:0", rate: 2000}
credentials:
  - {name: program, source: github, secret: "file:program", role: all, allow: ["POST /graphql"]}
`, up)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	house := rig.Start(t, dir, "serve")
	command := exec.CommandContext(t.Context(), rig.Program, "cert")
	command.Dir = dir
	own, err := command.Output()
	if err != nil {
		t.Fatalf("understudy cert: %v", err)
	}
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, own, 0o600); err != nil {
		t.Fatal(err)
	}
	direct, directCA := enterprise(t, up)
	for command, want := range map[string]string{
		"auth status": "Logged in to HOST as robin",
		"api --paginate repos/acme/tracker/issues?state=all&per_page=7": `"number":1,`,
		"api user":                                 `"login":"robin"`,
		"repo view acme/tracker":                   "Where work is tracked",
		"repo view acme/nothing":                   "Could not resolve",
		"issue list -R acme/tracker":               "OPEN",
		"issue list -R acme/tracker -s all -L 120": "CLOSED",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			directly := ghAt(t, direct, directCA, rig.APIToken, strings.Fields(command)...)
			if !strings.Contains(directly, want) {
				t.Fatalf("directly: %.600s", directly)
			}
			for _, state := range []string{"cold", "warm"} {
				if got := ghAt(t, house.URL("github"), ca, rig.ProgramSecret, strings.Fields(command)...); got != directly {
					t.Errorf("%s: %.600s\ndirectly: %.600s", state, got, directly)
				}
			}
		})
	}
}

// enterprise is a simulated API at the paths of a GitHub Enterprise Server. It returns its address and the file of its certificate.
func enterprise(t *testing.T, up string) (address, certificate string) {
	t.Helper()
	to, err := url.Parse(up)
	if err != nil {
		t.Fatal(err)
	}
	var s *httptest.Server
	s = httptest.NewTLSServer(&httputil.ReverseProxy{
		ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.URL.Path = strings.TrimPrefix(strings.TrimPrefix(r.In.URL.Path, "/api/v3"), "/api")
			r.Out.Header.Set("Accept-Encoding", "identity")
		},
		ModifyResponse: func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			body = bytes.ReplaceAll(body, []byte(up), []byte(s.URL))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", fmt.Sprint(len(body)))
			r.Header.Set("Link", strings.ReplaceAll(r.Header.Get("Link"), up, s.URL+"/api/v3"))
			return nil
		},
	})
	t.Cleanup(s.Close)
	certificate = filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(certificate, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL, certificate
}

// What a mutation makes is in the next answer of a list that was held, whatever the client
// calls the operation. Who may not write is told so, and upstream hears nothing of it.
func TestGraphQLMutationsOfGitHubAreWrites(t *testing.T) {
	t.Parallel()
	s := rig.StartTunnels(t, `role: all, allow: ["POST /graphql"]`, "--arrivals", "0")
	list := func() string {
		return string(rig.Get(t, "x:"+rig.ProgramSecret, s.URL("github")+"/repos/acme/tracker/issues?per_page=3").Body)
	}
	var repo struct {
		ID string `json:"node_id"`
	}
	if err := json.Unmarshal(rig.Get(t, "x:"+rig.ProgramSecret, s.URL("github")+"/repos/acme/tracker").Body, &repo); err != nil {
		t.Fatal(err)
	}
	mutation := func(title string) string {
		return `{"query":"mutation M($input: CreateIssueInput!) { x: createIssue(input: $input) { issue { id } } }",` +
			`"variables":{"input":{"repositoryId":"` + repo.ID + `","title":"` + title + `"}}}`
	}
	if before := list(); list() != before || strings.Contains(before, "by mutation") {
		t.Fatalf("before: %s", before)
	}
	_, ca := s.Certificate(t)
	out := gh(t, s.URL("connect"), ca, mutation("by mutation"), "api", "graphql", "--input", "-")
	if !strings.Contains(out, `"createIssue"`) {
		t.Fatalf("gh prints %s", out)
	}
	if after := list(); !strings.Contains(after, "by mutation") {
		t.Errorf("after a mutation: %s", after)
	}
	post := func(body string) rig.Reply {
		r, err := rig.Ask(http.MethodPost, "x:"+rig.ProgramSecret, s.URL("github")+"/graphql", body, "Content-Type", "application/json")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := post(mutation("refused")); r.Status != http.StatusForbidden || !strings.Contains(string(r.Body), "allow list") {
		t.Errorf("a mutation without permission: %d %s", r.Status, r.Body)
	}
	if strings.Contains(string(rig.Get(t, "x:"+rig.APIToken, s.Upstreams["github"]+"/repos/acme/tracker/issues?per_page=3").Body), "refused") {
		t.Error("upstream has the issue of a mutation that was refused")
	}
	r := post(`{"query":"{ viewer { login } }"}`)
	if r.Status != http.StatusOK || string(r.Body) != `{"data":{"viewer":{"login":"robin"}}}` {
		t.Errorf("a query: %d %s", r.Status, r.Body)
	}
	if how := r.Header.Get("Cache-Status"); !strings.Contains(how, "only GraphQL queries that the spec names are stored") {
		t.Errorf("the answer to a query has the Cache-Status %q", how)
	}
}

// tunnelTo starts a proxy with one host behind it, which a handler answers: what a program
// finds there is upstream itself. It returns the proxy's address and the file with the
// certificate that is to be trusted.
func tunnelTo(t *testing.T, host string, h http.Handler) (proxy, trusted string) {
	t.Helper()
	authority, _, err := certificate.OpenAuthority(filepath.Join(t.TempDir(), datadir.AuthorityFile), []string{host}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	own, err := authority.IssueCertificate(host)
	if err != nil {
		t.Fatal(err)
	}
	far := httptest.NewUnstartedServer(h)
	far.TLS = &tls.Config{Certificates: []tls.Certificate{*own}}
	far.StartTLS()
	t.Cleanup(far.Close)
	near := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != host+":443" {
			http.Error(w, "no such host", http.StatusForbidden)
			return
		}
		to, err := net.Dial("tcp", far.Listener.Addr().String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer to.Close()
		from, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer from.Close()
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		var both sync.WaitGroup
		both.Go(func() { _, _ = io.Copy(to, from); _ = to.(*net.TCPConn).CloseWrite() })
		_, _ = io.Copy(from, to)
		_ = from.(*net.TCPConn).CloseWrite()
		both.Wait()
	}))
	t.Cleanup(near.Close)
	return near.URL, authority.Path()
}
