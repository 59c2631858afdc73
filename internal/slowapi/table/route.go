// Routes: which handler a request is for, and what the handler is told.

package table

import (
	"context"
	"net/http"
	"net/url"

	"understudy/internal/slowapi/format"
)

// API is what a server needs of an API.
type API struct {
	Routes Routes
	// Answer answers a request that came to the address here. Its body was read, unless
	// unread is the status of the error that it could not be.
	Answer func(r *http.Request, body []byte, unread int, here string) format.Answer
	// Refuse is the error the provider gives with a status.
	Refuse func(status int) format.Answer
	// Control changes the world from outside, by the paths under /-/.
	Control map[string]Control
}

// Control makes what the body of a request says true. Errors: a sentence for whoever sent it.
type Control = func(raw []byte) (any, error)

// Request is one request to a route.
type Request struct {
	Ctx    context.Context
	Route  *Route
	Method string   // GET for HEAD too
	Path   string   // as it came
	Vars   []string // what stands for the stars of the pattern, decoded
	Query  url.Values
	Raw    string     // the query as it came
	Form   url.Values // for APIs that read one
	Header http.Header
	Body   []byte
	Here   string // the address it came to, as http://127.0.0.1:4117
	// Row is the record that the path names and Of what that belongs to, for APIs
	// whose routes name both.
	Row, Of *Row
}

// Handler answers a request.
type Handler = func(*Request) format.Answer

// Route is one path, a star for each part that may be anything, and what answers
// it by method.
type Route struct {
	Pattern string
	List    bool // as slow as lists are
	Do      map[string]Handler
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

// Request reads a request that came to the address here. It returns nil when the path is
// no route's.
func (all Routes) Request(r *http.Request, body []byte, here string) *Request {
	q := &Request{Ctx: r.Context(), Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.Query(), Raw: r.URL.RawQuery,
		Header: r.Header, Body: body, Here: here}
	if q.Route, q.Vars = all.Find(q.Path); q.Route == nil {
		return nil
	}
	if q.Method == http.MethodHead {
		q.Method = http.MethodGet
	}
	return q
}

// IsList tells whether a request asks for a list.
func (all Routes) IsList(r *http.Request) bool {
	at, _ := all.Find(r.URL.EscapedPath())
	return at != nil && at.List && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}
