// Corridor: a program, the proxy, the gate, the mirror, the store, upstream's
// client and a slow API, all real, over real HTTP.

package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/checktest"
	"understudy/internal/proxy"
	"understudy/internal/slowapi"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/mirror"
	"understudy/spec"
	"understudy/spec/spectest"
	"understudy/upstream"
)

const (
	account = "AC00000000000000000000000000000001"
	root    = "/2010-04-01/Accounts/" + account
	demo    = "understudydemotoken"
	masked  = "understudymaskedtoken"
	api     = "slowapitoken"
)

// product is a running product.
type product struct {
	*testing.T
	slow, server *httptest.Server
	proxy        *proxy.Proxy
	source       *spec.Source
	mirror       *mirror.Mirror
	db           *store.DB // of a caller with row rules
	journal      journal
	ahead        atomic.Int64 // nanoseconds our clocks are ahead
	spans        sync.Map     // of what had to be covered for lists made from records
}

// journal is what upstream was asked.
type journal struct {
	mu   sync.Mutex
	seen []string // method, target and body
}

// over notes requests on their way to a handler.
func (j *journal) over(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			body = []byte(err.Error())
		}
		if !strings.HasPrefix(r.RequestURI, "/-/") {
			j.mu.Lock()
			j.seen = append(j.seen, strings.TrimSuffix(r.Method+" "+r.RequestURI+" "+string(body), " "))
			j.mu.Unlock()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	})
}

// take is what was asked since it was last taken.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := j.seen
	j.seen = nil
	return seen
}

// peek is the same, and leaves it there.
func (j *journal) peek() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.seen)
}

func (c *product) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// later sets our clocks on, when what runs has ended.
func (c *product) later(d time.Duration) {
	c.Helper()
	c.until("nothing is under way", func() bool { return c.mirror.Loads().Flights.Now == 0 })
	c.ahead.Add(int64(d))
}

func build(t *testing.T) *product {
	t.Helper()
	world, err := slowapi.New(slowapi.Options{Records: 200})
	if err != nil {
		t.Fatal(err)
	}
	c := &product{T: t}
	c.slow = httptest.NewServer(c.journal.over(world))
	t.Cleanup(func() { c.slow.Close(); check(t, world.Close()) })
	sp := spectest.BuiltIn(t, "twilio")
	c.source = &spec.Source{Name: "twilio", Spec: sp, User: account, Polls: []string{}}
	specs := map[string]*spec.Spec{"twilio": sp}
	db, err := store.Open(t.Context(), store.Options{Path: storetest.File(t), Specs: specs, Now: c.now, SaveTime: time.Minute})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	client, err := upstream.New(upstream.Options{Source: c.source, Base: c.slow.URL, Secret: understudy.NewSecret(api), Rate: 1000,
		Now: c.now})
	check(t, err)
	t.Cleanup(func() { check(t, client.Close()) })
	c.mirror, err = mirror.New(mirror.Options{Sources: []mirror.Source{{Source: c.source, Upstream: client}}, Store: db, Now: c.now})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.mirror.Run(ctx) }()
	t.Cleanup(func() { cancel(); check(t, <-ended) })
	gate, err := access.New(specs, access.Roles{"support": {"twilio": {"*": "see", "phone": "last4", "body": "hide"}}})
	check(t, err)
	allow := []understudy.Allow{{Method: "POST", Path: "/2010-04-01/Accounts/*/Messages.json"},
		{Method: "DELETE", Path: "/2010-04-01/Accounts/*/Messages/*"}}
	book, err := callers.New(callers.Options{Sources: []*spec.Source{c.source}, Credentials: []callers.Credential{
		{Name: "demo", Source: "twilio", User: account, Secret: understudy.NewSecret(demo), Grant: understudy.Grant{Role: "all", Allow: allow}},
		{Name: "masked", Source: "twilio", User: account, Secret: understudy.NewSecret(masked),
			Grant: understudy.Grant{Role: "support", Allow: allow}},
	}})
	check(t, err)
	c.proxy, err = proxy.New(proxy.Options{Source: c.source, Mirror: c.mirror, Gate: gate, Callers: book, Now: c.now})
	check(t, err)
	c.server = httptest.NewServer(c.proxy)
	c.source.PublicURL = c.server.URL
	t.Cleanup(c.server.Close)
	return c
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ask sends one request and reads the answer.
func (c *product) ask(server *httptest.Server, method, target, secret, form string, headers ...string) (*http.Response, string) {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), method, server.URL+target, strings.NewReader(form))
	check(c.T, err)
	r.SetBasicAuth(account, secret)
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return c.send(r)
}

// send sends a request and reads the answer.
func (c *product) send(r *http.Request) (*http.Response, string) {
	c.Helper()
	answer, err := c.server.Client().Do(r)
	check(c.T, err)
	defer func() { check(c.T, answer.Body.Close()) }()
	body, err := io.ReadAll(answer.Body)
	check(c.T, err)
	return answer, string(body)
}

func (c *product) get(target, secret string) (*http.Response, string) {
	c.Helper()
	return c.ask(c.server, "GET", target, secret, "")
}

func TestBytesAreUpstreams(t *testing.T) {
	c := build(t)
	for _, target := range []string{
		root + "/Calls.json", root + "/Calls.json?PageSize=7&Status=completed", root + "/Messages.json?PageSize=1000",
		root + "/IncomingPhoneNumbers.json", root + "/IncomingPhoneNumbers/Local.json", root + "/Messages.json?DateSent%3E=2026-05-01",
		root + "/Calls/CAffffffffffffffffffffffffffffffff.json", root + "/Calls.json?PageSize=nonsense", "/2010-04-01/Accounts/ACx.json",
	} {
		direct, want := c.ask(c.slow, "GET", target, api, "")
		for _, how := range []string{"cold", "again"} {
			through, got := c.get(target, demo)
			checktest.Equal(t, got, want, "%s, %s: got", target, how)
			checktest.Equal(t, through.StatusCode, direct.StatusCode, "%s, %s: through.StatusCode; got %.200s",
				target, how, got)
			checktest.Equal(t, through.Header.Get("Content-Type"), direct.Header.Get("Content-Type"),
				`%s, %s: through.Header.Get("Content-Type"); got %.200s`, target, how, got)
		}
	}
}

func TestHowAnswersCome(t *testing.T) {
	c := build(t)
	first, body := c.get(root+"/Calls.json?PageSize=3", demo)
	if got := first.Header.Get("Cache-Status"); got != "understudy; fwd=uri-miss; stored" {
		t.Errorf("the first is %q", got)
	}
	if !regexp.MustCompile(`^upstream;dur=[0-9.]+, store;dur=[0-9.]+$`).MatchString(first.Header.Get("Server-Timing")) {
		t.Errorf("Server-Timing %q", first.Header.Get("Server-Timing"))
	}
	second, _ := c.get(root+"/Calls.json?PageSize=3", demo)
	if got := second.Header.Get("Cache-Status"); !regexp.MustCompile(`^understudy; hit; ttl=(30|29|28)$`).MatchString(got) {
		t.Errorf("the second is %q", got)
	}
	// The client takes gzip: what was just fetched goes out plain, then packed.
	if plain, packed := first.Header.Get("Etag"), second.Header.Get("Etag"); packed != strings.TrimSuffix(plain, `"`)+`-gzip"` {
		t.Errorf("ETags %s and %s", plain, packed)
	}
	var list struct {
		Calls []struct{ SID string }
		Next  string `json:"next_page_uri"`
	}
	check(t, json.Unmarshal([]byte(body), &list))
	instance, _ := c.get(root+"/Calls/"+list.Calls[0].SID+".json", demo)
	if got := instance.Header.Get("Cache-Status"); got != `understudy; hit; detail="composed"` {
		t.Errorf("an instance seen in the list is %q", got)
	}
	if answer, _ := c.get(list.Next, masked); answer.StatusCode != 200 {
		t.Errorf("the next page as support: %d", answer.StatusCode)
	}
}

func TestSupportSeesNoNumberAndNoBody(t *testing.T) {
	c := build(t)
	_, whole := c.get(root+"/Messages.json?PageSize=100", demo)
	var list struct {
		Messages []struct{ SID, Body, To, From string }
	}
	check(t, json.Unmarshal([]byte(whole), &list))
	if len(list.Messages) != 100 {
		t.Fatalf("%d messages", len(list.Messages))
	}
	targets := []string{root + "/Messages.json?PageSize=100"}
	for _, m := range list.Messages[:5] {
		targets = append(targets, root+"/Messages/"+m.SID+".json")
	}
	for _, target := range targets {
		_, view := c.get(target, masked)
		if !json.Valid([]byte(view)) || !strings.Contains(view, list.Messages[0].SID[:2]) {
			t.Fatalf("%s: %.200s", target, view)
		}
		for _, m := range list.Messages {
			quoted, _ := json.Marshal(m.Body)
			checktest.True(t, !(len(m.Body) > 3 && strings.Contains(view, string(quoted))),
				"len(m.Body) > 3 && strings.Contains(view, string(quoted)); len(m.Body) is %v", len(m.Body))
			checktest.True(t, !(strings.Contains(view, m.To) && m.To != ""),
				`strings.Contains(view, m.To) && m.To != ""; m.To is %q`, m.To)
			checktest.True(t, !(strings.Contains(view, m.From) && m.From != ""),
				`strings.Contains(view, m.From) && m.From != ""; m.From is %q`, m.From)
		}
	}
}

func TestWritesThrough(t *testing.T) {
	c := build(t)
	_, before := c.get(root+"/Messages.json?PageSize=2", demo)
	created, body := c.ask(c.server, "POST", root+"/Messages.json", masked, "To=%2B14155551234&From=%2B14155550000&Body=a+secret")
	checktest.MustEqual(t, created.StatusCode, 201, "created.StatusCode; body %s", body)
	checktest.MustLacks(t, body, "4155551234", "body")
	checktest.MustLacks(t, body, "a secret", "body")
	var made struct{ SID string }
	check(t, json.Unmarshal([]byte(body), &made))
	answer, after := c.get(root+"/Messages.json?PageSize=2", demo)
	if after == before || !strings.Contains(after, made.SID) {
		t.Errorf("the list after a write is the one before: %v", answer.Header)
	}
	if gone, body := c.ask(c.server, "DELETE", root+"/Messages/"+made.SID+".json", demo, ""); gone.StatusCode != 204 || body != "" {
		t.Errorf("%d %s", gone.StatusCode, body)
	}
	if missing, _ := c.get(root+"/Messages/"+made.SID+".json", demo); missing.StatusCode != 404 {
		t.Errorf("after its deletion: %d", missing.StatusCode)
	}
	if refused, _ := c.ask(c.server, "POST", root+"/Calls.json", demo, "To=1"); refused.StatusCode != 403 {
		t.Errorf("a write nobody allowed: %d", refused.StatusCode)
	}
}

func TestSecretsAndOutage(t *testing.T) {
	c := build(t)
	target := "/2010-04-01/Accounts/" + account + ".json"
	_, direct := c.ask(c.slow, "GET", target, api, "")
	if !strings.Contains(direct, api) {
		t.Fatal("the slow API shows no secret; the test could not fail")
	}
	if _, through := c.get(target, demo); strings.Contains(through, api) || !strings.Contains(through, `"auth_token"`) {
		t.Errorf("the account is %s", through)
	}
	c.slow.Close()
	held, _ := c.get(target, demo)
	none, body := c.ask(c.server, "GET", root+"/Calls.json", demo, "", "Prefer", "wait=1")
	checktest.Equal(t, held.StatusCode, 200, "in an outage: held.StatusCode; body %s", body)
	checktest.Equal(t, none.StatusCode, 503, "in an outage: none.StatusCode; body %s", body)
	checktest.True(t, none.Header.Get("Retry-After") != "",
		`in an outage: none.Header.Get("Retry-After") is empty; body %s`, body)
	checktest.True(t, bytes.Contains([]byte(body), []byte(`"code":20500`)),
		"in an outage: bytes.Contains([]byte(body), []byte(`\"code\":20500`)) is false")
	if strings.Contains(body, api) {
		t.Error("the secret is in an error")
	}
}
