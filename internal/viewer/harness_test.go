// What the tests share: a viewer over the real gate and callers, with the real
// client asking slowapi behind a mirror that keeps pages and does as it is told.

package viewer

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/slowapi"
	"understudy/internal/viewer/page"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/spectest"
	"understudy/upstream"
)

const account = "AC00000000000000000000000000000001"

// noon is the moment tests happen at: five minutes after the newest record.
var noon = time.Date(2026, 6, 1, 12, 5, 0, 0, time.UTC)

// keeper is a mirror that keeps every page it fetched and answers as scripted.
type keeper struct {
	fetch  func(context.Context, request.Fetch) (*understudy.Page, error)
	mu     sync.Mutex
	pages  map[understudy.Key]*understudy.Page
	asked  []string
	as     []time.Time                                                         // the moments that were asked for
	change func(request.Request, *request.Response) (*request.Response, error) // nil: none
}

// forget drops every page, beside requests that still read some.
func (k *keeper) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.pages)
}

func (k *keeper) Page(ctx context.Context, a request.Request) (*request.Response, error) {
	k.mu.Lock()
	k.asked, k.as = append(k.asked, a.Target.Key.URI), append(k.as, a.AsOf)
	page, change := k.pages[a.Target.Key], k.change
	k.mu.Unlock()
	answer := &request.Response{Page: page, Outcome: request.Warm, Age: 12 * time.Second, Store: 400 * time.Microsecond}
	if page == nil {
		var err error
		page, err = k.fetch(ctx, request.Fetch{Target: a.Target, Reason: request.Waiting, Retry: 8 * time.Second})
		if err != nil {
			return nil, err
		}
		answer = &request.Response{Page: page, Outcome: request.Cold, Upstream: 812 * time.Millisecond}
		k.mu.Lock()
		k.pages[a.Target.Key] = page
		k.mu.Unlock()
	}
	if change != nil {
		return change(a, answer)
	}
	return answer, nil
}

// count is how often the mirror was asked.
func (k *keeper) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.asked)
}

// fixture is a viewer under test.
type fixture struct {
	testing.TB
	viewer *Viewer
	mirror *keeper
	spec   *spec.Spec
	api    http.Handler
}

// testRoles are the policy of the tests.
var testRoles = access.Roles{
	"support": {"twilio": {"*": "see", "phone": "last4", "body": "hide"}},
	"clerk":   {"twilio": {"*": "see", "calls.sid": "hide", "price": "hide", "messages": "hide", "alerts.log_level": "hide"}},
	"counter": {"twilio": {"incoming_phone_numbers": "see"}},
	"analyst": {"twilio": {"*": "see", "phone": "hash", "calls.to": "country", "body": "hash"}},
	"watcher": {"twilio": {"*": "see", "participants": "hide", "alerts": "hide"}},
}

func credential(name, secret, role string) callers.Credential {
	return callers.Credential{Name: name, Source: "twilio", User: account, Secret: understudy.NewSecret(secret),
		Grant: understudy.Grant{Role: role, By: "test"}}
}

// open makes a viewer; set changes its options.
func open(t testing.TB, set ...func(*page.Options)) *fixture {
	t.Helper()
	api, err := slowapi.New(slowapi.Options{Records: 400, Now: func() time.Time { return noon }})
	must(t, err)
	web := httptest.NewServer(api)
	sp := spectest.BuiltIn(t, "twilio")
	src := &spec.Source{Name: "twilio", Spec: sp, User: account, PublicURL: "http://127.0.0.1:4115"}
	client, err := upstream.New(upstream.Options{
		Source: src, Base: web.URL, Secret: understudy.NewSecret("slowapitoken"), Rate: 1000, Now: func() time.Time { return noon },
	})
	must(t, err)
	keep := &keeper{fetch: client.Fetch, pages: map[understudy.Key]*understudy.Page{}}
	gate, err := access.New(map[string]*spec.Spec{"twilio": sp}, testRoles)
	must(t, err)
	book, err := callers.New(callers.Options{
		Sources: []*spec.Source{src}, Now: func() time.Time { return noon },
		Credentials: []callers.Credential{
			credential("everything", "alltoken", understudy.RoleAll), credential("masked", "supporttoken", "support"),
			credential("clerk", "clerktoken", "clerk"), credential("counter", "countertoken", "counter"),
			credential("analyst", "analysttoken", "analyst"),
			credential("watcher", "watchertoken", "watcher"), credential("nobody", "nobodytoken", ""),
		},
	})
	must(t, err)
	o := page.Options{
		Sources: []*spec.Source{src}, Mirror: keep, Gate: gate, Callers: book, Version: "0.1.0",
		Now: func() time.Time { return noon }, Snapshot: snapshot, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, f := range set {
		f(&o)
	}
	v, err := New(o)
	must(t, err)
	t.Cleanup(func() {
		must(t, v.Visitor.Close())
		must(t, client.Close())
		web.Close()
		must(t, api.Close())
	})
	return &fixture{TB: t, viewer: v, mirror: keep, spec: sp, api: api}
}

// snapshot is a source that does well.
func snapshot(context.Context, string) page.Snapshot {
	s := page.Snapshot{
		State: "ok", Since: noon.Add(-3 * time.Hour), DropIn: "http://127.0.0.1:4115",
		Day:     page.Day{Warm: 1204, Stale: 31, Composed: 12, Cold: 57, Upstream: 141},
		Sending: page.Sending{Upstream: 141},
		Kinds: map[string]page.Held{
			"calls": {Records: 5000, CaughtUp: noon.Add(-10 * time.Second)}, "messages": {Records: 10000, CaughtUp: noon.Add(-8 * time.Second)},
			"incoming_phone_numbers": {Records: 8, Complete: true}, "accounts": {Records: 2},
		},
	}
	for i := range 60 {
		s.Latencies.Ours = append(s.Latencies.Ours, time.Duration(350+40*(i*7%11))*time.Microsecond)
		s.Latencies.Theirs = append(s.Latencies.Theirs, time.Duration(860+30*(i*5%13))*time.Millisecond)
	}
	s.Latencies.HeldTimes = page.Times{Answers: 1304, Mean: 800 * time.Microsecond, Deviation: 400 * time.Microsecond,
		Min: 300 * time.Microsecond, Max: 9 * time.Millisecond, P50: 550 * time.Microsecond, P99: 4 * time.Millisecond}
	s.Latencies.TheirTimes = page.Times{Answers: 141, Lost: 2, Mean: 1010 * time.Millisecond, Deviation: 110 * time.Millisecond,
		Min: 860 * time.Millisecond, Max: 1220 * time.Millisecond, P50: 1040 * time.Millisecond, P99: 1210 * time.Millisecond}
	calls := s.Latencies.TheirTimes
	calls.Kind, calls.Reason = "calls", "waiting"
	s.Latencies.Times = []page.Times{calls}
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// as is a request's credential and more of what a test sends with it.
type as struct {
	token   string // "" = none
	zone    string
	headers map[string]string
}

var all = as{token: "alltoken"}

// hurried is all as a browser asks: what is late comes after the page.
var hurried = as{token: "alltoken", headers: map[string]string{"Prefer": ""}}

// get asks for a page and reads it whole, decompressed.
func (h *fixture) get(path string, who as) (status int, body string, head http.Header) {
	h.Helper()
	return h.do("GET", path, "", who)
}

func (h *fixture) do(method, path, form string, who as) (status int, body string, head http.Header) {
	h.Helper()
	return h.send(method, path, form, who)
}

// fuzzed asks as role all and forgets what the mirror held.
func (h *fixture) fuzzed(path string) (status int, body, location string) {
	status, body, head := h.send("GET", path, "", all)
	h.mirror.mu.Lock()
	defer h.mirror.mu.Unlock()
	clear(h.mirror.pages)
	h.mirror.asked = nil
	return status, body, head.Get("Location")
}

func (h *fixture) send(method, path, form string, who as) (status int, body string, head http.Header) {
	r := httptest.NewRequest(method, path, strings.NewReader(form))
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if who.token != "" {
		r.SetBasicAuth(account, who.token)
	}
	if who.zone != "" {
		r.AddCookie(&http.Cookie{Name: page.ZoneCookie, Value: who.zone})
	}
	r.Header.Set("Prefer", "wait=20") // the whole page and its status, however busy the machine is
	for name, value := range who.headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.viewer.ServeHTTP(w, r)
	resp := w.Result()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err) // a recorder's body
	}
	return resp.StatusCode, string(text), resp.Header
}

// page is get for pages that must be there.
func (h *fixture) page(path string, who as) string {
	h.Helper()
	status, body, _ := h.get(path, who)
	if status != http.StatusOK {
		h.Fatalf("GET %s: %d\n%s", path, status, body)
	}
	return body
}

// nothing is an upstream that has no records.
func nothing(_ context.Context, f request.Fetch) (*understudy.Page, error) {
	p := &understudy.Page{Key: f.Target.Key, Kind: f.Target.Kind.Name, Shape: f.Target.Shape(), ID: f.Target.ID, Status: 200,
		ContentType: "application/json", Body: []byte(`{}`)}
	if f.Target.List != nil {
		p.List, p.Body = true, []byte(`{"`+f.Target.List.Key+`":[]}`)
	}
	return p, nil
}
