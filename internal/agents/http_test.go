// Tests of the endpoint: who comes in, and what is refused before any tool.

package agents

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"understudy"
	"understudy/internal/checktest"
	"understudy/kit/jsonhttp"
)

func toolCall(name string) *mcp.CallToolParams { return &mcp.CallToolParams{Name: name} }

// listTools is a request of the protocol.
const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`

func TestEndpoint(t *testing.T) {
	r := newRig(t, nil)
	for _, one := range []struct {
		name, method, body string
		headers            map[string]string
		host               string
		want               int
	}{
		{"a credential", "POST", listTools, map[string]string{"Authorization": basic("all")}, "", 200},
		{"a credential as a token", "POST", listTools, map[string]string{"Authorization": "Bearer ACall:" + secretOf("all")}, "", 200},
		{"no credential", "POST", listTools, nil, "", 401},
		{"a wrong secret", "POST", listTools, map[string]string{"Authorization": "Bearer ACall:wrong"}, "", 401},
		{"a token of nobody", "POST", listTools, map[string]string{"Authorization": "Bearer wrong"}, "", 401},
		{"this request comes from another site", "POST", listTools,
			map[string]string{"Authorization": basic("all"), "Origin": "https://evil.example"}, "", 403},
		{"a name that was pointed here", "POST", listTools, map[string]string{"Authorization": basic("all")}, "evil.example", 403},
		{"a stream", "GET", "", map[string]string{"Authorization": basic("all")}, "", 405},
		{"the end of a session", "DELETE", "", map[string]string{"Authorization": basic("all")}, "", 405},
		{"a form", "POST", "a=b", map[string]string{"Authorization": basic("all"), "Content-Type": "text/plain"}, "", 415},
		{"no JSON", "POST", "{", map[string]string{"Authorization": basic("all")}, "", 400},
		{"too much", "POST", `{"x":"` + strings.Repeat("x", 300<<10) + `"}`, map[string]string{"Authorization": basic("all")}, "", 413},
		{"a revision of the protocol that is not", "POST", listTools,
			map[string]string{"Authorization": basic("all"), "MCP-Protocol-Version": "1999-01-01"}, "", 400},
	} {
		t.Run(one.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), one.method, r.url, strings.NewReader(one.body))
			must(t, err)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			for name, value := range one.headers {
				req.Header.Set(name, value)
			}
			req.Host = one.host
			res, err := http.DefaultClient.Do(req)
			must(t, err)
			defer res.Body.Close()
			if res.StatusCode != one.want || res.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("status %d, want %d: %v", res.StatusCode, one.want, res.Header)
			}
			if res.StatusCode == 401 && res.Header.Get("WWW-Authenticate") == "" {
				t.Error("401 without a challenge")
			}
			if res.StatusCode == 200 {
				var out struct{ Result mcp.ListToolsResult }
				if err := json.NewDecoder(res.Body).Decode(&out); err != nil || len(out.Result.Tools) < 5 {
					t.Errorf("%d tools: %v", len(out.Result.Tools), err)
				}
			}
		})
	}
}

// A refusal says in the header, too, what was wrong and what to do.
func TestRefusalsSayWhy(t *testing.T) {
	r := newRig(t, nil)
	long := strings.Repeat(" ", 300<<10)
	for _, one := range []struct {
		body   io.Reader
		header string
		value  string
		status int
		want   string
	}{
		{strings.NewReader("{"), "", "", 400, "malformed payload: unmarshaling jsonrpc message: unexpected EOF; send one JSON-RPC 2.0 message"},
		{strings.NewReader(listTools), "Accept", "text/html", 400, "Accept must contain both 'application/json' and 'text/event-stream'"},
		{strings.NewReader(listTools), "Content-Type", "text/html", 415, "Content-Type must be 'application/json'"},
		{strings.NewReader(long), "", "", 413, "the request is larger than 262144 bytes; send a smaller one"},
		{io.MultiReader(strings.NewReader("{" + long)), "", "", 413, "request body exceeds 262144 bytes; send a smaller one"},
		{strings.NewReader("[]"), "", "", 400, "batches are not supported; send each request alone"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", r.url, one.body)
		must(t, err)
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Authorization": {basic("all")}}
		if one.header != "" {
			req.Header.Set(one.header, one.value)
		}
		res, err := http.DefaultClient.Do(req)
		must(t, err)
		body, err := io.ReadAll(res.Body)
		must(t, err)
		_ = res.Body.Close()
		got := res.Header.Get(jsonhttp.ErrorHeader)
		checktest.Equal(t, res.StatusCode, one.status, "%d, %q: res.StatusCode; body %s", res.StatusCode, got, body)
		checktest.Equal(t, got, one.want, "%d, %q: got; body %s", res.StatusCode, got, body)
		checktest.Contains(t, string(body), got, "%d, %q: string(body)", res.StatusCode, got)
	}
}

// Older revisions of the protocol take an array of requests as a body. Its answers together
// would have no bound, so it is refused in every revision, whatever stands before it.
func TestArrayOfRequestsIsRefused(t *testing.T) {
	r := newRig(t, nil)
	for _, revision := range []string{"", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		for _, start := range []string{"", " \n\t", strings.Repeat("\r\n ", 3000)} {
			calls := strings.TrimSuffix(strings.Repeat(listTools+",", 1500), ",")
			req, err := http.NewRequestWithContext(t.Context(), "POST", r.url, strings.NewReader(start+"["+calls+"]"))
			must(t, err)
			req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
				"Authorization": {basic("all")}}
			if revision != "" {
				req.Header.Set("MCP-Protocol-Version", revision)
			}
			res, err := http.DefaultClient.Do(req)
			must(t, err)
			body, err := io.ReadAll(res.Body)
			must(t, err)
			must(t, res.Body.Close())
			if res.StatusCode != 400 {
				t.Errorf("revision %q after %d bytes: status %d, want 400", revision, len(start), res.StatusCode)
			}
			if !strings.Contains(string(body), "send each request alone") {
				t.Errorf("revision %q after %d bytes: %.200s", revision, len(start), body)
			}
		}
	}
}

// Behind a server with a name of its own, that name is right.
func TestEndpointBehindAProxy(t *testing.T) {
	r := newRig(t, func(o *Options) { o.PublicURL = "https://viewer.example" })
	req, err := http.NewRequestWithContext(t.Context(), "POST", r.url, strings.NewReader(listTools))
	must(t, err)
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Authorization": {basic("all")}, "Origin": {"https://viewer.example"}}
	req.Host = "viewer.example"
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Errorf("status %d", res.StatusCode)
	}
}

// One caller has half of the places, and who gets none is told when to come again.
func TestCrowd(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Limits.Concurrent = 2 })
	s, err := New(r.o)
	must(t, err)
	leave, err := s.running.Take("all")
	must(t, err)
	defer leave()
	w := &recorder{header: http.Header{}}
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1"+Path, strings.NewReader(listTools))
	must(t, err)
	req.Header.Set("Authorization", basic("all"))
	s.ServeHTTP(w, req)
	if w.status != 503 || w.header.Get("Retry-After") == "" {
		t.Errorf("status %d: %v", w.status, w.header)
	}
}

type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return len(b), nil }

// A server without what it needs is not made.
func TestOptions(t *testing.T) {
	r := newRig(t, nil)
	for name, change := range map[string]func(*Options){
		"sources": func(o *Options) { o.Sources = nil }, "gate": func(o *Options) { o.Gate = nil },
		"callers": func(o *Options) { o.Callers = nil }, "mirror": func(o *Options) { o.Mirror = nil },
		"key": func(o *Options) { o.Key = nil }, "public URL": func(o *Options) { o.PublicURL = "::" },
	} {
		o := r.o
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("a server without %s", name)
		}
	}
}

// FuzzArguments: whatever arguments and cursors say, they are read or refused.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"kind":"calls","limit":5}`, `{"cursor":"x"}`, `{"within":{"A":"b"}}`, `[]`, `{"kind":1}`, ``, `{}{}`,
		`null`} {
		f.Add([]byte(seed))
	}
	s := &Server{o: Options{Key: make([]byte, 32), Limits: Limits{Rows: 100, Bytes: 1 << 10}}}
	v := &exchange{srv: s, caller: understudy.Caller{Grant: &understudy.Grant{Role: "all"}}}
	f.Fuzz(func(t *testing.T, arguments []byte) {
		var list listArgs
		var find searchArgs
		if read(arguments, &list) == nil {
			if _, err := v.unseal("twilio", list.Cursor); err == nil {
				t.Errorf("a cursor that was never given: %q", list.Cursor)
			}
			_, _ = v.limit(list.Limit)
		}
		_ = read(arguments, &find)
	})
}
