// The paths under /-/: moving the world, breaking it, counting.
package slowapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// control answers a request under /-/. These paths take no credentials and are
// neither slow, nor counted, nor ever at fault.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, cdnPath) {
		s.serveCDN(w, r)
		return
	}
	type does func([]byte) (any, error)
	at := map[string]struct {
		method string
		do     does
	}{
		"/-/advance": {http.MethodPost, s.advance},
		"/-/edit":    {http.MethodPost, s.editRecords},
		"/-/faults":  {http.MethodPost, s.replaceFaults},
		"/-/token":   {http.MethodPost, s.replaceTokens},
		"/-/stats":   {http.MethodGet, func([]byte) (any, error) { return s.counts.read(), nil }},
	}
	way, known := at[r.URL.Path]
	if !known {
		tell(w, http.StatusNotFound, map[string]string{"error": "there is /-/advance, /-/edit, /-/faults, /-/token, /-/stats and what /-/cdn/ signed"})
		return
	}
	if r.Method != way.method && (r.Method != http.MethodHead || way.method != http.MethodGet) {
		w.Header().Set("Allow", way.method)
		tell(w, http.StatusMethodNotAllowed, map[string]string{"error": r.URL.Path + " takes " + way.method})
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		tell(w, http.StatusRequestEntityTooLarge, map[string]string{"error": "the body is longer than 1 MiB or could not be read"})
		return
	}
	answer, err := way.do(raw)
	if err != nil {
		tell(w, statusOf(err), map[string]string{"error": err.Error()})
		return
	}
	tell(w, http.StatusOK, answer)
}

// errUnkept means that the journal could not be written.
var errUnkept = errors.New("slowapi: the journal could not be written")

func statusOf(err error) int {
	if errors.Is(err, errUnkept) {
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

// Bounds of one advance.
const (
	maxAdvance = 100_000
	maxSeconds = 10 * 366 * 86400
)

// advanced is the answer to an advance.
type advanced struct {
	Clock   time.Time      `json:"clock"`
	Moved   int            `json:"moved"`
	Created map[string]int `json:"created"`
}

// advance moves the clock, then each unfinished record by one state, then
// creates records.
func (s *Server) advance(raw []byte) (any, error) {
	var in struct {
		Calls       int   `json:"calls"`
		Messages    int   `json:"messages"`
		Conferences int   `json:"conferences"`
		Alerts      int   `json:"alerts"`
		Seconds     int64 `json:"seconds"`
	}
	if err := strict(raw, &in); err != nil {
		return nil, err
	}
	if in.Seconds < 0 || in.Seconds > maxSeconds {
		return nil, fmt.Errorf("seconds must be 0 to %d; the clock never goes back", maxSeconds)
	}
	created := map[string]int{"calls": in.Calls, "messages": in.Messages, "conferences": in.Conferences, "alerts": in.Alerts}
	for name, n := range created {
		switch {
		case n < 0 || n > maxAdvance:
			return nil, fmt.Errorf("%s must be 0 to %d", name, maxAdvance)
		case n > 0 && (kindNamed(name) == nil || !kindNamed(name).arrives):
			return nil, fmt.Errorf("%s are not part of this world; only 0 is possible", name)
		case n == 0:
			delete(created, name)
		}
	}
	w := s.world
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.RLock()
	at := w.now().Add(time.Duration(in.Seconds) * time.Second)
	w.mu.RUnlock()
	moved, err := s.commit(entry{Op: "advance", At: at, New: created})
	if err != nil {
		return nil, err
	}
	s.wake()
	return advanced{Clock: at, Moved: moved, Created: created}, nil
}
