// Test bed: a real gate and real callers, a scripted mirror.

package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
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
	"understudy/internal/callers"
	"understudy/kit/accesslog"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/spectest"
)

const (
	account = "AC00000000000000000000000000000001"
	root    = "/2010-04-01/Accounts/" + account
	demo    = "understudydemotoken"
	masked  = "understudymaskedtoken"
	reader  = "understudyreadertoken"
	blind   = "understudyblindtoken"
	paced   = "understudypacedtoken"
)

var start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// twilio returns a spec that the test may change at its top: the kinds are shared.
func twilio(t testing.TB) *spec.Spec {
	t.Helper()
	own := *spectest.BuiltIn(t, "twilio")
	return &own
}

// script is a mirror that gives fixed answers and keeps the requests.
type script struct {
	mu     sync.Mutex
	page   func(context.Context, request.Request) (*request.Response, error)
	write  func(context.Context, request.Write) (*request.Response, error)
	asked  []request.Request
	passed []request.Write
}

func (s *script) Answer(ctx context.Context, a request.Request) (*request.Response, error) {
	s.mu.Lock()
	s.asked = append(s.asked, a)
	answer := s.page
	s.mu.Unlock()
	return answer(ctx, a)
}

func (s *script) Write(ctx context.Context, w request.Write) (*request.Response, error) {
	s.mu.Lock()
	s.passed = append(s.passed, w)
	answer := s.write
	s.mu.Unlock()
	return answer(ctx, w)
}

// writes are those passed on so far.
func (s *script) writes() []request.Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.passed)
}

// bed is a proxy and what is around it.
type bed struct {
	*Proxy
	script *script
	log    *accesslog.Log
	lines  *bytes.Buffer
	now    time.Time
}

func newBed(t testing.TB) *bed {
	t.Helper()
	b := &bed{script: &script{}, lines: &bytes.Buffer{}, now: start}
	b.log = accesslog.New(b.lines)
	sp := twilio(t)
	sp.Limits.Path, sp.Limits.Answer = "/rate", `{"all":{limit},"used":{used},"left":{remaining},"end":{reset}}`
	b.log.IsID = sp.HasID
	source := &spec.Source{Name: "twilio", Spec: sp, User: account}
	gate, err := access.NewWith(access.Options{
		Specs: map[string]*spec.Spec{"twilio": sp},
		Roles: access.Roles{
			"support": {"twilio": {"*": "see", "phone": "last4", "body": "hide"}},
			"reader":  {"twilio": {"*": "see", "messages": "hide"}},
			"blind":   {"twilio": {"*": "see", "calls.sid": "hide", "calls.status": "hide"}},
		},
		Now: func() time.Time { return b.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	allow := []understudy.Allow{
		{Method: "POST", Path: "/2010-04-01/Accounts/*/Messages.json"},
		{Method: "DELETE", Path: "/2010-04-01/Accounts/*/Messages/*"},
		{Method: "GET", Path: "/2010-04-01/Accounts/*/Queues.json"},
	}
	stale := time.Minute
	book, err := callers.New(callers.Options{
		Sources: []*spec.Source{source},
		Credentials: []callers.Credential{
			{Name: "demo", Source: "twilio", User: account, Secret: understudy.NewSecret(demo), Grant: understudy.Grant{Role: "all", Allow: allow}},
			{Name: "masked", Source: "twilio", User: account, Secret: understudy.NewSecret(masked),
				Grant: understudy.Grant{Role: "support", Allow: allow}},
			{Name: "reader", Source: "twilio", User: account, Secret: understudy.NewSecret(reader),
				Grant: understudy.Grant{Role: "reader", MaxStale: &stale}},
			{Name: "blind", Source: "twilio", User: account, Secret: understudy.NewSecret(blind), Grant: understudy.Grant{Role: "blind"}},
			{Name: "paced", Source: "twilio", User: account, Secret: understudy.NewSecret(paced), Grant: understudy.Grant{Role: "all"}, Rate: 3,
				Per: time.Hour},
		},
		Now: func() time.Time { return b.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Proxy, err = New(Options{
		Source: source, Mirror: b.script, Gate: gate, Callers: book, Log: b.log, MaxBody: 1 << 10,
		Health: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"status":"ok"}`)
		}),
		Now: func() time.Time { return b.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// page is an answer of upstream's.
func page(kind string, list bool, status int, body string) *understudy.Page {
	full := sha256.Sum256([]byte(body))
	p := &understudy.Page{
		Key: understudy.Key{Source: "twilio", URI: "/x"}, Kind: kind, List: list, Status: status,
		ContentType: "application/json; charset=utf-8", Body: []byte(body),
	}
	copy(p.Sum[:], full[:])
	return p
}

// answers makes the mirror answer every read with one page, warm.
func (b *bed) answers(p *understudy.Page) *request.Response {
	a := &request.Response{Page: p, Outcome: request.Warm, Age: 9 * time.Second, TTL: 21 * time.Second, Stored: true}
	b.script.page = func(context.Context, request.Request) (*request.Response, error) { return a, nil }
	return a
}

func (b *bed) fails(err error) {
	b.script.page = func(context.Context, request.Request) (*request.Response, error) { return nil, err }
}

// ask sends one request with a secret, "" for none, and header pairs.
func (b *bed) ask(method, target, secret string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	return b.send(r, secret, headers...)
}

func (b *bed) send(r *http.Request, secret string, headers ...string) *httptest.ResponseRecorder {
	if secret != "" {
		r.SetBasicAuth(account, secret)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

// text is what the access log says so far.
func (b *bed) text(t testing.TB) string {
	t.Helper()
	if err := b.log.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.lines.String()
}

func unzip(t testing.TB, body []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func zip(t testing.TB, body string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// long is a list of messages past the size that is compressed.
func long() string {
	return `{"messages":[{"sid":"SM1","body":"` + strings.Repeat("hello there ", 200) + `","to":"+14155551234","direction":"` +
		strings.Repeat("outbound-api ", 200) + `"}],"end":0,"page":0}`
}
