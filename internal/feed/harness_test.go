// Harness: a feed over a scripted table of changes, behind real HTTP.

package feed

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/spectest"
)

var epoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// table is a store of changes and values.
type table struct {
	understudy.SharedKV // the feed never asks for Values

	mu    sync.Mutex
	watch []func(name string, value []byte) error
	rows  map[string][]understudy.Change
	notes map[string][]byte
	reads int
	err   error
}

func newTable() *table {
	return &table{rows: map[string][]understudy.Change{}, notes: map[string][]byte{}}
}

func (t *table) ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reads++
	if err := errors.Join(t.err, ctx.Err()); err != nil {
		return nil, err
	}
	rows := t.rows[source]
	rows = rows[min(max(after, 0), int64(len(rows))):]
	return slices.Clone(rows[:min(limit, len(rows))]), nil
}

func (t *table) ReadLastChange(_ context.Context, source string) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.rows[source])), nil
}

func (t *table) Value(_ context.Context, name string) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.notes[name] == nil {
		return nil, understudy.ErrNotFound
	}
	return slices.Clone(t.notes[name]), nil
}

func (t *table) SetValue(_ context.Context, name string, value []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	t.notes[name] = slices.Clone(value)
	return nil
}

func (t *table) Change(_ context.Context, name string, change func([]byte) ([]byte, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	value, err := change(slices.Clone(t.notes[name]))
	if err = errors.Join(t.err, err); err == nil {
		t.notes[name] = value
		for _, put := range t.watch {
			if strings.HasPrefix(name, hookPrefix) {
				err = errors.Join(err, put(name, value))
			}
		}
	}
	return err
}

func (t *table) Watch(_ context.Context, _ string, put func(name string, value []byte) error) error {
	t.watch = append(t.watch, put)
	return nil
}

// put appends changes, which get their numbers.
func (t *table) put(source string, changes ...understudy.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ch := range changes {
		n := int64(len(t.rows[source]) + 1)
		ch.N, ch.Source, ch.Record, ch.Version = n, source, 100+n, 1000+n
		if ch.At.IsZero() {
			ch.At = epoch.Add(time.Duration(n) * time.Second)
		}
		t.rows[source] = append(t.rows[source], ch)
	}
}

func came(kind, id string) understudy.Change {
	return understudy.Change{Kind: kind, ID: id, Type: understudy.Appeared}
}

func changed(kind, id string, fields ...string) understudy.Change {
	return understudy.Change{Kind: kind, ID: id, Type: understudy.Changed, Fields: understudy.NewNames(fields...)}
}

// roles of the tests: support sees no bodies and the ends of numbers; desk no
// alerts and no prices; open everything the spec names; blind no ids of calls.
var roles = access.Roles{
	"support": {"twilio": {"*": "see", "phone": "last4", "body": "hide"}},
	"desk":    {"twilio": {"*": "see", "alerts": "hide", "price": "hide"}},
	"open":    {"twilio": {"*": "see"}},
	"blind":   {"twilio": {"calls": "see", "calls.sid": "hide", "messages": "see"}},
	"few":     {"twilio": {"messages": "see"}},
	"other":   {},
}

// people name themselves: the user of Basic auth is the role.
type people struct{ lasts time.Duration }

func (p people) IdentifyPerson(r *http.Request) (understudy.Caller, error) {
	role, name, ok := r.BasicAuth()
	if !ok {
		return understudy.Caller{}, fmt.Errorf("%w: no credential", understudy.ErrUnauthorized)
	}
	g := &understudy.Grant{Role: role}
	if p.lasts > 0 {
		g.Expires = time.Now().Add(p.lasts)
	}
	return understudy.Caller{Name: role + name, Grant: g}, nil
}

func sp(t testing.TB) *spec.Spec {
	t.Helper()
	s := spectest.BuiltIn(t, "twilio")
	return s
}

func gate(t testing.TB, o Options) *access.Gate {
	t.Helper()
	specs := map[string]*spec.Spec{}
	for _, s := range o.Sources {
		specs[s.Name] = s.Spec
	}
	g, err := access.New(specs, roles)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// rig is a feed that runs behind a server.
type rig struct {
	*table
	feed   *Feed
	server *httptest.Server
	end    context.CancelFunc
	ended  chan error
}

func open(t testing.TB, tab *table, o Options) *rig {
	t.Helper()
	if o.Sources == nil {
		o.Sources = []*spec.Source{{Name: "twilio", Spec: sp(t)}}
	}
	if o.Policy.Gate == nil {
		o.Policy.Gate = gate(t, o)
	}
	if o.Policy.Callers == nil {
		o.Policy.Callers = people{}
	}
	o.Store, o.KV = tab, tab
	f, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &rig{table: tab, feed: f, end: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- f.Run(ctx) }()
	r.server = httptest.NewServer(f.Handler())
	t.Cleanup(func() {
		cancel()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
		r.server.Close()
	})
	return r
}

// make appends changes and notifies the feed.
func (r *rig) make(changes ...understudy.Change) {
	r.put("twilio", changes...)
	r.feed.NotifyPage(request.PageSaved{Changes: []understudy.Change{{Source: "twilio"}}})
}

// heard waits until the feed has read what was made.
func (r *rig) heard(t testing.TB) {
	t.Helper()
	if err := r.feed.readers["twilio"].readNew(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) get(t testing.TB, role, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	resp := r.open(t, role, path, headers...)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func (r *rig) open(t testing.TB, role, path string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if role != "" {
		req.SetBasicAuth(role, "")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// answer is a page as JSON.
type answer struct {
	Changes []map[string]any `json:"changes"`
	Next    string           `json:"next"`
}

func (r *rig) page(t testing.TB, role, query string) answer {
	t.Helper()
	resp, body := r.get(t, role, "/-/feed.json?"+query)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", query, resp.StatusCode, body)
	}
	var a answer
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatalf("%s: %v in %s", query, err, body)
	}
	return a
}

// line is a change in few words: "3 came calls CA1 []".
func line(m map[string]any) string {
	fields := ""
	if list, ok := m["fields"].([]any); ok {
		for _, f := range list {
			fields += " " + f.(string)
		}
	}
	n := ""
	if v, ok := m["n"].(float64); ok {
		n = fmt.Sprint(v, " ")
	}
	return fmt.Sprintf("%s%s %s %s%s", n, m["what"], m["kind"], m["id"], fields)
}

func lines(all []map[string]any) []string {
	out := []string{}
	for _, m := range all {
		out = append(out, line(m))
	}
	return out
}

// listener reads a stream block by block.
type listener struct {
	body io.Closer
	in   *bufio.Reader
}

func (r *rig) listen(t testing.TB, role, query string, headers ...string) *listener {
	t.Helper()
	resp := r.open(t, role, "/-/feed?"+query, headers...)
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: %d %s", query, resp.StatusCode, body)
	}
	l := &listener{resp.Body, bufio.NewReader(resp.Body)}
	t.Cleanup(func() { _ = l.body.Close() })
	if first := l.block(t); !strings.HasPrefix(first, "retry: ") {
		t.Fatalf("a stream begins with %q", first)
	}
	return l
}

// block is the next block, "" at the end.
func (l *listener) block(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for {
		s, err := l.in.ReadString('\n')
		if err != nil {
			return ""
		}
		if s == "\n" {
			return b.String()
		}
		b.WriteString(s)
	}
}

// event is the id and the change of the next block that has one.
func (l *listener) event(t testing.TB) (id string, m map[string]any) {
	t.Helper()
	for {
		b := l.block(t)
		if b == "" {
			t.Fatal("the stream ended")
		}
		head, data, ok := strings.Cut(b, "data: ")
		if !ok {
			continue
		}
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("%v in %q", err, b)
		}
		return place(strings.TrimSpace(strings.TrimPrefix(head, "id: "))), m
	}
}

// sealedSize is how long sealed cursors are, in bytes.
const sealedSize = 59

// place returns a cursor without the run that told it.
func place(cursor string) string {
	n, _, _ := strings.Cut(cursor, ".")
	return n
}

func unmarshal(body string, a *answer) error { return json.Unmarshal([]byte(body), a) }
