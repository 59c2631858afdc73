// Markers: the test requests every route of every frontend. No response contains hidden data.

package markers

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"understudy"
	"understudy/e2e/rig"
	"understudy/internal/access"
	"understudy/internal/agents"
	"understudy/internal/diagnostics"
	"understudy/internal/feed/wires"
	"understudy/internal/forecast"
	"understudy/internal/jobs"
	"understudy/internal/proxy"
	"understudy/internal/sample"
	"understudy/internal/store/pgtest"
	"understudy/internal/tables"
	"understudy/internal/viewer"
	"understudy/internal/viewer/page"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// frontend is one frontend: its address and the routes of its table.
type frontend struct {
	name   string
	url    string
	routes []string // "GET /path/{variable}"
}

// try is one request of a route.
type try struct {
	method, path, body string
	headers            []string
}

// facesOf reads the router tables.
func facesOf(t *testing.T, sp *spec.Spec, dropIn, web string) []frontend {
	t.Helper()
	src := &spec.Source{Name: "twilio", Spec: sp, User: rig.Account}
	gate, err := access.New(map[string]*spec.Spec{"twilio": sp}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(proxy.Options{Source: src, Mirror: unused{}, Gate: gate, Callers: unused{}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := viewer.New(page.Options{Sources: []*spec.Source{src}, Mirror: unused{}, Gate: gate, Callers: unused{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Visitor.Close() })
	var control []string
	for _, path := range diagnostics.Routes() {
		control = append(control, "GET "+path)
	}
	control = append(control, wires.Routes()...)
	control = append(control, jobs.Routes()...)
	control = append(control, agents.Routes()...)
	control = append(control, forecast.Routes()...)
	control = append(control, "GET "+tables.Path, "POST "+tables.Path)
	faces := []frontend{{"drop-in", dropIn, p.Routes()}, {"viewer", web, v.Routes()}, {"control", web, control}}
	for _, f := range faces {
		if len(f.routes) < 2 {
			t.Fatalf("the table of %s has only %v", f.name, f.routes)
		}
	}
	return faces
}

// unused is a stub that the constructor of a frontend needs. No request reaches it.
type unused struct{}

func (unused) Answer(context.Context, request.Request) (*request.Response, error) {
	return nil, understudy.ErrNotFound
}

func (unused) Write(context.Context, request.Write) (*request.Response, error) {
	return nil, understudy.ErrNotFound
}

func (unused) Identify(*http.Request, string) (understudy.Caller, error) {
	return understudy.Caller{}, understudy.ErrUnauthorized
}

func (unused) Rate(understudy.Caller) (understudy.Rate, bool) { return understudy.Rate{}, false }

func (unused) IdentifyPerson(*http.Request) (understudy.Caller, error) {
	return understudy.Caller{}, understudy.ErrUnauthorized
}

// look sends every request with one credential. A marker that the role must not
// see is reported with the request that returned it. A role that may see nothing
// is a stranger: look sends it only a part of the requests of each route.
func (g *garden) look(t *testing.T, faces []frontend, user string, may func(fate) bool) sight {
	t.Helper()
	s := sight{map[string]marker{}, map[string]string{}, map[string]int{}, map[string]int{}, map[string]bool{}, map[string]string{}}
	failures, stranger := 0, !may(plain)
	check := func(f frontend, one try) {
		r, err := rig.Ask(one.method, user, f.url+one.path, one.body, one.headers...)
		if err != nil {
			t.Fatalf("%s %s%s: %v", one.method, f.name, one.path, err)
		}
		body, err := r.Decode()
		if err != nil {
			t.Fatalf("%s %s%s: %v", one.method, f.name, one.path, err)
		}
		s.count[fmt.Sprint(f.name, " ", r.Status)]++
		if r.Status == http.StatusInternalServerError {
			t.Errorf("%s %s%s %q answers 500", one.method, f.name, one.path, one.headers)
		}
		if r.Status < 300 {
			s.good[f.name+" "+one.path] = true
		}
		var sent bytes.Buffer
		_ = r.Header.Write(&sent)
		for _, odd := range oddHeaders(r.Header, one.path) {
			t.Errorf("%s %s%s answers %d with %s", one.method, f.name, one.path, r.Status, odd)
		}
		sent.WriteString("\r\n")
		sent.Write(body)
		for text, m := range g.found(sent.Bytes()) {
			s.seen[text] = m
			if !may(m.fate) {
				if failures++; failures < 20 {
					t.Errorf("%s %s%s %q answers %d and shows %s, %s", one.method, f.name, one.path, one.headers, r.Status, text, m.place)
				}
			}
		}
		if cookie, _, ok := strings.Cut(r.Header.Get("Set-Cookie"), ";"); ok {
			for _, link := range mediaLink.FindAllString(string(body), -1) {
				s.media[link] = cookie
			}
		}
		if tag := r.Header.Get("ETag"); tag != "" && one.method == "GET" && r.Status == 200 {
			s.tags[f.name+one.path+r.Header.Get("Content-Encoding")] = tag
		}
	}
	for _, f := range faces {
		for _, route := range f.routes {
			for i, one := range g.triesOf(route) {
				if i > 0 && (stranger && !g.some(8, one.path) || f.name == "viewer" && !g.some(4, fmt.Sprint(one)) ||
					g.sparse && !g.some(200, fmt.Sprint(one))) {
					continue
				}
				check(f, one)
				s.done[f.name+" "+route]++
			}
		}
		for _, one := range beside(f) {
			check(f, one)
		}
	}
	for link, cookie := range s.media {
		check(faces[1], try{"GET", link, "", []string{"Cookie", cookie}})
	}
	return s
}

// want fails for each marker of a fate that was not seen: then the test looks
// in the wrong places. Few requests find only some markers.
func (g *garden) want(t *testing.T, who string, s sight, f fate) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	missing := map[string]int{}
	total := 0
	for text, m := range g.markers {
		if m.fate != f || m.aside {
			continue
		}
		total++
		if _, ok := s.seen[text]; !ok {
			missing[m.place]++
		}
	}
	if len(missing) > 0 && !g.sparse || total < 20 {
		places := slices.Sorted(maps.Keys(missing))
		t.Errorf("%s should see all %d markers of fate %q; of %d places some are missing: %v", who, total, f, len(places), places[:min(len(places), 20)])
	}
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	lookEverywhere(t, "", false)
}

// databases are the PostgreSQL databases of tests.
var databases pgtest.Pool

// With PostgreSQL, `make test` makes few requests.
func TestMarkersOnPostgreSQL(t *testing.T) {
	t.Parallel()
	lookEverywhere(t, fmt.Sprintf("store: {dsn: %q}\n", databases.Database(t)), !sample.IsFullRun())
}

// lookEverywhere asks every route as every role. store is a section of the settings.
func lookEverywhere(t *testing.T, store string, sparse bool) {
	t.Helper()
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	g, up := plant(t, sp)
	g.sparse = sparse
	sockets := rig.FreeAddress(t)
	house, dir := rig.StartServer(t, rig.Settings{
		Store: store, Upstream: up, Secret: g.secret, Mirror: "{newest: 10m, older: 10m}\ntracing: {slow: 1us}\npush: {contact: \"mailto:desk@example.com\"}" +
			"\nfeed: {zmq: " + sockets + "}",
		More: `  - {name: writer, source: twilio, user: writer, secret: "file:masked.secret", role: support, allow: ["POST /2010-04-01/Accounts/*/*"]}
  - {name: desk, source: twilio, user: desk, secret: "file:masked.secret", role: desk}
  - {name: finder, source: twilio, user: finder, secret: "file:masked.secret", role: finder}
  - {name: analyst, source: twilio, user: analyst, secret: "file:masked.secret", role: analyst}
`,
		Users: withOwner(t, "anna:$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$JJhdaFq/VKzB9hbCbHxEGgMRBoU3jedyWQlY9bBN00w:support\n"),
		Roles: `  finder: {twilio: {"*": see, phone: last4, body: hide, do: [lookup]}}
  desk: {twilio: {"*": see, price: hide, body: hide}}
  analyst: {twilio: {"*": see, phone: hash, calls.to: country, body: hash}}
`,
		Connect: `{listen: "127.0.0.1:0", role: support}`,
	})
	faces := facesOf(t, sp, house.URL("twilio"), house.URL("viewer"))
	faces = append(faces, frontend{"tunnel", rig.Relay(t, &rig.Tunnels{Server: house, Dir: dir}, "api.twilio.com"),
		slices.DeleteFunc(slices.Clone(faces[0].routes), func(route string) bool { return strings.Contains(route, "/-/") })})
	support, desk, all := rig.Account+":"+rig.MaskedToken, "desk:"+rig.MaskedToken, rig.Account+":"+rig.DemoToken
	supportMay := func(f fate) bool { return f == plain || f == prices }
	deskMay := func(f fate) bool { return f == plain || f == phones }
	may := func(f fate) bool { return f != nobodies }

	g.plantNotes(t, faces[1].url)
	first := g.look(t, faces, support, supportMay)
	g.want(t, "support", first, plain)
	g.want(t, "support", first, prices)
	run := sample.OneIn(t, 12)
	if run() {
		g.want(t, "desk", g.look(t, faces, desk, deskMay), phones)
	}
	if run() { // hashes and countries
		g.want(t, "analyst", g.look(t, faces, "analyst:"+rig.MaskedToken, supportMay), prices)
	}
	g.want(t, "upstream's own credential in a tunnel", g.look(t, faces[3:], rig.Account+":"+g.secret, supportMay), prices)
	positive := g.look(t, faces, all, may)
	t.Logf("support: %v", first.count)
	t.Logf("all: %v", positive.count)
	if run() { // everything is held now, as others read it
		g.want(t, "support, second time,", g.look(t, faces, support, supportMay), plain)
	}

	// The same look as role all finds what others must not see: the test can fail.
	g.mu.Lock()
	planted, found := 0, 0
	for text, m := range g.markers {
		// Errors are repeated in upstream's words to all, but not on every page.
		if m.fate != nobodies && !m.aside && !strings.HasPrefix(m.place, "error ") {
			planted++
			if _, ok := positive.seen[text]; ok {
				found++
			} else if planted-found < 10 && !sparse {
				t.Errorf("role all never sees %s, %s", text, m.place)
			}
		}
	}
	g.mu.Unlock()
	if found < 500 || found != planted && !sparse {
		t.Errorf("role all sees %d of %d markers", found, planted)
	}

	checkRoutes(t, sp, faces, first, positive)
	for path, tag := range first.tags {
		if positive.tags[path] == tag && strings.HasPrefix(path, "drop-in") {
			t.Errorf("%s has one ETag for both roles: it tells of what is hidden", path)
		}
	}
	g.checkLookups(t, faces[1].url, supportMay)
	g.checkWrites(t, faces[0].url, supportMay)
	g.checkMetrics(t, faces[1].url)
	g.checkZeroMQ(t, sockets, supportMay)
	g.checkStrangers(t, faces) // after whose wrong secrets the right one has to wait, too
	g.checkOutages(t, faces, may, supportMay)
	g.checkLogs(t, house.Log(), dir)
	g.checkReport(t, dir)
}

// checkReport makes sure that a bug report has no value of a record, and no secret.
func (g *garden) checkReport(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.zip")
	cmd := exec.CommandContext(t.Context(), rig.Program, "bugreport", path)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("bugreport: %v\n%s", err, out)
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	secrets := []string{g.secret, rig.APIToken, rig.DemoToken, rig.MaskedToken, rig.CommandToken(t, dir)}
	names := map[string]bool{}
	for _, f := range z.File {
		names[f.Name] = true
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		var r io.Reader = in
		if strings.HasSuffix(f.Name, ".gz") {
			if r, err = gzip.NewReader(in); err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		for text, m := range g.found(bytes.ReplaceAll(data, []byte(g.url), nil)) { // only operators see the address of upstream
			t.Errorf("%s of the bug report shows %s, %s", f.Name, text, m.place)
		}
		names[strings.TrimLeft(filepath.Ext(f.Name), ".")] = true
		if strings.HasSuffix(f.Name, ".json") && !json.Valid(data) {
			t.Errorf("%s of the bug report is not JSON", f.Name)
		}
		for i, secret := range secrets {
			if secret != "" && bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s of the bug report shows the secret %d", f.Name, i)
			}
		}
	}
	for _, name := range []string{"README.txt", "versions.txt", "doctor.json", "settings.txt", "health.json", "stats.json", "locks.json", "gz"} {
		if !names[name] {
			t.Errorf("the bug report lacks %s: %v", name, names)
		}
	}
}

// checkRoutes makes sure that every route of every table was asked, and that
// the tables hold what the spec names.
func checkRoutes(t *testing.T, sp *spec.Spec, faces []frontend, sights ...sight) {
	t.Helper()
	table := map[string]bool{}
	for _, f := range faces {
		for _, route := range f.routes {
			table[f.name+" "+route] = true
			for _, s := range sights {
				if s.done[f.name+" "+route] == 0 {
					t.Errorf("the route %q of %s was not asked: teach triesOf how", route, f.name)
				}
			}
		}
	}
	for _, k := range sp.Kinds {
		for _, l := range k.Lists {
			if !table["drop-in GET "+l.Path] {
				t.Errorf("the drop-in's table lacks %s: %v", l.Path, faces[0].routes)
			}
		}
	}
	for _, s := range sights {
		for route := range s.done {
			if !table[route] {
				t.Errorf("%q was asked but is in no table", route)
			}
		}
	}
}

// checkWrites checks what the response to a write shows to a role that may write
// and not see.
func (g *garden) checkWrites(t *testing.T, dropIn string, may func(fate) bool) {
	t.Helper()
	for _, path := range []string{rig.Base + "/Messages.json", rig.Base + "/Calls.json", rig.Base + "/IncomingPhoneNumbers.json"} {
		r, err := rig.Ask("POST", "writer:"+rig.MaskedToken, dropIn+path, "To=1&From=2")
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != 201 {
			t.Errorf("POST %s: %d %s, want 201", path, r.Status, r.Body)
		}
		var sent bytes.Buffer
		_ = r.Header.Write(&sent)
		sent.Write(r.Body)
		shown := 0
		for text, m := range g.found(sent.Bytes()) {
			if shown++; !may(m.fate) {
				t.Errorf("POST %s shows %s, %s", path, text, m.place)
			}
		}
		if shown == 0 {
			t.Errorf("POST %s shows nothing at all: %s", path, r.Body)
		}
	}
}

// checkOutages looks at the answers when upstream has none that is usable.
func (g *garden) checkOutages(t *testing.T, faces []frontend, may, mayNot func(fate) bool) {
	t.Helper()
	var wg sync.WaitGroup
	for i, k := range g.spec.Kinds {
		if len(k.ID) == 0 || len(k.Instances) == 0 {
			continue
		}
		// Each kind has its own trouble, in turn, so that all of them are met early.
		for n := range outages {
			if n > 0 && !g.some(4, fmt.Sprint(k.Name, n)) {
				continue
			}
			id := g.troubleID(k, outages[(i+n)%len(outages)])
			for _, look := range []struct {
				user string
				may  func(fate) bool
			}{{rig.Account + ":" + rig.MaskedToken, mayNot}, {rig.Account + ":" + rig.DemoToken, may}} {
				for _, url := range []string{
					faces[0].url + g.fill(k.Instances[0].Path, k.Instances[0].ID, id),
					faces[1].url + "/twilio/" + k.Name + "/" + id,
					faces[1].url + "/twilio/" + k.Name + "/" + id + ".json",
				} {
					wg.Go(func() {
						r, err := rig.Ask("GET", look.user, url, "", "Prefer", "wait=1")
						if err != nil {
							t.Errorf("%s: %v", url, err)
							return
						}
						// A page that waits has the status 200, also when what comes is an outage.
						if page := strings.HasPrefix(r.Header.Get("Content-Type"), "text/html"); r.Status == 200 && !page {
							t.Errorf("%s answers 200: %s", url, rig.Tail(string(r.Body), 300))
						}
						var sent bytes.Buffer
						_ = r.Header.Write(&sent)
						sent.Write(r.Body)
						for text, m := range g.found(sent.Bytes()) {
							if !look.may(m.fate) {
								t.Errorf("%s answers %d and shows %s, %s", url, r.Status, text, m.place)
							}
						}
					})
				}
			}
		}
	}
	wg.Wait()
}

// checkStrangers asks without a credential and with a wrong one.
func (g *garden) checkStrangers(t *testing.T, faces []frontend) {
	t.Helper()
	rig.Await(t, func() string { // what others asked for behind their answers is not the strangers'
		var stats struct {
			Sources map[string]struct {
				Limits map[string]struct{ Now int64 }
			}
		}
		r := rig.Get(t, rig.Account+":"+rig.DemoToken, faces[1].url+"/-/stats")
		if err := json.Unmarshal(r.Body, &stats); err != nil || len(stats.Sources["twilio"].Limits) == 0 {
			return fmt.Sprintf("%d %v %.300s", r.Status, err, r.Body)
		}
		for _, name := range []string{"queue", "upstream", "writes"} {
			if n := stats.Sources["twilio"].Limits[name].Now; n > 0 {
				return fmt.Sprintf("%d requests of %s are under way", n, name)
			}
		}
		return ""
	})
	before := g.asks()
	for _, user := range []string{"", rig.Account + ":wrong", "writer:" + rig.DemoToken} {
		s := g.look(t, faces, user, func(fate) bool { return false })
		for _, open := range []string{"drop-in /-/health", "drop-in /-/ready", "control /-/health", "control /-/ready", "viewer /-/timezone", "viewer /-/sign-in",
			"viewer /opensearch.xml"} {
			delete(s.good, open)
		}
		if len(s.good) > 0 {
			t.Errorf("a stranger %q may read %v", user, slices.Sorted(maps.Keys(s.good)))
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// The server itself samples the balance now and then.
	if cost := slices.DeleteFunc(slices.Clone(g.asked[before:]), func(asked string) bool { return strings.HasSuffix(asked, "/Balance.json") }); len(cost) > 0 {
		t.Errorf("strangers cost %d upstream requests: %v", len(cost), cost)
	}
}

// checkZeroMQ looks at what sockets of ZeroMQ receive.
func (g *garden) checkZeroMQ(t *testing.T, address string, may func(fate) bool) {
	t.Helper()
	sent := rig.AskZeroMQ(t, address, rig.Account, rig.MaskedToken, "30000")
	for _, part := range []string{"200\n", `"kind":`, `{"type":"start"`} {
		if !bytes.Contains(sent, []byte(part)) {
			t.Errorf("ZeroMQ sends no %s: %.300s", part, sent)
		}
	}
	for text, m := range g.found(sent) {
		if !may(m.fate) {
			t.Errorf("ZeroMQ shows %s, %s", text, m.place)
		}
	}
	for user, secret := range map[string]string{"": "", rig.Account: "wrong", "writer": rig.DemoToken} {
		if sent := rig.AskZeroMQ(t, address, user, secret, "2000"); len(sent) > 0 {
			t.Errorf("ZeroMQ sends a stranger %q %.300s", user, sent)
		}
	}
}

// checkMetrics makes sure that the metrics show no value of a record, to whoever may read them.
func (g *garden) checkMetrics(t *testing.T, web string) {
	t.Helper()
	r := rig.Get(t, rig.Account+":"+rig.DemoToken, web+"/-/metrics")
	if n := bytes.Count(r.Body, []byte("\nunderstudy_")); r.Status != 200 || n < 300 || n > 10_000 {
		t.Errorf("the metrics: %d with %d series %.200s", r.Status, n, r.Body)
	}
	for text, m := range g.found(r.Body) {
		t.Errorf("the metrics show %s, %s", text, m.place)
	}
	for _, secret := range []string{rig.Account, rig.DemoToken, rig.MaskedToken, g.secret} {
		if bytes.Contains(r.Body, []byte(secret)) {
			t.Errorf("the metrics show %s", secret)
		}
	}
}

// checkLogs looks for what is in no log's business.
func (g *garden) checkLogs(t *testing.T, log, dir string) {
	t.Helper()
	lines, err := os.ReadFile(filepath.Join(dir, rig.AccessLog))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(lines, []byte("\n")) < 100 {
		t.Errorf("the access log has only %d lines", bytes.Count(lines, []byte("\n")))
	}
	for text, m := range g.found(append(lines, log...)) {
		t.Errorf("a log shows %s, %s", text, m.place)
	}
	chains, err := filepath.Glob(filepath.Join(dir, "data", "audit", "*", "*.wal"))
	if err != nil || len(chains) == 0 {
		t.Fatalf("the audit log has %d files: %v", len(chains), err)
	}
	for _, path := range chains {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(data, []byte(`"action":"record"`)) || !bytes.Contains(data, []byte(`"values":["`)) {
			t.Errorf("%s holds no look at a record, or no hash", path)
		}
		for text, m := range g.found(data) {
			t.Errorf("the audit log shows %s, %s", text, m.place)
		}
	}
}
