// Made up: an API by a spec file alone, with all parts real, over real HTTP.

package proxy_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/proxy"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/mirror"
	"understudy/spec"
	"understudy/upstream"
)

// buildMadeUp is a corridor to an API that a spec describes. The role some sees and finds what is said.
func buildMadeUp(t *testing.T, text string, api http.Handler, sees map[string]string, rows access.RowRules) *product {
	t.Helper()
	c := &product{T: t}
	c.slow = httptest.NewServer(c.journal.over(api))
	t.Cleanup(c.slow.Close)
	sp, err := upstream.ReadSpec("made.yaml", []byte(text))
	check(t, err)
	c.source = &spec.Source{Name: "made", Spec: sp, User: account, Polls: []string{}}
	specs := map[string]*spec.Spec{"made": sp}
	db, err := store.Open(t.Context(), store.Options{Path: storetest.File(t), Specs: specs, Now: c.now})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	client, err := upstream.New(upstream.Options{Source: c.source, Base: c.slow.URL, Secret: understudy.NewSecret("apitoken"), Rate: 1000,
		Now: c.now})
	check(t, err)
	t.Cleanup(func() { check(t, client.Close()) })
	c.mirror, err = mirror.New(mirror.Options{Sources: []mirror.Source{{Source: c.source, Upstream: client}}, Store: db, Now: c.now})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.mirror.Run(ctx) }()
	t.Cleanup(func() { cancel(); check(t, <-ended) })
	newest := func(source, kind, id string) *understudy.Record {
		for _, shape := range sp.Kind(kind).Shapes() {
			if rec, err := db.Record(context.Background(), source, kind, shape, id); err == nil {
				return rec
			}
		}
		return nil
	}
	gate, err := access.NewWith(access.Options{Specs: specs, Roles: access.Roles{"some": {"made": sees}}, NewestVersion: newest, Now: c.now,
		Rows: map[string]map[string]access.RowRules{"some": {"made": rows}}})
	check(t, err)
	allow := []understudy.Allow{{Method: "POST", Path: "/**"}}
	book, err := callers.New(callers.Options{Sources: []*spec.Source{c.source}, Credentials: []callers.Credential{
		{Name: "demo", Source: "made", Secret: understudy.NewSecret(demo), Grant: understudy.Grant{Role: "all", Allow: allow}},
		{Name: "masked", Source: "made", Secret: understudy.NewSecret(masked), Grant: understudy.Grant{Role: "some", Allow: allow}},
	}})
	check(t, err)
	c.proxy, err = proxy.New(proxy.Options{Source: c.source, Mirror: c.mirror, Gate: gate, Callers: book, Now: c.now})
	check(t, err)
	c.server = httptest.NewServer(c.proxy)
	c.source.PublicURL = c.server.URL
	t.Cleanup(c.server.Close)
	return c
}

const drops = `name: drops
hosts: [{url: "https://drops.example"}]
auth: {style: bearer, callers: [bearer, basic]}
whole_lists: true
paging: {envelope: [{name: ok, type: bool}]}
kinds:
  - name: drops
    id: [id]
    fields: [{name: id, type: int}, {name: name}, {name: ip, class: phone}, {name: url, absolute: true}]
    lists: [{path: /v2/drops, key: data.drops}]
    instances:
      - {path: "/v2/drops/{id}", id: [id], key: data.drop, answer: '{"ok":true,"data":{"drop":{record}},"self":{uri}}'}
      - {path: "/v1/drops/{id}", id: [id], key: drop}
`

// dropsAPI answers with drops 1 and 2, one record in an envelope, until it is down.
func dropsAPI(down *atomic.Bool) http.Handler {
	one := func(id string) string {
		return `{"id":` + id + `,"name":"drop ` + id + `", "ip":"+14155550100","url":"https://drops.example/v2/drops/` + id + `"}`
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		version, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v"), "/drops")
		id = strings.TrimPrefix(id, "/")
		body := `{"drop":` + one(id) + `}`
		switch {
		case down.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.Method == "POST":
			body = `{"ok":true,"data":{"drop":` + one("3") + `},"self":"/v2/drops/3"}`
		case id == "":
			body = `{"data":{"drops":[` + one("1") + `,` + one("2") + `]}}`
		case id == "7":
			body = `{"ok":true,"data":{"drip":` + one(id) + `}}`
		case version == "2":
			body = `{"ok":true,"data":{"drop":` + one(id) + `},"self":"/v2/drops/` + id + `"}`
		}
		_, _ = w.Write([]byte(body))
	})
}

// A record that its API puts in an envelope is stored, and answered in the same envelope from the
// row of a list, also in an outage.
func TestRecordInEnvelopeIsAnsweredFromItsListRow(t *testing.T) {
	var down atomic.Bool
	c := buildMadeUp(t, drops, dropsAPI(&down), map[string]string{"*": "see", "phone": "last4"}, nil)
	c.get("/v2/drops", demo)
	_, want := c.ask(c.slow, "GET", "/v2/drops/2", demo, "")
	want = strings.ReplaceAll(want, "https://drops.example", c.server.URL)
	_, bare := c.ask(c.slow, "GET", "/v1/drops/2", demo, "")
	bare = strings.ReplaceAll(bare, "https://drops.example", c.server.URL)
	c.journal.take()
	for target, want := range map[string]string{"/v2/drops/2": want, "/v1/drops/2": bare} {
		answer, got := c.get(target, demo)
		if got != want {
			t.Errorf("%s from the row:\n%s, want\n%s", target, got, want)
		}
		if status := answer.Header.Get("Cache-Status"); !strings.Contains(status, "composed") {
			t.Errorf("%s: Cache-Status is %s", target, status)
		}
	}
	if asked := c.journal.take(); len(asked) != 0 {
		t.Errorf("upstream was asked %v", asked)
	}
	answer, got := c.get("/v2/drops/9", demo)
	if status := answer.Header.Get("Cache-Status"); !strings.Contains(status, "stored") {
		t.Errorf("a record that no list has shown: Cache-Status is %s", status)
	}
	if !strings.HasPrefix(got, `{"ok":true,"data":{"drop":{"id":9,`) || !strings.Contains(got, `"url":"`+c.server.URL+`/v2/drops/9"`) {
		t.Errorf("a record that no list has shown is %s", got)
	}
	down.Store(true)
	c.later(time.Hour)
	for _, target := range []string{"/v2/drops/1", "/v2/drops/9"} {
		answer, got := c.get(target, demo)
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s in an outage: %d", target, answer.StatusCode)
		}
		if !strings.HasPrefix(got, `{"ok":true,"data":{"drop":{"id":`) {
			t.Errorf("%s in an outage: %s", target, got)
		}
	}
}

// A role sees of a record in an envelope what it sees of one without, and of the envelope what the
// paging's envelope names.
func TestRecordInEnvelopeIsMasked(t *testing.T) {
	var down atomic.Bool
	c := buildMadeUp(t, drops, dropsAPI(&down), map[string]string{"*": "see", "phone": "last4"}, nil)
	for _, how := range []string{"from upstream", "held"} {
		_, got := c.get("/v2/drops/2", masked)
		want := `{"ok":true,"data":{"drop":{"id":2,"name":"drop 2", "ip":"********0100","url":"` + c.server.URL + `/v2/drops/2"}},"self":null}`
		if got != want {
			t.Errorf("%s:\n%s, want\n%s", how, got, want)
		}
	}
	if _, got := c.get("/v2/drops/7", masked); strings.Contains(got, "drop 7") {
		t.Errorf("a body without the key shows %s", got)
	}
	want := `{"ok":true,"data":{"drop":{"id":3,"name":"drop 3", "ip":"********0100","url":"` + c.server.URL + `/v2/drops/3"}},"self":null}`
	if answer, got := c.ask(c.server, "POST", "/v2/drops", masked, "name=x"); got != want {
		t.Errorf("a write's answer: %d %s, want\n%s", answer.StatusCode, got, want)
	}
}

// Row rules look at the record inside its envelope.
func TestRowRulesFindARecordInItsEnvelope(t *testing.T) {
	var down atomic.Bool
	c := buildMadeUp(t, drops, dropsAPI(&down), map[string]string{"*": "see"},
		access.RowRules{"drops": {Where: map[string]access.Match{"name": {In: []string{"drop 2"}}}}})
	for target, want := range map[string]int{
		"/v2/drops/2": 200, "/v2/drops/1": 404, "/v1/drops/2": 200, "/v1/drops/1": 404, "/v2/drops/7": 404,
	} {
		if answer, got := c.get(target, masked); answer.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", target, answer.StatusCode, got, want)
		}
	}
}

// What a spec says of an envelope has to make the body that it names the record in.
func TestEnvelopeOfARecordIsChecked(t *testing.T) {
	for answer, want := range map[string]string{
		`{"ok":true}`:                          "write {record} exactly once",
		`{"data":{"drop":{record}}`:            "it is not JSON after filling",
		`{"data":{record}}`:                    `write {record} at the key "data.drop"`,
		`{"a":{record},"data":{"drop":{}}}`:    `write {record} at the key "data.drop"`,
		`{"data":{"drop":{record}},"a":{rec}}`: "it is not JSON after filling",
	} {
		text := strings.Replace(drops, `{"ok":true,"data":{"drop":{record}},"self":{uri}}`, answer, 1)
		if _, err := upstream.ReadSpec("made.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", answer, err, want)
		}
	}
}
