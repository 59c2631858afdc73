// Real: a viewer over the real mirror and store, where people do something.

package viewertest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	runner "understudy/internal/actions"
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

// The roles of people who do something, what they may do, and the records they may find.
var (
	doers = access.Roles{
		"support": Roles["support"],
		"sender":  {"twilio": {"*": "see"}},
		"reader":  {"twilio": {"*": "see"}},
		"few":     {"twilio": {"*": "see"}},
		"keeper":  {"twilio": {"*": "see"}},
	}
	does = access.Permissions{
		"support": {"twilio": {"messages.redact"}},
		"sender":  {"twilio": {"messages.send", "calls.cancel", "note"}},
		"few":     {"twilio": {"messages.delete", "messages.send", "erase", "note"}},
		"keeper":  {"twilio": {"sync", "purge", "erase"}},
	}
	rows = map[string]map[string]access.RowRules{"few": {"twilio": {
		"messages": {Where: map[string]access.Match{"status": {In: []string{"failed"}}}},
	}}}
)

// People returns people whom a proxy in front names: see Person.
func People() *signin.Header {
	return &signin.Header{Name: "X-User", Roles: "X-Role", From: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		Has: func(string) bool { return true }, Taken: func(string) bool { return false }, Now: time.Now}
}

// OpenReal starts a viewer over the real mirror, store and client. It closes it when the test ends. set changes the
// options of what does something; nil: they stay.
func OpenReal(t testing.TB, set func(*runner.Options)) *Fixture {
	t.Helper()
	up := startUpstream(t, slowapi.Options{Records: 400})
	sp := spectest.BuiltIn(t, "twilio")
	src := &spec.Source{Name: "twilio", Spec: sp, User: Account}
	specs := map[string]*spec.Spec{"twilio": sp}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	client, err := upstream.New(upstream.Options{Source: src, Base: up.server.URL, Secret: understudy.NewSecret("slowapitoken"),
		Rate: 10_000, Concurrency: 64, Logger: log})
	Must(t, err)
	db := storetest.Open(t, store.Options{Specs: specs})
	m, err := mirror.New(mirror.Options{Logger: log, Sources: []mirror.Source{{Source: src, Upstream: client}},
		Ages: mirror.Ages{Wait: time.Second}, Store: db})
	Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- m.Run(ctx) }()
	newest := func(source, kind, id string) *understudy.Record {
		r, err := db.Record(context.Background(), source, kind, kind, id)
		if err != nil {
			return nil
		}
		return r
	}
	gate, err := access.NewWith(access.Options{Specs: specs, Roles: doers, Rows: rows, Do: does, NewestVersion: newest})
	Must(t, err)
	book, err := callers.New(callers.Options{Sources: []*spec.Source{src}, Now: time.Now, People: People(),
		Credentials: []callers.Credential{Credential("everything", All.Token, understudy.RoleAll)}})
	Must(t, err)
	o := runner.Options{Store: db.Actions, Mirror: m, Logger: log}
	if set != nil {
		set(&o)
	}
	h := &Fixture{TB: t, Spec: sp, Upstream: up, Store: db, Audit: &AuditLog{}, Actions: runner.New(o)}
	h.Viewer, err = viewer.New(page.Options{Sources: []*spec.Source{src}, Mirror: m, Gate: gate, Callers: book, Audit: h.Audit,
		Actions: h.Actions, Annotations: db.Annotations, History: db, Logger: log})
	Must(t, err)
	t.Cleanup(func() {
		Must(t, h.Actions.Close())
		Must(t, h.Viewer.Visitor.Close())
		cancel()
		<-ran // its error is that it was told to end
		Must(t, client.Close())
		up.Close()
	})
	return h
}

// Send sends a form, or asks by GET when form is nil. ctx is that of the request.
func (h *Fixture) Send(ctx context.Context, who Browser, path string, form url.Values) *httptest.ResponseRecorder {
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	who.prepare(r)
	w := httptest.NewRecorder()
	h.Viewer.ServeHTTP(w, r)
	return w
}

var keyInput = regexp.MustCompile(`name="key" value="([A-Z2-7]{26})"`)

// FillForm opens the page of an action and returns its form with some values, each behind its name.
func (h *Fixture) FillForm(who Browser, path string, values ...string) url.Values {
	h.Helper()
	m := keyInput.FindStringSubmatch(h.Page(path, who))
	if m == nil {
		h.Fatalf("%s has no key", path)
	}
	f := url.Values{"key": {m[1]}, "step": {"do"}}
	for i := 0; i < len(values); i += 2 {
		f.Set(values[i], values[i+1])
	}
	return f
}

// Post sends a form and compares the status and texts of the answer.
func (h *Fixture) Post(who Browser, path string, form url.Values, status int, says ...string) *httptest.ResponseRecorder {
	h.Helper()
	w := h.Send(h.Context(), who, path, form)
	if w.Code != status {
		h.Fatalf("POST %s as %+v: %d, want %d\n%s", path, who, w.Code, status, w.Body)
	}
	for _, text := range says {
		if !strings.Contains(w.Body.String(), text) {
			h.Errorf("POST %s as %+v does not say %q\n%s", path, who, text, w.Body)
		}
	}
	return w
}
