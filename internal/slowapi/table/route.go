// Routes: how the handler of a request is found, and what the handler receives.

package table

import (
	"context"
	"net/http"
	"net/url"

	"understudy/internal/slowapi/format"
)

// API is one imitated API. Package slowapi serves it.
type API struct {
	Routes Routes
	// Answer answers a request. The server has read its body. If reading failed, unread is the
	// HTTP status to answer with; otherwise it is 0. baseURL is the server's URL as the client sees it.
	Answer func(r *http.Request, body []byte, unread int, baseURL string) format.Answer
	// Refuse returns the error answer of the provider for an HTTP status.
	Refuse func(status int) format.Answer
	// Control has the handlers of the paths under /-/, which change the records.
	Control map[string]Control
}

// Control handles the body of a control request and returns the JSON answer. The text of its error
// is shown to the client.
type Control = func(raw []byte) (any, error)

// Request is one request to a route.
type Request struct {
	Ctx      context.Context
	Route    *Route
	Method   string   // the HTTP method, but GET for a HEAD request
	Path     string   // the escaped path of the request
	Vars     []string // the decoded parts of the path that match the stars of the pattern
	Query    url.Values
	RawQuery string     // the query as the client sent it
	Form     url.Values // the form in the body, set only by APIs that use forms
	Header   http.Header
	Body     []byte
	BaseURL  string // the server's URL as the client sees it, such as http://127.0.0.1:4117
	// Row is the record that the path names and Parent the record that it belongs to.
	// They are set only by APIs whose handlers need them.
	Row, Parent *Row
}

// Handler answers a request.
type Handler = func(*Request) format.Answer

// Route is a path pattern with its handlers.
type Route struct {
	Pattern  string // a path in which each star matches one part
	List     bool   // GET reads a list, which takes longer than other requests
	Handlers map[string]Handler
}

// Routes are the routes of an API. The first that matches a path is used.
type Routes []Route

// Find returns the route of a path and the decoded parts that match its stars. The route is nil if none matches.
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

// Request returns a request with its route. It returns nil if no route matches the path.
func (all Routes) Request(r *http.Request, body []byte, baseURL string) *Request {
	q := &Request{Ctx: r.Context(), Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.Query(), RawQuery: r.URL.RawQuery,
		Header: r.Header, Body: body, BaseURL: baseURL}
	if q.Route, q.Vars = all.Find(q.Path); q.Route == nil {
		return nil
	}
	if q.Method == http.MethodHead {
		q.Method = http.MethodGet
	}
	return q
}

// IsList reports whether a request reads a list.
func (all Routes) IsList(r *http.Request) bool {
	at, _ := all.Find(r.URL.EscapedPath())
	return at != nil && at.List && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}
