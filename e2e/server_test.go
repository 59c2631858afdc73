// Servers: the real binary, built once, started by each test that needs it.

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/internal/sample"
)

// What the demo knows.
const (
	account     = "AC00000000000000000000000000000001"
	demoToken   = "understudydemotoken"
	maskedToken = "understudymaskedtoken"
	apiToken    = "slowapitoken"
	version     = "/2010-04-01"
	base        = version + "/Accounts/" + account
)

// program is the path of the built binary.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	for _, name := range []string{"TWILIO_EDGE", "TWILIO_REGION", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		_ = os.Unsetenv(name) // the SDK would follow them
	}
	os.Exit(buildThenRun(m))
}

func buildThenRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "understudy-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "understudy")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := binary.Build(ctx, "..", program); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return lanes.told(m.Run())
}

// start runs the binary until the test ends; then it must end in order, with
// exit code 0. What it wrote is shown when the test has failed.
func start(t testing.TB, dir string, args ...string) *binary.Server {
	t.Helper()
	on := args[0] == "serve" && withLane(t, dir)
	s, err := binary.Start(program, dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if args[0] == "serve" {
			lanes.count(t, s, on)
		}
		if err := s.Stop(); err != nil {
			t.Errorf("understudy %s: %v", args[0], err)
		}
		if t.Failed() {
			t.Logf("understudy %s wrote:\n%s", strings.Join(args, " "), tail(s.Log(), 6000))
		}
	})
	return s
}

// startDemo runs the demo on free ports.
func startDemo(t testing.TB, args ...string) *binary.Server {
	t.Helper()
	s := start(t, t.TempDir(), binary.Demo(args...)...)
	for _, name := range []string{"viewer", "twilio", "slowapi"} {
		if s.URL(name) == "" {
			t.Fatalf("the demo prints no address of %s; it prints %v\n%s", name, s.Names(), s.Log())
		}
	}
	return s
}

// startAPI runs the simulated API alone.
func startAPI(t testing.TB, args ...string) *binary.Server {
	t.Helper()
	return start(t, t.TempDir(), append([]string{"slowapi", "--listen", "127.0.0.1:0"}, args...)...)
}

// settings are the parts of a settings file that tests differ in.
type settings struct {
	upstream string
	secret   string // of the upstream account; default the simulated API's
	mirror   string // the mirror section, in one line
	polls    string // default: none
	more     string // lines to add to the credentials; their secrets may name the files below
	roles    string // lines to add to the roles
	source   string // settings to add to the source, in one line
	role     string // of people on this machine; default: none
	users    string // the lines of the file of users; default: nobody signs in
	signIn   string // how people sign in, in one line; default: sign_in: none, or users
	search   string // the search section, in one line
	connect  string // the connect section, in one line; default: none
}

// Names of files and folders beside the settings.
const (
	dataFolder = "data"
	accessLog  = "access.log"
)

// startServer runs a server with its own settings: the demo's credentials and
// roles, in front of any upstream, without the demo's budget of upstream requests.
func startServer(t testing.TB, set settings) (s *binary.Server, dir string) {
	t.Helper()
	dir = t.TempDir()
	if set.secret == "" {
		set.secret = apiToken
	}
	if set.mirror == "" {
		set.mirror = "{}"
	}
	if set.polls == "" {
		set.polls = "[]"
	}
	if set.search == "" {
		set.search = "{}"
	}
	if set.signIn == "" {
		set.signIn = "sign_in: none"
		if set.users != "" {
			set.signIn = "sign_in: users"
		}
	}
	if set.connect != "" {
		set.connect = "connect: " + set.connect + "\n"
	}
	files := map[string]string{
		"users": set.users, "oidc.secret": "secret",
		"twilio.token": set.secret, "demo.secret": demoToken, "masked.secret": maskedToken,
		"understudy.yml": fmt.Sprintf(`data: ./%s
viewer: {listen: "127.0.0.1:0", %[12]s, role: %[10]q}
search: %[11]s
sources:
  twilio: {spec: twilio, upstream: %[2]q, user: %[3]s, secret: "file:twilio.token", listen: "127.0.0.1:0", rate: 2000, concurrency: 50, polls: %s%[9]s}
credentials:
  - name: demo
    source: twilio
    user: %[3]s
    secret: "file:demo.secret"
    role: all
    allow: [POST /2010-04-01/Accounts.json, POST /2010-04-01/Accounts/*, POST /2010-04-01/Accounts/*/Messages.json]
  - {name: masked, source: twilio, user: %[3]s, secret: "file:masked.secret", role: support}
%[7]sroles:
  support:
    twilio: {"*": see, phone: last4, body: hide}
%[8]s%[13]smirror: %[5]s
log: {access: %[6]s}
`, dataFolder, set.upstream, account, set.polls, set.mirror, accessLog, set.more, set.roles, comma(set.source), set.role, set.search,
			set.signIn, set.connect),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = start(t, dir, "serve")
	for _, name := range []string{"viewer", "twilio"} {
		if s.URL(name) == "" {
			t.Fatalf("serve prints no address of %s; it prints %v\n%s", name, s.Names(), s.Log())
		}
	}
	return s, dir
}

// comma begins what is added to a flow mapping.
func comma(text string) string {
	if text == "" {
		return ""
	}
	return ", " + text
}

// patience bounds every single thing a test waits for.
const patience = time.Minute

// reply is an answer read to its end.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// plainClient asks without following redirects or asking for compression.
var plainClient = &http.Client{
	Timeout:       patience,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
}

// ask sends one request; user is "name:password" or empty. Headers come in
// pairs of name and value. A page of the viewer is waited for whole, for its
// status; a header Prefer says otherwise.
func ask(method, user, url, body string, headers ...string) (reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if name, password, ok := strings.Cut(user, ":"); ok {
		req.SetBasicAuth(name, password)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if path := req.URL.Path; path == "/" || slices.ContainsFunc([]string{"/twilio/", "/github/", "/search"}, func(part string) bool {
		return strings.HasPrefix(path, part)
	}) {
		req.Header.Set("Prefer", "wait=15")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := plainClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, got}, err
}

// get is ask for GET, when an error ends the test.
func get(t testing.TB, user, url string, headers ...string) reply {
	t.Helper()
	r, err := ask(http.MethodGet, user, url, "", headers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// await repeats a check until it gives "", and fails with what it gave last.
func await(t testing.TB, check func() string) {
	t.Helper()
	awaitFor(t, patience, check)
}

// awaitFor repeats a check as await does, with a patience of its own.
func awaitFor(t testing.TB, patience time.Duration, check func() string) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		why := check()
		if why == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not after %v: %s", patience, why)
		}
	}
}

// control sends one command to the simulated API.
func control(t testing.TB, api, path, body string) {
	t.Helper()
	r, err := ask(http.MethodPost, "", api+path, body)
	if err != nil || r.status != http.StatusOK {
		t.Fatalf("POST %s %s: %d %s %v", path, body, r.status, r.body, err)
	}
}

// apiStats are the simulated API's counters.
type apiStats struct {
	Requests int            `json:"requests"`
	ByTarget map[string]int `json:"by_target"`
}

func statsOf(t testing.TB, api string) (s apiStats) {
	t.Helper()
	if err := json.Unmarshal(get(t, "", api+"/-/stats").body, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// random is a source of chance, by sample.Seed.
func random(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(sample.Seed(t), 0))
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// firstDifference shows where two texts part.
func firstDifference(want, have []byte) string {
	n := 0
	for n < len(want) && n < len(have) && want[n] == have[n] {
		n++
	}
	around := func(b []byte) []byte { return bytes.ToValidUTF8(b[max(0, n-60):min(len(b), n+120)], []byte("?")) }
	return fmt.Sprintf("at byte %d of %d and %d:\nwant …%s…\nhave …%s…", n, len(want), len(have), around(want), around(have))
}

// unpacked is the body as it was before it was compressed.
func (r reply) unpacked() ([]byte, error) {
	switch encoding := r.header.Get("Content-Encoding"); encoding {
	case "":
		return r.body, nil
	case "gzip":
		zr, err := gzip.NewReader(bytes.NewReader(r.body))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(zr)
	default:
		return nil, fmt.Errorf("nobody asked for the encoding %q", encoding)
	}
}
