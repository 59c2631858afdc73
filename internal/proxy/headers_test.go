// Headers: what ordinary clients send beside the request line.

package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
)

// duty is an API that wants a vendor's media type and a parameter in Authorization.
const duty = `name: duty
hosts: [{url: "https://duty.example"}]
auth: {style: "header Authorization Token token={secret}"}
headers: {send: {Accept: "application/vnd.duty+json;version=2"}}
whole_lists: true
kinds:
  - name: incidents
    id: [id]
    fields: [{name: id}, {name: note, class: body}]
    lists: [{path: /incidents, key: incidents}]
    instances: [{path: "/incidents/{id}", id: [id], key: incident}]
`

func buildDuty(t *testing.T) (c *product, last *atomic.Pointer[http.Header]) {
	t.Helper()
	last = new(atomic.Pointer[http.Header])
	return buildMadeUp(t, duty, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Clone()
		last.Store(&header)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Header.Get("Authorization") != "Token token=apitoken":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Header.Get("Accept") != "application/vnd.duty+json;version=2":
			w.WriteHeader(http.StatusNotAcceptable)
		default:
			_, _ = w.Write([]byte(`{"incidents":[{"id":"P1","note":"full","extra":"x"}]}`))
		}
	}), map[string]string{"*": "see", "body": "hide"}, nil), last
}

// askDuty asks as its clients do.
func (c *product) askDuty(method, target, secret string, headers ...string) (*http.Response, string) {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), method, c.server.URL+target, nil)
	check(c.T, err)
	r.Header.Set("Authorization", "Token token="+secret)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return c.send(r)
}

// A demanded media type and every way to say that any will do are one form, which is stored.
func TestAnyMediaTypeIsTheDefaultForm(t *testing.T) {
	c, _ := buildDuty(t)
	if answer, body := c.askDuty("GET", "/incidents", demo); !strings.Contains(answer.Header.Get("Cache-Status"), "fwd=uri-miss; stored") {
		t.Fatalf("the first: %d %s %s", answer.StatusCode, answer.Header.Get("Cache-Status"), body)
	}
	for _, accept := range []string{"*/*", "application/json", "application/json, text/plain, */*", "application/vnd.duty+json;version=2"} {
		answer, _ := c.askDuty("GET", "/incidents", demo, "Accept", accept)
		if !strings.HasPrefix(answer.Header.Get("Cache-Status"), "understudy; hit") {
			t.Errorf("Accept: %s: %d %s", accept, answer.StatusCode, answer.Header.Get("Cache-Status"))
		}
	}
	if answer, _ := c.askDuty("GET", "/incidents", "wrong"); answer.Header.Get("Www-Authenticate") != `Token realm="duty"` {
		t.Errorf("the challenge is %s", answer.Header.Get("Www-Authenticate"))
	}
}

// A header that nobody has named goes upstream for callers that see everything. Its answer is not stored and says why.
func TestUnknownHeaderPassesUnstored(t *testing.T) {
	c, last := buildDuty(t)
	c.askDuty("GET", "/incidents", demo)
	answer, body := c.askDuty("GET", "/incidents", demo, "X-Foo", "bar", "X-Client-Version", "1", "Idempotency-Key", "k")
	if status := answer.Header.Get("Cache-Status"); !strings.Contains(status, `detail="not stored: it was asked with the header X-Foo"`) {
		t.Errorf("%d %s, Cache-Status: %s", answer.StatusCode, body, status)
	}
	if sent := *last.Load(); sent.Get("X-Foo") != "bar" || sent.Get("X-Client-Version") != "" {
		t.Errorf("upstream was sent %v", sent)
	}
	for _, name := range []string{"X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override", "Sudo"} {
		if answer, _ := c.askDuty("GET", "/incidents", demo, name, "/incidents/P2"); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", name, answer.StatusCode)
		}
	}
}

// A caller that does not see everything is refused: what an answer in another form shows.
func TestUnknownHeaderIsRefusedToMaskedCallers(t *testing.T) {
	c, _ := buildDuty(t)
	c.journal.take()
	answer, body := c.askDuty("GET", "/incidents", masked, "X-Foo", "bar")
	if answer.StatusCode != http.StatusBadRequest || !strings.Contains(body, "X-Foo") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if asked := c.journal.take(); len(asked) > 0 {
		t.Errorf("upstream was asked %v", asked)
	}
	answer, body = c.askDuty("GET", "/incidents", masked, "X-Client-Version", "1", "Traceparent", "00-1")
	if answer.StatusCode != http.StatusOK || strings.Contains(body, "full") {
		t.Errorf("telemetry: %d %s", answer.StatusCode, body)
	}
}

// A client that follows one would send upstream its credential for this server.
func TestGenericAddressesBeforeAndBehindTheAnswerLeadHere(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	var early []http.Header
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		early = append(early, http.Header(h))
		return nil
	}})
	resp, err := http.DefaultClient.Do(s.request(ctx, "GET", "/links", nil))
	check(t, err)
	_, err = io.ReadAll(resp.Body)
	check(t, err)
	_ = resp.Body.Close()
	if len(early) != 1 {
		t.Fatalf("%d informational answers", len(early))
	}
	for part, h := range map[string]http.Header{"hint": early[0], "answer": resp.Header, "trailer": resp.Trailer} {
		for name, want := range map[string]string{"Link": "</a>; rel=next", "Location": "/a", "Content-Location": "/a"} {
			if got := h.Get(name); got != want {
				t.Errorf("the %s has %s %q, want %q", part, name, got, want)
			}
		}
	}
	if own := resp.Trailer.Get("Understudy-Error"); own != "" {
		t.Errorf("a trailer of upstream is signed as ours: %q", own)
	}
}
