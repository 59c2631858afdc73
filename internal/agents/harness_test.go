// Harness: the tools over the real mirror, store, search and slow API, asked by the
// protocol's own client.

package agents

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/search"
	"understudy/internal/slowapi"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/mirror"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/spectest"
	"understudy/upstream"
)

const account = "AC00000000000000000000000000000001"

// roles are those of the credentials, which have the same names.
var roles = access.Roles{
	"support": {"twilio": {"*": "see", "phone": "last4", "body": "hide", "price": "hide"}},
	"calls":   {"twilio": {"calls": "see", "calls.to": "hide"}},
	"none":    {"twilio": {}},
}

// rig is a server of tools over real parts.
type rig struct {
	*testing.T
	url    string
	api    *httptest.Server
	store  *store.DB
	log    *auditLog
	source *spec.Source
	o      Options
}

// auditLog keeps entries, or fails.
type auditLog struct {
	mu   sync.Mutex
	err  error
	kept []understudy.AuditEntry
}

func (l *auditLog) RecordAction(_ context.Context, e understudy.AuditEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.kept = append(l.kept, e)
	}
	return l.err
}

func (l *auditLog) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// take is what was listed since it was last asked.
func (l *auditLog) take() []understudy.AuditEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.kept
	l.kept = nil
	return all
}

// gated is the gate as the search asks it.
type gated struct{ *access.Gate }

func (g gated) CanSeeField(c understudy.Caller, source, kind, field string) bool {
	return g.Level(c, source, kind, field) == access.See
}

func (g gated) MakeView(c understudy.Caller, r *understudy.Record) ([]byte, error) {
	v, err := g.Gate.MakeView(c, &understudy.Page{Key: understudy.Key{Source: r.Source}, Kind: r.Kind, Status: http.StatusOK, Body: r.Body})
	if err != nil {
		return nil, err
	}
	return v.Body, nil
}

// newRig opens everything; change may change the options.
func newRig(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	world, err := slowapi.New(slowapi.Options{Records: 300, Account: account, Token: "slowapitoken"})
	must(t, err)
	r := &rig{T: t, api: httptest.NewServer(world), log: &auditLog{}}
	sp := spectest.BuiltIn(t, "twilio")
	r.source = &spec.Source{Name: "twilio", Spec: sp, User: account, PublicURL: "http://127.0.0.1:4115"}
	specs := map[string]*spec.Spec{"twilio": sp}
	client, err := upstream.New(upstream.Options{Source: r.source, Base: r.api.URL, Secret: understudy.NewSecret("slowapitoken"), Rate: 1000})
	must(t, err)
	r.store = storetest.Open(t, store.Options{Specs: specs})
	m, err := mirror.New(mirror.Options{
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Sources: []mirror.Source{{Source: r.source, Upstream: client}},
		Ages: mirror.Ages{Wait: time.Minute}, Store: r.store,
	})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ran // its error is that it was told to end
		must(t, client.Close())
		r.api.Close()
		must(t, world.Close())
	})
	gate, err := access.New(specs, roles)
	must(t, err)
	sources := []*spec.Source{r.source}
	var creds []callers.Credential
	for _, role := range []string{"all", "support", "calls", "none"} {
		creds = append(creds, callers.Credential{Name: role, Source: "twilio", User: "AC" + role, Secret: understudy.NewSecret(secretOf(role)),
			Grant: understudy.Grant{Role: role}})
	}
	book, err := callers.New(callers.Options{Credentials: creds, Sources: sources, BehindProxy: true})
	must(t, err)
	key, err := search.Key(t.Context(), r.store.KV)
	must(t, err)
	finder, err := search.New(search.Options{Sources: sources, Store: r.store, Gate: gated{gate}, Key: key,
		Limits: search.Limits{Time: time.Minute, Count: time.Minute, Sum: time.Minute}})
	must(t, err)
	r.o = Options{
		Sources: sources, Gate: gate, Callers: book, Mirror: m, Search: finder, History: r.store, Audit: r.log, Key: key, Version: "1.0",
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&r.o)
	}
	s, err := New(r.o)
	must(t, err)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	r.url = web.URL + Path
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func secretOf(role string) string { return "secret-of-" + role }

// authorized sends every request with a credential.
type authorized struct{ header string }

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if a.header != "" {
		r.Header.Set("Authorization", a.header)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func basic(role string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("AC"+role+":"+secretOf(role)))
}

// client is the protocol's own client, with a credential.
func (r *rig) client(authorization string) (*mcp.ClientSession, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(r.Context(), &mcp.StreamableClientTransport{Endpoint: r.url,
		HTTPClient: &http.Client{Transport: authorized{authorization}}, DisableStandaloneSSE: true}, nil)
	if err == nil {
		r.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// as is a client of a role, with the tools that it is offered.
func (r *rig) as(role string) *agent {
	r.Helper()
	s, err := r.client(basic(role))
	must(r.T, err)
	list, err := s.ListTools(r.Context(), nil)
	must(r.T, err)
	a := &agent{T: r.T, session: s, tools: map[string]*mcp.Tool{}, outputs: map[string]*jsonschema.Resolved{}}
	for _, t := range list.Tools {
		a.tools[t.Name] = t
		var out jsonschema.Schema
		data, err := json.Marshal(t.OutputSchema)
		must(r.T, err)
		must(r.T, json.Unmarshal(data, &out))
		if a.outputs[t.Name], err = out.Resolve(nil); err != nil {
			r.Fatalf("%s: %v", t.Name, err)
		}
	}
	return a
}

// agent is a client that checks that every answer is as its tool's schema says.
type agent struct {
	*testing.T
	session *mcp.ClientSession
	tools   map[string]*mcp.Tool
	outputs map[string]*jsonschema.Resolved
}

// call calls a tool; failed is what it says when that was wrong.
func (a *agent) call(name string, arguments map[string]any, into any) (failed string) {
	a.Helper()
	out, err := a.session.CallTool(a.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		a.Fatalf("%s %v: %v", name, arguments, err)
	}
	said := out.Content[0].(*mcp.TextContent).Text
	if out.IsError {
		return said
	}
	data, err := json.Marshal(out.StructuredContent)
	must(a.T, err)
	if err := a.outputs[name].Validate(out.StructuredContent); err != nil {
		a.Errorf("%s %v: the answer is not as the schema says: %v\n%.500s", name, arguments, err, data)
	}
	var text any
	must(a.T, json.Unmarshal([]byte(said), &text))
	if again, _ := json.Marshal(text); string(again) != string(data) {
		a.Errorf("%s: the text is not the data", name)
	}
	must(a.T, json.Unmarshal([]byte(said), into))
	return ""
}

// must calls a tool that answers.
func (a *agent) must(name string, arguments map[string]any, into any) {
	a.Helper()
	if failed := a.call(name, arguments, into); failed != "" {
		a.Fatalf("%s %v: %s", name, arguments, failed)
	}
}

// fill reads lists of the account to their ends.
func fill(r *rig, lists ...string) {
	r.Helper()
	for _, list := range lists {
		next := "/2010-04-01/Accounts/" + account + "/" + list + ".json"
		for next != "" {
			t, err := r.source.Spec.ResolveLink("twilio", next)
			must(r.T, err)
			p, err := r.o.Mirror.Answer(r.Context(), request.Request{Target: t})
			must(r.T, err)
			next = p.Page.Next.URI
		}
	}
}

// change saves the record of an instance path with other texts: pairs of an old and a new
// one.
func change(r *rig, path string, after time.Duration, pairs ...string) {
	r.Helper()
	t, err := r.source.Spec.ResolveLink("twilio", path)
	must(r.T, err)
	a, err := r.o.Mirror.Answer(r.Context(), request.Request{Target: t})
	must(r.T, err)
	p := *a.Page
	for i := 0; i < len(pairs); i += 2 {
		if !bytes.Contains(p.Body, []byte(pairs[i])) {
			r.Fatalf("%s has no %s: %s", path, pairs[i], p.Body)
		}
		p.Body = bytes.Replace(p.Body, []byte(pairs[i]), []byte(pairs[i+1]), 1)
	}
	p.Rows = []understudy.Row{p.Rows[0]}
	p.Rows[0].End += len(p.Body) - len(a.Page.Body)
	p.At, p.Version = p.At.Add(after), 0
	sum := sha256.Sum256(p.Body)
	copy(p.Sum[:], sum[:])
	_, err = r.store.Save(r.Context(), &p)
	must(r.T, err)
}
