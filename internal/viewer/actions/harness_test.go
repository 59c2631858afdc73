// What the tests share: the viewer over the real mirror, store, gate and client, before slowapi.

package actions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/actions"
	"understudy/internal/callers"
	"understudy/internal/signin"
	"understudy/internal/slowapi"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/internal/viewer"
	"understudy/internal/viewer/page"
	"understudy/mirror"
	"understudy/spec"
	"understudy/spec/spectest"
	"understudy/upstream"
)

const account = "AC00000000000000000000000000000001"

const root = "/2010-04-01/Accounts/" + account

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// auditor keeps what it is told, and fails when it is told to.
type auditor struct {
	mu   sync.Mutex
	all  []understudy.AuditEntry
	fail error
}

func (a *auditor) Audit(_ context.Context, e understudy.AuditEntry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fail != nil {
		return a.fail
	}
	a.all = append(a.all, e)
	return nil
}

// fixture is a viewer with all below it.
type fixture struct {
	testing.TB
	viewer  http.Handler
	api     http.Handler
	db      *store.DB
	audit   *auditor
	actions *actions.Runner
	mu      sync.Mutex
	writes  []string // that upstream had: method and path
	// answer, when set, answers a write in upstream's place; it may call next.
	answer func(w http.ResponseWriter, r *http.Request, next http.Handler)
}

// The roles of the tests, and what their people may do.
var (
	roles = access.Roles{
		"support": {"twilio": {"*": "see", "phone": "last4", "body": "hide"}},
		"sender":  {"twilio": {"*": "see"}},
		"reader":  {"twilio": {"*": "see"}},
		"few":     {"twilio": {"*": "see"}},
		"keeper":  {"twilio": {"*": "see"}},
	}
	does = access.Doings{
		"support": {"twilio": {"messages.redact"}},
		"sender":  {"twilio": {"messages.send", "calls.cancel", "note"}},
		"few":     {"twilio": {"messages.delete", "messages.send", "erase", "note"}},
		"keeper":  {"twilio": {"sync", "purge", "erase"}},
	}
	rows = map[string]map[string]access.RowRules{"few": {"twilio": {
		"messages": {Where: map[string]access.Match{"status": {In: []string{"failed"}}}},
	}}}
)

// open makes a fixture; set changes the viewer's options, runner those of actions.
func open(t testing.TB, runner func(*actions.Options)) *fixture {
	t.Helper()
	api, err := slowapi.New(slowapi.Options{Records: 400})
	must(t, err)
	h := &fixture{TB: t, api: api, audit: &auditor{}}
	web := httptest.NewServer(http.HandlerFunc(h.upstream))
	sp := spectest.BuiltIn(t, "twilio")
	src := &spec.Source{Name: "twilio", Spec: sp, User: account}
	specs := map[string]*spec.Spec{"twilio": sp}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	client, err := upstream.New(upstream.Options{Source: src, Base: web.URL, Secret: understudy.NewSecret("slowapitoken"), Rate: 10_000,
		Concurrency: 64, Logger: log})
	must(t, err)
	h.db = storetest.Open(t, store.Options{Specs: specs})
	m, err := mirror.New(mirror.Options{Logger: log, Sources: []mirror.Source{{Source: src, Upstream: client}},
		Ages: mirror.Ages{Wait: time.Second}, Store: h.db})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- m.Run(ctx) }()
	newest := func(source, kind, id string) *understudy.Record {
		r, err := h.db.Record(context.Background(), source, kind, kind, id)
		if err != nil {
			return nil
		}
		return r
	}
	gate, err := access.NewWith(access.Options{Specs: specs, Roles: roles, Rows: rows, Do: does, Newest: newest})
	must(t, err)
	program := callers.Credential{Name: "program", Source: "twilio", User: account, Secret: understudy.NewSecret("programtoken"),
		Grant: understudy.Grant{Role: understudy.RoleAll}}
	people := &signin.Header{Name: "X-User", Roles: "X-Role", From: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		Has: func(string) bool { return true }, Taken: func(string) bool { return false }, Now: time.Now}
	book, err := callers.New(callers.Options{Sources: []*spec.Source{src}, Now: time.Now, Credentials: []callers.Credential{program},
		People: people})
	must(t, err)
	o := actions.Options{Store: h.db.Actions, Mirror: m, Logger: log}
	if runner != nil {
		runner(&o)
	}
	h.actions = actions.New(o)
	v, err := viewer.New(page.Options{Sources: []*spec.Source{src}, Mirror: m, Gate: gate, Callers: book, Audit: h.audit,
		Actions: h.actions, Annotations: h.db.Annotations, History: h.db, Logger: log})
	must(t, err)
	h.viewer = v
	t.Cleanup(func() {
		must(t, h.actions.Close())
		must(t, v.Visitor.Close())
		cancel()
		<-ran // its error is that it was told to end
		must(t, client.Close())
		web.Close()
		must(t, api.Close())
	})
	return h
}

// upstream is slowapi; it notes the writes.
func (h *fixture) upstream(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		h.api.ServeHTTP(w, r)
		return
	}
	h.mu.Lock()
	h.writes = append(h.writes, r.Method+" "+strings.TrimPrefix(r.URL.Path, root))
	answer := h.answer
	h.mu.Unlock()
	if answer != nil {
		answer(w, r, h.api)
		return
	}
	h.api.ServeHTTP(w, r)
}

// written are the writes that upstream had.
func (h *fixture) written() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.writes...)
}

// audited are the entries of what was done so far; what was looked at is left out.
func (h *fixture) audited() (all []understudy.AuditEntry) {
	h.audit.mu.Lock()
	defer h.audit.mu.Unlock()
	for _, e := range h.audit.all {
		switch e.Action {
		case understudy.ActionSend, understudy.ActionDelete, understudy.ActionNote, understudy.ActionAdminister:
			all = append(all, e)
		}
	}
	return all
}

// call asks the viewer as a person of a role; form nil: by GET.
func (h *fixture) call(ctx context.Context, role, path string, form url.Values) *httptest.ResponseRecorder {
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Prefer", "wait=20")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if role == "program" {
		r.SetBasicAuth(account, "programtoken")
	} else {
		r.Header.Set("X-User", "anna")
		r.Header.Set("X-Role", role)
	}
	w := httptest.NewRecorder()
	h.viewer.ServeHTTP(w, r)
	return w
}

// get is a page that must be there.
func (h *fixture) get(role, path string) string {
	h.Helper()
	w := h.call(h.Context(), role, path, nil)
	if w.Code != http.StatusOK {
		h.Fatalf("GET %s as %s: %d\n%s", path, role, w.Code, w.Body)
	}
	return w.Body.String()
}

var keyInput = regexp.MustCompile(`name="key" value="([A-Z2-7]{26})"`)

// form opens the page of an action and fills it in.
func (h *fixture) form(role, path string, values ...string) url.Values {
	h.Helper()
	m := keyInput.FindStringSubmatch(h.get(role, path))
	if m == nil {
		h.Fatalf("%s has no key", path)
	}
	f := url.Values{"key": {m[1]}, "step": {"do"}}
	for i := 0; i < len(values); i += 2 {
		f.Set(values[i], values[i+1])
	}
	return f
}

// post sends a form and compares the status and texts of the answer.
func (h *fixture) post(role, path string, form url.Values, status int, says ...string) *httptest.ResponseRecorder {
	h.Helper()
	w := h.call(h.Context(), role, path, form)
	if w.Code != status {
		h.Fatalf("POST %s as %s: %d, want %d\n%s", path, role, w.Code, status, w.Body)
	}
	for _, text := range says {
		if !strings.Contains(w.Body.String(), text) {
			h.Errorf("POST %s as %s does not say %q\n%s", path, role, text, w.Body)
		}
	}
	return w
}

// first is the first record of a list as upstream has it for which pick is true.
func (h *fixture) first(list, key string, pick func(map[string]any) bool) map[string]any {
	h.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(h.Context(), http.MethodGet, root+list+"?PageSize=1000", nil)
	r.SetBasicAuth(account, "slowapitoken")
	h.api.ServeHTTP(w, r)
	var all map[string]json.RawMessage
	must(h, json.Unmarshal(w.Body.Bytes(), &all))
	var found []map[string]any
	must(h, json.Unmarshal(all[key], &found))
	for _, one := range found {
		if pick == nil || pick(one) {
			return one
		}
	}
	h.Fatalf("%s: none of %d", list, len(found))
	return nil
}

// upstreamGet is what slowapi says of a path now.
func (h *fixture) upstreamGet(path string) (int, string) {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(h.Context(), http.MethodGet, root+path, nil)
	r.SetBasicAuth(account, "slowapitoken")
	h.api.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Body) // a recorder's
	return w.Code, string(body)
}

func text(v any) string { return fmt.Sprint(v) }
