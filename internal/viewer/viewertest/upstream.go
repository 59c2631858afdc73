// Upstream: the simulated API over HTTP.

package viewertest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"understudy/internal/slowapi"
)

// Upstream is the simulated API behind an HTTP server. It notes the writes.
type Upstream struct {
	API    http.Handler
	server *httptest.Server
	close  func() // closes the API, once

	mu     sync.Mutex
	writes []string
	answer WriteFunc
}

// WriteFunc answers a write in upstream's place; it may call next, which is the simulated API.
type WriteFunc func(w http.ResponseWriter, r *http.Request, next http.Handler)

// startUpstream starts the simulated API.
func startUpstream(t testing.TB, o slowapi.Options) *Upstream {
	t.Helper()
	api, err := slowapi.New(o)
	Must(t, err)
	u := &Upstream{API: api, close: sync.OnceFunc(func() { Must(t, api.Close()) })}
	u.server = httptest.NewServer(u)
	return u
}

// Close ends the server and the API. It may be called twice.
func (u *Upstream) Close() {
	u.server.Close()
	u.close()
}

// ServeHTTP answers as the simulated API, or as Answer said.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		u.API.ServeHTTP(w, r)
		return
	}
	u.mu.Lock()
	u.writes = append(u.writes, r.Method+" "+strings.TrimPrefix(r.URL.Path, Root))
	answer := u.answer
	u.mu.Unlock()
	if answer != nil {
		answer(w, r, u.API)
		return
	}
	u.API.ServeHTTP(w, r)
}

// Answer sets what answers writes from now on.
func (u *Upstream) Answer(answer WriteFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer = answer
}

// Writes returns the method and path of each write that upstream received.
func (u *Upstream) Writes() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]string{}, u.writes...)
}

// Ask asks the simulated API for a path below Root.
func (u *Upstream) Ask(t testing.TB, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Root+path, nil)
	r.SetBasicAuth(Account, "slowapitoken")
	u.API.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Body)
	Must(t, err)
	return w.Code, string(body)
}

// First returns the first record of upstream's list for which pick returns true. If pick is nil, it returns the first record.
func (u *Upstream) First(t testing.TB, list, key string, pick func(map[string]any) bool) map[string]any {
	t.Helper()
	_, body := u.Ask(t, list+"?PageSize=1000")
	var all map[string]json.RawMessage
	Must(t, json.Unmarshal([]byte(body), &all))
	var found []map[string]any
	Must(t, json.Unmarshal(all[key], &found))
	for _, one := range found {
		if pick == nil || pick(one) {
			return one
		}
	}
	t.Fatalf("%s: none of %d", list, len(found))
	return nil
}
