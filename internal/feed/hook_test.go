// Webhooks: signed, in order, tried again, paused, replayed, and to nobody
// they must not go to.

package feed

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"understudy"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// receiver answers with what it was told to, then 200, and keeps what it got.
type receiver struct {
	t       testing.TB
	mu      sync.Mutex
	answers []int
	headers http.Header // of its answers
	got     []message
	server  *httptest.Server
}

type message struct {
	id      string
	next    any
	changes []string
}

func receive(t testing.TB, answers ...int) *receiver {
	r := &receiver{t: t, answers: answers, headers: http.Header{}}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	key, err := standardwebhooks.NewWebhook(hookSecret)
	if err != nil {
		r.t.Error(err)
	}
	if err := key.VerifyIgnoringTimestamp(body, req.Header); err != nil {
		r.t.Errorf("signature: %v", err)
	}
	var m struct {
		Type string
		Data struct {
			Webhook, Source string
			Changes         []map[string]any
			Next            any
		}
	}
	if err := json.Unmarshal(body, &m); err != nil || m.Type != "changes" || m.Data.Source != "twilio" {
		r.t.Errorf("%v in %s", err, body)
	}
	r.got = append(r.got, message{req.Header.Get("webhook-id"), m.Data.Next, lines(m.Data.Changes)})
	status := http.StatusOK
	if len(r.answers) > 0 {
		status, r.answers = r.answers[0], r.answers[1:]
	}
	for name, values := range r.headers {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.Repeat("x", 1000))
}

func (r *receiver) all() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// task is a job's run.
type task struct{ key string }

func (t task) Job() understudy.Job           { return understudy.Job{Kind: DeliverKind, Key: t.key} }
func (t task) Progress(int64, int64, string) {}

// clock is stepped by tests.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// hooked is a feed with one webhook that has everything still before it. It
// does not run: tests deliver themselves.
func hooked(t testing.TB, tab *table, h Hook) (*Feed, *clock) {
	t.Helper()
	c := &clock{now: time.Now()}
	h.Name, h.Source, h.AllowPrivate, h.Secret = "crm", "twilio", true, understudy.NewSecret(hookSecret)
	o := Options{Sources: []*understudy.Source{{Name: "twilio", Spec: spec(t)}}, Store: tab, Now: c.read}
	o.Policy = Policy{Gate: gate(t, o), Callers: people{}, Hooks: []Hook{h}}
	f, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if tab.notes[noteOf("crm")] == nil {
		t.Error("the place was not kept")
	}
	return f, c
}

func (f *Feed) from(t testing.TB, after int64) {
	t.Helper()
	if err := f.hooks.move(t.Context(), "crm", &after); err != nil {
		t.Fatal(err)
	}
}

func (f *Feed) stat(t testing.TB) HookStats {
	t.Helper()
	all := f.Webhooks()
	if len(all) != 1 {
		t.Fatalf("webhooks: %v", all)
	}
	return all[0]
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	to := receive(t)
	tab := some()
	f, _ := hooked(t, tab, Hook{URL: to.server.URL, Role: "all"})
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil || len(to.all()) != 0 {
		t.Fatalf("a new webhook begins at the newest change: %v, %v", to.all(), err)
	}
	f.from(t, 0)
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"1 came calls CA1", "2 changed calls CA1 from from_formatted status", "3 came messages SM1", "4 came alerts NO1", "5 changed messages SM1 body", "6 changed calls CA1 price x_new", "7 changed calls CA1", "8 went messages SM1"}
	if got := to.all(); len(got) != 1 || !slices.Equal(got[0].changes, want) || got[0].next != 8.0 {
		t.Errorf("got %v, want %q", got, want)
	}
	if s := f.stat(t); s.State != "ok" || s.After != 8 || s.Delivered != 8 || s.At == nil {
		t.Errorf("stats %+v", s)
	}
	if err := f.Deliver(t.Context(), task{"nobody"}); err != nil {
		t.Errorf("a webhook that is no more: %v", err)
	}
	// Many: in order, in batches.
	for i := range 250 {
		tab.put("twilio", came("calls", fmt.Sprint("CA", i)))
	}
	if err := f.readers["twilio"].pull(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil {
		t.Fatal(err)
	}
	n, ids := 8, map[string]bool{}
	for _, m := range to.all()[1:] {
		ids[m.id] = true
		for _, line := range m.changes {
			if n++; !strings.HasPrefix(line, fmt.Sprint(n, " came calls CA")) {
				t.Fatalf("change %d is %q", n, line)
			}
		}
	}
	if n != 258 || len(ids) != 3 {
		t.Errorf("%d changes in %d batches", n, len(ids))
	}
}

func TestDeliveryThroughTheGate(t *testing.T) {
	t.Parallel()
	to := receive(t)
	f, _ := hooked(t, some(), Hook{URL: to.server.URL, Role: "support", Kinds: []string{"messages"}})
	f.from(t, 0)
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil {
		t.Fatal(err)
	}
	got := to.all()
	if len(got) != 1 || !slices.Equal(got[0].changes, []string{"came messages SM1", "went messages SM1"}) {
		t.Errorf("support's webhook gets %v", got)
	}
	if next, ok := got[0].next.(string); !ok || len(next) != 48 {
		t.Errorf("support's webhook goes on after %v", got[0].next)
	}
	if s := f.stat(t); s.After != 8 || s.Delivered != 2 {
		t.Errorf("stats %+v", s)
	}
}

func TestDeliveryIsTriedAgain(t *testing.T) {
	t.Parallel()
	to := receive(t, 500, 302, 404)
	to.headers.Set("Location", to.server.URL)
	tab := some()
	f, c := hooked(t, tab, Hook{URL: to.server.URL, Role: "all"})
	f.from(t, 6)
	for i := range 3 {
		if err := f.Deliver(t.Context(), task{"crm"}); err == nil || !strings.Contains(err.Error(), "answered") {
			t.Fatalf("try %d: %v", i, err)
		}
		c.step(time.Minute)
		tab.put("twilio", came("calls", fmt.Sprint("CX", i))) // must not become part of the batch
	}
	if s := f.stat(t); s.State != "failing" || s.Why != "answered 404" || s.After != 6 || c.read().Sub(*s.Failing) != 3*time.Minute {
		t.Errorf("stats %+v", s)
	}
	// Another process goes on with the same batch.
	f, _ = hooked(t, tab, Hook{URL: to.server.URL, Role: "all"})
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil {
		t.Fatal(err)
	}
	got := to.all()
	for _, m := range got[:4] {
		if m.id != got[0].id || !slices.Equal(m.changes, []string{"7 changed calls CA1", "8 went messages SM1"}) {
			t.Errorf("a try sent %v, the first %v", m, got[0])
		}
	}
	if len(got) != 5 || got[4].id == got[0].id || len(got[4].changes) != 3 {
		t.Errorf("then came %v", got[4:])
	}
}

func TestDeliveryPauses(t *testing.T) {
	t.Parallel()
	to := receive(t, slices.Repeat([]int{503}, 30)...)
	f, c := hooked(t, some(), Hook{URL: to.server.URL, Role: "all"})
	f.from(t, 0)
	tries := 0
	for ; f.stat(t).State != "paused"; tries++ {
		err := f.Deliver(t.Context(), task{"crm"})
		if (err == nil) != (f.stat(t).State == "paused") {
			t.Fatalf("try %d: %v, %+v", tries, err, f.stat(t))
		}
		c.step(time.Hour)
	}
	if tries != 25 || !strings.Contains(f.stat(t).Why, "every try has failed since") {
		t.Errorf("paused after %d tries: %+v", tries, f.stat(t))
	}
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil || len(to.all()) != 25 {
		t.Errorf("a paused webhook is tried: %v", err)
	}
	to.mu.Lock()
	to.answers = nil
	to.mu.Unlock()
	f.from(t, 7)
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil || f.stat(t).State != "ok" || f.stat(t).After != 8 {
		t.Errorf("resumed: %v, %+v", err, f.stat(t))
	}
}

func TestGoneAndRetryAfter(t *testing.T) {
	t.Parallel()
	to := receive(t, 429, 410)
	to.headers.Set("Retry-After", "120")
	f, c := hooked(t, some(), Hook{URL: to.server.URL, Role: "all"})
	f.from(t, 0)
	if err := f.Deliver(t.Context(), task{"crm"}); err == nil {
		t.Error("429 is no failure")
	}
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil || len(to.all()) != 1 {
		t.Errorf("it was tried before the receiver wanted it: %v", err)
	}
	c.step(2 * time.Minute)
	if err := f.Deliver(t.Context(), task{"crm"}); err != nil || f.stat(t).State != "paused" || !strings.Contains(f.stat(t).Why, "410") {
		t.Errorf("after 410: %v, %+v", err, f.stat(t))
	}
}

func TestReplayWhileDelivering(t *testing.T) {
	t.Parallel()
	to := receive(t)
	f, _ := hooked(t, some(), Hook{URL: to.server.URL, Role: "all"})
	f.from(t, 4)
	to.mu.Lock() // the receiver does not answer yet
	done := make(chan error)
	go func() { done <- f.Deliver(context.WithoutCancel(t.Context()), task{"crm"}) }()
	one := f.hooks.get("crm")
	for until := int64(0); until == 0; {
		one.mu.Lock()
		until = one.state.Until
		one.mu.Unlock()
	}
	f.from(t, 6)
	to.mu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := to.all()
	if len(got) != 2 || len(got[0].changes) != 4 || len(got[1].changes) != 2 || f.stat(t).After != 8 {
		t.Errorf("the replay is lost: %v, %+v", got, f.stat(t))
	}
}

func TestJobsAreMadeWhenNeeded(t *testing.T) {
	t.Parallel()
	to := receive(t)
	tab := some()
	f, c := hooked(t, tab, Hook{URL: to.server.URL, Role: "support", Kinds: []string{"messages"}})
	asked := 0
	f.o.Enqueue = func(_ context.Context, jobs ...understudy.Job) ([]int64, error) {
		if jobs[0].Kind != DeliverKind || jobs[0].Key != "crm" {
			t.Errorf("asked for %+v", jobs)
		}
		asked++
		return []int64{1}, nil
	}
	look := func(want int, why string) {
		t.Helper()
		r := f.readers["twilio"]
		if err := r.pull(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.hooks.look(t.Context(), r)
		if asked != want {
			t.Errorf("%s: %d jobs, want %d", why, asked, want)
		}
	}
	deliver := func() {
		t.Helper()
		if err := f.Deliver(t.Context(), task{"crm"}); err != nil {
			t.Fatal(err)
		}
	}
	look(1, "what is left from before is not known")
	look(1, "asked just now")
	c.step(time.Minute)
	look(2, "the job was lost")
	deliver()
	look(2, "all is delivered")
	tab.put("twilio", came("calls", "CA5"), changed("messages", "SM1", "body"))
	look(2, "nothing it may see and wants")
	tab.put("twilio", came("messages", "SM5"))
	look(3, "a message")
	tab.put("twilio", came("messages", "SM6"))
	look(3, "a job is under way")
	deliver()
	if got := to.all(); len(got) != 1 || !slices.Equal(got[0].changes, []string{"came messages SM5", "came messages SM6"}) {
		t.Errorf("delivered %v", got)
	}
	to.answers = []int{410}
	tab.put("twilio", came("messages", "SM7"))
	look(4, "another")
	deliver()
	c.step(time.Hour)
	look(4, "paused")
	if err := f.hooks.move(t.Context(), "crm", nil); err != nil {
		t.Fatal(err)
	}
	look(5, "resumed")
}

func TestHookRoutes(t *testing.T) {
	t.Parallel()
	o := Options{Token: "tokentoken"}
	o.Policy.Hooks = []Hook{{Name: "crm", URL: "https://crm.example/hook", Source: "twilio", Role: "all", Secret: understudy.NewSecret(hookSecret)}}
	r := open(t, some(), o)
	post := func(role, path, body string, headers ...string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
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
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(answer)
	}
	for _, c := range []struct {
		role, path, body string
		headers          []string
		status           int
		text             string
	}{
		{"all", "crm", `{"after":3}`, nil, 200, `"after":3,"behind":5`},
		{"", "crm", `{}`, []string{"Authorization", "Bearer tokentoken"}, 200, `"after":3`},
		{"", "crm", `{}`, []string{"Authorization", "Bearer wrong"}, 401, ""},
		{"support", "crm", `{"after":0}`, nil, 403, "role all"},
		{"open", "crm", `{"after":0}`, nil, 403, "role all"},
		{"", "crm", `{}`, nil, 401, ""},
		{"all", "nobody", `{}`, nil, 404, "no webhook"},
		{"all", "crm", `{"after":9}`, nil, 400, "want 0 to 8"},
		{"all", "crm", `{"after":-1}`, nil, 400, "want 0 to 8"},
		{"all", "crm", `{"befor":1}`, nil, 400, "not what is expected"},
		{"all", "crm", ``, nil, 400, "not what is expected"},
		{"all", "crm", `{}`, []string{"Content-Type", "text/plain"}, 400, "application/json"},
		{"all", "crm", `{}`, []string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
	} {
		status, text := post(c.role, "/-/webhooks/"+c.path, c.body, c.headers...)
		if status != c.status || !strings.Contains(text, c.text) {
			t.Errorf("%s %s %s: %d %s; want %d with %q", c.role, c.path, c.body, status, text, c.status, c.text)
		}
	}
	if _, body := r.get(t, "all", "/-/webhooks"); !strings.Contains(body, `{"webhooks":[{"name":"crm","source":"twilio","state":"ok","after":3`) {
		t.Errorf("the list is %s", body)
	}
}

func TestHookSettings(t *testing.T) {
	t.Parallel()
	good := Hook{Name: "crm", URL: "https://crm.example/hook", Source: "twilio", Role: "all", Secret: understudy.NewSecret(hookSecret)}
	r := open(t, some(), Options{Policy: Policy{Hooks: []Hook{good}}})
	p := r.feed.o.Policy
	for want, change := range map[string]func(*Hook){
		"want https://":           func(h *Hook) { h.URL = "ftp://crm.example" },
		"only https":              func(h *Hook) { h.URL = "http://crm.example" },
		"no credentials":          func(h *Hook) { h.URL = "https://me:secret@crm.example" },
		"the address is loopback": func(h *Hook) { h.URL = "https://127.0.0.1:9/" },
		"the address is private":  func(h *Hook) { h.URL = "https://[fd00::1]/" },
		"want whsec_":             func(h *Hook) { h.Secret = understudy.NewSecret("whsec_!!!") },
		"want whsec_ and base64":  func(h *Hook) { h.Secret = understudy.Secret{} },
		`no source is called "x"`: func(h *Hook) { h.Source = "x" },
		"is there twice":          func(*Hook) {},
	} {
		bad := good
		change(&bad)
		p.Hooks = []Hook{good, bad}
		err := r.feed.SetPolicy(t.Context(), p)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "!!!") {
			t.Errorf("%v, want one with %q", err, want)
		}
	}
	if len(r.feed.Webhooks()) != 1 {
		t.Error("wrong settings changed what is in force")
	}
}

// Whatever a name resolves to is looked at when it is dialled.
func TestAddressesThatAreRefused(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][2]bool{ // permitted; permitted with allow_private
		"8.8.8.8": {true, true}, "1.1.1.1": {true, true}, "2606:4700:4700::1111": {true, true}, "2a00:1450::1": {true, true},
		"127.0.0.1": {false, true}, "127.255.255.254": {false, true}, "::1": {false, true}, "::ffff:127.0.0.1": {false, true},
		"10.0.0.1": {false, true}, "172.16.0.1": {false, true}, "172.31.255.255": {false, true}, "172.32.0.1": {true, true}, "192.168.1.1": {false, true},
		"::ffff:10.0.0.1": {false, true}, "fc00::1": {false, true}, "fdff::1": {false, true}, "100.64.0.1": {false, true}, "100.127.255.255": {false, true}, "100.128.0.1": {true, true},
		"100.100.100.200": {false, true}, "169.254.169.254": {}, "169.254.0.1": {}, "::ffff:169.254.169.254": {}, "168.63.129.16": {}, "192.0.0.192": {}, "fd00:ec2::254": {},
		"fe80::1": {}, "fe80::1%eth0": {}, "2606:4700::1%eth0": {}, "febf::1": {}, "fec0::1": {},
		"0.0.0.0": {}, "0.1.2.3": {}, "::": {}, "224.0.0.1": {}, "239.255.255.250": {}, "ff02::1": {}, "ff0e::1": {}, "255.255.255.255": {}, "240.0.0.1": {},
		"192.0.2.1": {}, "198.51.100.1": {}, "203.0.113.1": {}, "198.18.0.1": {}, "192.88.99.1": {}, "2001:db8::1": {}, "3fff::1": {}, "100::1": {},
		"64:ff9b::127.0.0.1": {}, "64:ff9b::10.1.2.3": {}, "64:ff9b::169.254.169.254": {}, "64:ff9b::8.8.8.8": {true, true}, "64:ff9b:1::1": {},
		"2002:7f00:1::": {}, "2002:808:808::": {}, "2001::1": {}, "2001:20::1": {}, "::127.0.0.1": {}, "::8.8.8.8": {}, "5f00::1": {}, "4000::1": {},
	} {
		a := netip.MustParseAddr(address)
		if got := [2]bool{forbidden(a, false) == "", forbidden(a, true) == ""}; got != want {
			t.Errorf("%s is permitted %v, want %v", address, got, want)
		}
	}
	check := guard(false)
	for _, c := range []struct {
		network, address string
		ok               bool
	}{{"tcp4", "8.8.8.8:443", true}, {"tcp6", "[2606:4700::1]:443", true}, {"tcp4", "127.0.0.1:443", false}, {"tcp6", "[::1]:443", false}, {"udp4", "8.8.8.8:53", false}, {"unix", "/run/x", false}, {"tcp4", "localhost:1", false}} {
		if err := check(c.network, c.address, nil); (err == nil) != c.ok {
			t.Errorf("dial %s %s: %v", c.network, c.address, err)
		}
	}
}

func TestNamesThatResolveInside(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer secure.Close()
	address := strings.Replace(secure.URL, "127.0.0.1", "localhost", 1)
	s, err := newSender(Hook{URL: address, Secret: understudy.NewSecret(hookSecret)}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if _, err := s.send(t.Context(), "msg_1", []byte("{}")); err == nil || !strings.Contains(err.Error(), "address not permitted: it is loopback") {
		t.Errorf("a name that resolves to this machine: %v", err)
	}
}

// The receiver's certificate counts, and the environment's proxy does not.
func TestSenderTrustsNobody(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer secure.Close()
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	s, err := newSender(Hook{URL: secure.URL, AllowPrivate: true, Secret: understudy.NewSecret(hookSecret)}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if _, err := s.send(t.Context(), "msg_1", []byte("{}")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: %v", err)
	}
	if s.client.Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy would be used")
	}
}

// The secret is in no error, and an ended job is nobody's failure.
func TestEndedDelivery(t *testing.T) {
	t.Parallel()
	to := receive(t)
	f, _ := hooked(t, some(), Hook{URL: to.server.URL, Role: "all"})
	f.from(t, 0)
	to.mu.Lock()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Deliver(ctx, task{"crm"}) }()
	one := f.hooks.get("crm")
	for until := int64(0); until == 0; {
		one.mu.Lock()
		until = one.state.Until
		one.mu.Unlock()
	}
	cancel()
	err := <-done
	to.mu.Unlock()
	if !errors.Is(err, context.Canceled) || f.stat(t).State != "ok" {
		t.Errorf("an ended delivery: %v, %+v", err, f.stat(t))
	}
	raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(hookSecret, "whsec_"))
	for name, note := range f.o.Store.(*table).notes {
		if strings.Contains(string(note), hookSecret) || strings.Contains(string(note), string(raw)) {
			t.Errorf("note %s holds the secret", name)
		}
	}
}
