// Package jsonapi serves the JSON requests under /-/. It refuses requests from other sites,
// identifies the caller, reads the request body, and writes the response or the error.
package jsonapi

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/kit/accesslog"
	"understudy/kit/jsonhttp"
)

// Options are the rules for the requests of one handler: who may send them and what they may contain.
type Options struct {
	// Identify returns the caller of a request, or an error if the caller is not admitted.
	Identify func(r *http.Request) (understudy.Caller, error)
	// Forms detects requests that pages of other sites send to change something. Admit refuses them with
	// ForeignError. If Forms is nil, no request is refused.
	Forms        *http.CrossOriginProtection
	ForeignError string
	Vary         string        // the value of the Vary header; if empty, Admit sets no headers for private responses
	Methods      []string      // the permitted methods; nil if the mux has checked the method
	RequestNoun  string        // the name of the request in the errors of CheckGet; if empty, CheckGet is not called
	Timeout      time.Duration // the time limit of one request; 0 means no limit
	MaxBody      int64         // the maximum length of a request body for HandleBody, in bytes
	BodyError    string        // the beginning of the error for a request body that can't be read
	RequireJSON  bool          // whether the body must be application/json, which a form of another site can't send without a CORS preflight
	// Explain may change the response to an error. Refuse fills a from OwnPathStatus and PlainText before. Explain
	// may be nil.
	Explain func(r *http.Request, err error, a *Refusal)
}

// Refusal is the response to an error. For a wrong search query it has the position of the error.
type Refusal struct {
	Status     int    `json:"-"`
	RetryAfter string `json:"-"` // the value of the Retry-After header in seconds; if empty, the header is not set
	Error      string `json:"error"`
	At         *int   `json:"at,omitempty"`  // the byte offset in the query at which the error begins
	End        *int   `json:"end,omitempty"` // the byte offset in the query at which the error ends
	Character  *int   `json:"character,omitempty"`
}

// Response is the result of a handler whose status is not 200.
type Response struct {
	Status int
	Value  any
}

// Handle returns a handler that admits the caller, calls do and writes the result of do as JSON.
// If the result is nil, the handler responds with 204.
func Handle(o *Options, do func(ctx context.Context, c understudy.Caller, r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.serve(w, r, func(ctx context.Context, c understudy.Caller) (any, error) { return do(ctx, c, r) })
	})
}

// HandleBody does what Handle does, and also decodes the request body, a JSON value of at most MaxBody bytes. For a
// GET it reads no body, and in is the zero value.
func HandleBody[In any](
	o *Options, do func(ctx context.Context, c understudy.Caller, r *http.Request, in *In) (any, error),
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.serve(w, r, func(ctx context.Context, c understudy.Caller) (any, error) {
			var in In
			if r.Method != http.MethodGet {
				if err := o.readBody(w, r, &in); err != nil {
					return nil, err
				}
			}
			return do(ctx, c, r, &in)
		})
	})
}

// serve admits the caller, calls do within Timeout, and writes the result or the error of do.
func (o *Options) serve(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, c understudy.Caller) (any, error)) {
	c, err := o.Admit(w, r)
	if err != nil {
		o.Refuse(w, r, err)
		return
	}
	ctx := r.Context()
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	v, err := do(ctx, c)
	if err != nil {
		o.Refuse(w, r, err)
		return
	}
	switch a := v.(type) {
	case nil:
		w.WriteHeader(http.StatusNoContent)
	case Response:
		jsonhttp.Write(w, a.Status, a.Value)
	default:
		jsonhttp.Write(w, http.StatusOK, v)
	}
}

// Admit checks a request against the options and returns its caller. It also sets the headers of private responses.
func (o *Options) Admit(w http.ResponseWriter, r *http.Request) (understudy.Caller, error) {
	if o.Forms != nil && o.Forms.Check(r) != nil {
		return understudy.Caller{}, fmt.Errorf("%w: %s", understudy.ErrForbidden, o.ForeignError)
	}
	if head := w.Header(); o.Vary != "" {
		head.Set("Cache-Control", "private, no-store")
		head.Set("Vary", o.Vary)
		head.Set("X-Content-Type-Options", "nosniff")
	}
	if o.RequestNoun != "" {
		if err := CheckGet(w, r, o.RequestNoun); err != nil {
			return understudy.Caller{}, err
		}
	}
	c, err := o.Identify(r)
	if err == nil && o.Methods != nil && !slices.Contains(o.Methods, r.Method) {
		w.Header().Set("Allow", strings.Join(o.Methods, ", "))
		err = fmt.Errorf("%w: %s takes %s", understudy.ErrMethod, r.URL.Path, strings.Join(o.Methods, " and "))
	}
	return c, err
}

// readBody decodes the request body into in. Its errors wrap ErrInvalid.
func (o *Options) readBody(w http.ResponseWriter, r *http.Request, in any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); o.RequireJSON && (err != nil || kind != "application/json") {
		return fmt.Errorf("%w: the body must be application/json", understudy.ErrInvalid)
	}
	if err := jsonhttp.Read(w, r, o.MaxBody, in); err != nil {
		return fmt.Errorf("%w: %s%w", understudy.ErrInvalid, o.BodyError, understudy.StripPrefixes(err))
	}
	return nil
}

// Refuse writes err as a JSON response with its status and headers.
func (o *Options) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	text := strings.TrimPrefix(understudy.PlainText(err), understudy.ErrMethod.Error()+": ")
	a := Refusal{Status: understudy.OwnPathStatus(err), Error: text}
	switch {
	case errors.Is(err, errNeedsToken):
		w.Header().Set("WWW-Authenticate", `Bearer realm="run.json"`)
	case a.Status == http.StatusUnauthorized:
		jsonhttp.RequestCredential(w, r, "Understudy")
	}
	if o.Explain != nil {
		o.Explain(r, err, &a)
	}
	if a.RetryAfter != "" {
		w.Header().Set("Retry-After", a.RetryAfter)
	}
	jsonhttp.SignError(w.Header(), a.Status, a.Error)
	jsonhttp.Write(w, a.Status, a)
}

// CheckGet refuses a GET with a body, because waiting for the body could block the connection. It also refuses a
// GET from a page of another site: that page can't read the response, but the request would use one of the limited
// places. Links from other sites are permitted; the browser marks such requests as requests for a document.
func CheckGet(w http.ResponseWriter, r *http.Request, what string) error {
	switch {
	case r.ContentLength != 0:
		w.Header().Set("Connection", "close")
		return fmt.Errorf("%w: a %s has no body", understudy.ErrInvalid, what)
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Dest") != "document":
		return fmt.Errorf("%w: this request comes from another site", understudy.ErrForbidden)
	}
	return nil
}

var (
	errNotLocal   = fmt.Errorf("%w: only from the machine the server runs on", understudy.ErrForbidden)
	errNeedsToken = fmt.Errorf("%w: the token of run.json is needed", understudy.ErrUnauthorized)
)

// AuthorizeCommand returns an Identify function that admits only requests from this machine with the token of run.json.
func AuthorizeCommand(token string) func(*http.Request) (understudy.Caller, error) {
	return func(r *http.Request) (understudy.Caller, error) {
		switch {
		case !jsonhttp.IsLocal(r):
			return understudy.Caller{}, errNotLocal
		case !jsonhttp.HasToken(r, token):
			return understudy.Caller{}, errNeedsToken
		}
		accesslog.LineOf(r.Context()).Caller = understudy.CommandCaller.Name
		return understudy.CommandCaller, nil
	}
}

// Callers identifies the caller of a request. callers.Book implements it.
type Callers interface {
	IdentifyPerson(r *http.Request) (understudy.Caller, error)
}

// IdentifyPerson returns the caller of a request. This is the caller of commands if the request carries the token
// (see AuthorizeCommand), else the caller that the function person returns. A caller without a role is refused with
// ErrForbidden.
func IdentifyPerson(r *http.Request, token string, person func(*http.Request) (understudy.Caller, error)) (understudy.Caller, error) {
	if c, err := AuthorizeCommand(token)(r); err == nil {
		return c, nil
	}
	c, err := person(r)
	if err == nil && c.Role() == "" {
		err = fmt.Errorf("%w: %s has no role", understudy.ErrForbidden, c.Name)
	}
	return c, err
}

// RecordAudit writes the entry e to the audit log, with the caller and the ID of the request. Call it before the
// action itself.
func RecordAudit(ctx context.Context, a understudy.Auditor, c understudy.Caller, e understudy.AuditEntry) error {
	e.Caller, e.Request = c, accesslog.LineOf(ctx).ID
	return understudy.RecordAudit(ctx, a, e)
}
