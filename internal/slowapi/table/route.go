// Routes: which handler a request is for, and what the handler is told.

package table

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"understudy/internal/slowapi/format"
)

// Request is one request to a route.
type Request struct {
	Method string
	Path   string   // as it came
	Vars   []string // what stands for the stars of the pattern, decoded
	Query  url.Values
	Header http.Header
	Body   []byte
	Here   string // the address it came to, as http://127.0.0.1:4117
}

// Route is one path, a star for each part that may be anything, and what answers
// it by method.
type Route struct {
	Pattern string
	List    bool // as slow as lists are
	Do      map[string]func(*Request) format.Answer
}

// Routes are those of an API; the first that matches counts.
type Routes []Route

// Find is the route of a path and what stands for its stars; nil for none.
func (all Routes) Find(path string) (*Route, []string) {
	for i := range all {
		if vars, ok := format.Match(all[i].Pattern, path); ok {
			for n := range vars {
				if plain, err := url.PathUnescape(vars[n]); err == nil {
					vars[n] = plain
				}
			}
			return &all[i], vars
		}
	}
	return nil, nil
}

// IsList tells whether a request asks for a list.
func (all Routes) IsList(r *http.Request) bool {
	at, _ := all.Find(r.URL.EscapedPath())
	return at != nil && at.List && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// Allow is what may be done at a route, as an Allow header has it.
func (r *Route) Allow() string {
	var names []string
	for name := range r.Do {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
