// Routes: how the handler for a request is found, and what it receives.

package table

import (
	"context"
	"net/http"
	"net/url"

	"understudy/internal/slowapi/format"
)

// API is an imitated API. Package slowapi serves it over HTTP.
type API struct {
	Routes Routes
	// Answer answers a request, whose body the server has read before. If that failed, unread is the HTTP status to
	// answer with. Otherwise it is 0. baseURL is the URL of the server as the client sees it.
	Answer func(r *http.Request, body []byte, unread int, baseURL string) format.Answer
	// Refuse returns the error answer of the provider for an HTTP status.
	Refuse func(status int) format.Answer
	// Control has the handlers of the paths under /-/, which change the records.
	Control map[string]Control
}

// Control handles the body of a control request, and returns the value to answer with as JSON. The client sees the
// text of its error.
type Control = func(raw []byte) (any, error)

// Request is one request to a route.
type Request struct {
	Ctx      context.Context
	Route    *Route
	Method   string   // the HTTP method; for a HEAD request it is GET
	Path     string   // the escaped path of the request
	Vars     []string // the decoded parts of the path that the stars in the pattern stand for
	Query    url.Values
	RawQuery string     // the query as the client sent it
	Form     url.Values // the form in the body; nil if the API does not use forms
	Header   http.Header
	Body     []byte
	BaseURL  string // the URL of the server as the client sees it, such as http://127.0.0.1:4117
	// Row is the record that the path names, and Parent is the record to which it belongs. They are set only if the
	// handlers of the API need them.
	Row, Parent *Row
}

// Handler answers a request.
type Handler = func(*Request) format.Answer

// Route is a path pattern with its handlers.
type Route struct {
	Pattern  string // a path in which each star stands for one part
	List     bool   // whether GET reads a list, which takes longer than other requests
	Handlers map[string]Handler
}

// Routes are the routes of an API. The first route that matches a path is used.
type Routes []Route

// Find returns the route for a path, and the decoded parts that its stars stand for. The route is nil if none matches.
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

// Request returns a request together with its route. It returns nil if no route matches its path.
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
