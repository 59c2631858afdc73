// The control paths under /-/: they advance the clock, edit records, set faults and tokens, and return counts.
package slowapi

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// serveControl answers a request for a control path. Such a request needs no credentials. It has no latency and no
// faults, and is not counted.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	if s.twilio != nil && strings.HasPrefix(r.URL.Path, cdnPath) {
		s.twilio.serveCDN(w, r)
		return
	}
	if strings.HasPrefix(r.URL.Path, truthPath+"/") {
		s.serveTruth(w, r)
		return
	}
	controls, method, more := maps.Clone(s.api.Control), http.MethodPost, " and /-/limits"
	controls["/-/faults"], controls["/-/token"] = s.replaceFaults, s.replaceTokens
	controls["/-/stats"] = func([]byte) (any, error) { return s.counts.read(), nil }
	if s.twilio != nil {
		more = " and what /-/cdn/ signed"
	}
	do := controls[r.URL.Path]
	if do == nil {
		all := "there is /-/advance, /-/edit, /-/faults, /-/token, /-/stats, /-/truth/" + more
		writeJSON(w, http.StatusNotFound, map[string]string{"error": all})
		return
	}
	if r.URL.Path == "/-/stats" {
		method = http.MethodGet
	}
	if r.Method != method && (r.Method != http.MethodHead || method != http.MethodGet) {
		w.Header().Set("Allow", method)
		writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"error": r.URL.Path + " takes " + method})
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		writeJSON(w, http.StatusRequestEntityTooLarge, map[string]string{"error": "the body is longer than 1 MiB or could not be read"})
		return
	}
	answer, err := do(raw)
	if err != nil {
		status := http.StatusBadRequest
		if errors.Is(err, world.ErrJournal) {
			status = http.StatusInternalServerError
		}
		writeJSON(w, status, map[string]string{"error": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

// truthPath is the prefix of a read that is answered without delay and without faults.
const truthPath = "/-/truth"

// serveTruth answers a read without delay, without faults and without a limit on concurrent requests.
func (s *Server) serveTruth(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", http.MethodGet)
		writeJSON(w, http.StatusMethodNotAllowed, map[string]string{"error": truthPath + " takes GET"})
		return
	}
	target := *r.URL
	target.Path, target.RawPath = strings.TrimPrefix(target.Path, truthPath), strings.TrimPrefix(target.RawPath, truthPath)
	read := r.WithContext(r.Context())
	read.URL = &target
	if a := s.api.Answer(read, nil, 0, address(read)); a.Status != 0 { // a status of 0 means that the client has closed the connection
		(&reply{w: w, r: read, began: s.now(), s: s}).send(a)
	}
}

// writeJSON sends the answer of a control path as JSON.
func writeJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	_ = out.Encode(answer) // an error means that the client has closed the connection
}

// replaceFaults handles POST /-/faults, which replaces all fault rules.
func (s *Server) replaceFaults(raw []byte) (any, error) {
	rules, err := readRules(raw)
	if err != nil {
		return nil, err
	}
	s.faults.rules.Store(&rules)
	return map[string]int{"rules": len(rules)}, nil
}

// counts has the numbers of requests since the start. Requests for control paths are not counted.
type counts struct {
	mu       sync.Mutex
	requests int64
	byPath   map[string]int64
	byTarget map[string]int64
}

// The limits of what is counted separately. Further paths and targets are counted together as "other".
const (
	maxPaths   = 4096  // maximum number of different paths that are counted
	maxTargets = 16384 // maximum number of different request targets that are counted
	maxTarget  = 2048  // the maximum length in bytes of a path or target that is counted separately
)

// stats is the response to GET /-/stats.
type stats struct {
	Requests int64            `json:"requests"`
	ByPath   map[string]int64 `json:"by_path"`
	ByTarget map[string]int64 `json:"by_target"`
}

// add counts one request.
func (c *counts) add(path, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byPath == nil {
		c.byPath, c.byTarget = map[string]int64{}, map[string]int64{}
	}
	c.requests++
	count(c.byPath, path, maxPaths)
	count(c.byTarget, target, maxTargets)
}

func count(in map[string]int64, name string, limit int) {
	if _, known := in[name]; !known && (len(in) >= limit || len(name) > maxTarget) {
		name = "other"
	}
	in[name]++
}

// read copies the counts.
func (c *counts) read() stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := stats{c.requests, map[string]int64{}, map[string]int64{}}
	maps.Copy(all.ByPath, c.byPath)
	maps.Copy(all.ByTarget, c.byTarget)
	return all
}

// tokens are the valid passwords of the main account. They are nil until the first POST /-/token. Until then only Options.Token
// is valid. Several tokens may be valid at once, as with providers that have a primary and a secondary token for rotation.
type tokens struct{ current atomic.Pointer[[]string] }

const maxTokens = 10

// match reports whether a password is a valid token. It takes the same time for every wrong password.
func (t *tokens) match(password, first string) bool {
	all := []string{first}
	if set := t.current.Load(); set != nil {
		all = *set
	}
	same := 0
	for _, token := range all {
		same |= subtle.ConstantTimeCompare([]byte(password), []byte(token))
	}
	return same == 1
}

// replaceTokens handles POST /-/token {"tokens":["old","new"]}. After that, only these tokens are valid.
func (s *Server) replaceTokens(raw []byte) (any, error) {
	var in struct {
		Tokens []string `json:"tokens"`
	}
	if err := format.DecodeStrict(raw, &in); err != nil {
		return nil, err
	}
	if len(in.Tokens) == 0 || len(in.Tokens) > maxTokens || slices.Contains(in.Tokens, "") {
		return nil, errors.New("tokens must be 1 to 10 words")
	}
	s.tokens.current.Store(&in.Tokens)
	return map[string]int{"tokens": len(in.Tokens)}, nil
}
