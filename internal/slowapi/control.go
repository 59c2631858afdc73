// The paths under /-/: moving the world, breaking it, counting, new tokens.
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

// control answers a request under /-/. These paths take no credentials and are
// neither slow, nor counted, nor ever at fault.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	if s.twilio != nil && strings.HasPrefix(r.URL.Path, cdnPath) {
		s.twilio.serveCDN(w, r)
		return
	}
	if strings.HasPrefix(r.URL.Path, truthPath+"/") {
		s.serveTruth(w, r)
		return
	}
	at, method, more := maps.Clone(s.api.Control), http.MethodPost, " and /-/limits"
	at["/-/faults"], at["/-/token"] = s.replaceFaults, s.replaceTokens
	at["/-/stats"] = func([]byte) (any, error) { return s.counts.read(), nil }
	if s.twilio != nil {
		more = " and what /-/cdn/ signed"
	}
	do := at[r.URL.Path]
	if do == nil {
		tell(w, http.StatusNotFound, map[string]string{"error": "there is /-/advance, /-/edit, /-/faults, /-/token, /-/stats, /-/truth/" + more})
		return
	}
	if r.URL.Path == "/-/stats" {
		method = http.MethodGet
	}
	if r.Method != method && (r.Method != http.MethodHead || method != http.MethodGet) {
		w.Header().Set("Allow", method)
		tell(w, http.StatusMethodNotAllowed, map[string]string{"error": r.URL.Path + " takes " + method})
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		tell(w, http.StatusRequestEntityTooLarge, map[string]string{"error": "the body is longer than 1 MiB or could not be read"})
		return
	}
	answer, err := do(raw)
	if err != nil {
		tell(w, statusOf(err), map[string]string{"error": err.Error()})
		return
	}
	tell(w, http.StatusOK, answer)
}

// truthPath stands before the target of a read that is answered at once and without fault.
const truthPath = "/-/truth"

// serveTruth answers a read as the API does when nothing is wrong with it.
func (s *Server) serveTruth(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", http.MethodGet)
		tell(w, http.StatusMethodNotAllowed, map[string]string{"error": truthPath + " takes GET"})
		return
	}
	target := *r.URL
	target.Path, target.RawPath = strings.TrimPrefix(target.Path, truthPath), strings.TrimPrefix(target.RawPath, truthPath)
	read := r.WithContext(r.Context())
	read.URL = &target
	if a := s.api.Answer(read, nil, 0, address(read)); a.Status != 0 { // else the client left
		(&reply{w: w, r: read, began: s.now(), s: s}).send(a)
	}
}

func statusOf(err error) int {
	if errors.Is(err, world.ErrUnkept) {
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// tell writes an answer of ours.
func tell(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	_ = out.Encode(answer) // an error means that the client left
}

// replaceFaults puts new rules in place of all others.
func (s *Server) replaceFaults(raw []byte) (any, error) {
	rules, err := readRules(raw)
	if err != nil {
		return nil, err
	}
	s.faults.now.Store(&rules)
	return map[string]int{"rules": len(rules)}, nil
}

// counts are kept since the start, of every request but those under /-/.
type counts struct {
	mu       sync.Mutex
	requests int64
	byPath   map[string]int64
	byTarget map[string]int64
}

// Bounds of what is kept apart; the rest is counted together as "other".
const (
	maxPaths   = 4096
	maxTargets = 16384
	maxTarget  = 2048 // bytes
)

// stats is what GET /-/stats answers.
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

func count(in map[string]int64, name string, most int) {
	if _, known := in[name]; !known && (len(in) >= most || len(name) > maxTarget) {
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

// tokens are the passwords the main account may be asked with; nil: the one
// the world was made with. A rotation first takes the new one beside the old,
// as providers with a primary and a secondary token do.
type tokens struct{ now atomic.Pointer[[]string] }

const maxTokens = 10

// know tells whether a password is one of them.
func (t *tokens) know(password, first string) bool {
	all := []string{first}
	if set := t.now.Load(); set != nil {
		all = *set
	}
	same := 0
	for _, token := range all {
		same |= subtle.ConstantTimeCompare([]byte(password), []byte(token))
	}
	return same == 1
}

// replaceTokens is POST /-/token {"tokens":["old","new"]}.
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
	s.tokens.now.Store(&in.Tokens)
	return map[string]int{"tokens": len(in.Tokens)}, nil
}
