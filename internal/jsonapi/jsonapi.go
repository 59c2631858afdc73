// JSON API: what all requests for JSON under /-/ have in common.

// Package jsonapi answers requests under /-/ with JSON. It refuses pages of other sites,
// names the caller, reads the body, and writes the answer or the error.
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

// Options say who may send a request, and what it may be.
type Options struct {
	// Who names the caller of a request, or says why it is not admitted.
	Who func(r *http.Request) (understudy.Caller, error)
	// Forms refuses changes that pages of other sites ask for, with the text Foreign; nil: none are refused.
	Forms   *http.CrossOriginProtection
	Foreign string
	Vary    string        // the header field of private answers; "": they do not vary
	Methods []string      // nil if the mux has checked the method
	What    string        // that CheckQuestion is called with; "": it is not called
	Time    time.Duration // bounds one request; 0: nothing does
	MaxBody int64         // the maximum length of a request body for HandleBody, in bytes
	Body    string        // begins what an error says of a body that cannot be read
	JSON    bool          // the body must be application/json, which a form of another site cannot send without asking first
	// Explain changes how an error is answered; nil: by OwnPathStatus and PlainText.
	Explain func(r *http.Request, err error, a *Refusal)
}

// Refusal is how an error is answered. Where a query is wrong it says where.
type Refusal struct {
	Status     int    `json:"-"`
	RetryAfter string `json:"-"` // seconds; "": the header is not set
	Error      string `json:"error"`
	At         *int   `json:"at,omitempty"`  // where the error begins in the query, in bytes
	End        *int   `json:"end,omitempty"` // where the error ends in the query, in bytes
	Character  *int   `json:"character,omitempty"`
}

// Answer is an answer whose status is not 200.
type Answer struct {
	Status int
	Value  any
}

// Handle returns a handler that admits the caller, calls do and answers with its result as JSON,
// or with 204 when it is nil.
func Handle(o *Options, do func(ctx context.Context, c understudy.Caller, r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.serve(w, r, func(ctx context.Context, c understudy.Caller) (any, error) { return do(ctx, c, r) })
	})
}

// HandleBody is Handle for requests whose body is a JSON value of MaxBody bytes at most. A GET has no
// body.
func HandleBody[In any](
	o *Options, do func(ctx context.Context, c understudy.Caller, r *http.Request, in *In) (any, error),
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.serve(w, r, func(ctx context.Context, c understudy.Caller) (any, error) {
			var in In
			if r.Method != http.MethodGet {
				if err := o.read(w, r, &in); err != nil {
					return nil, err
				}
			}
			return do(ctx, c, r, &in)
		})
	})
}

func (o *Options) serve(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, c understudy.Caller) (any, error)) {
	c, err := o.Admit(w, r)
	if err != nil {
		o.Refuse(w, r, err)
		return
	}
	ctx := r.Context()
	if o.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Time)
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
	case Answer:
		jsonhttp.Write(w, a.Status, a.Value)
	default:
		jsonhttp.Write(w, http.StatusOK, v)
	}
}

// Admit returns the caller of a request that may be answered.
func (o *Options) Admit(w http.ResponseWriter, r *http.Request) (understudy.Caller, error) {
	if o.Forms != nil && o.Forms.Check(r) != nil {
		return understudy.Caller{}, fmt.Errorf("%w: %s", understudy.ErrForbidden, o.Foreign)
	}
	if head := w.Header(); o.Vary != "" {
		head.Set("Cache-Control", "private, no-store")
		head.Set("Vary", o.Vary)
		head.Set("X-Content-Type-Options", "nosniff")
	}
	if o.What != "" {
		if err := CheckQuestion(w, r, o.What); err != nil {
			return understudy.Caller{}, err
		}
	}
	c, err := o.Who(r)
	if err == nil && o.Methods != nil && !slices.Contains(o.Methods, r.Method) {
		w.Header().Set("Allow", strings.Join(o.Methods, ", "))
		err = fmt.Errorf("%w: %s takes %s", understudy.ErrMethod, r.URL.Path, strings.Join(o.Methods, " and "))
	}
	return c, err
}

// read reads the body.
func (o *Options) read(w http.ResponseWriter, r *http.Request, in any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); o.JSON && (err != nil || kind != "application/json") {
		return fmt.Errorf("%w: the body must be application/json", understudy.ErrInvalid)
	}
	if err := jsonhttp.Read(w, r, o.MaxBody, in); err != nil {
		return fmt.Errorf("%w: %s%w", understudy.ErrInvalid, o.Body, understudy.StripPrefixes(err))
	}
	return nil
}

// Refuse answers an error.
func (o *Options) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	text := strings.TrimPrefix(understudy.PlainText(err), understudy.ErrMethod.Error()+": ")
	a := Refusal{Status: understudy.OwnPathStatus(err), Error: text}
	switch {
	case errors.Is(err, errToken):
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

// CheckQuestion refuses a GET that has a body, which could hold the connection, and one that a page
// of another site sends: it could read nothing, but would take slots. A person who follows a link
// sends a request for a document.
func CheckQuestion(w http.ResponseWriter, r *http.Request, what string) error {
	switch {
	case r.ContentLength != 0:
		w.Header().Set("Connection", "close")
		return fmt.Errorf("%w: a %s has no body", understudy.ErrInvalid, what)
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Dest") != "document":
		return fmt.Errorf("%w: a page of another site asks", understudy.ErrForbidden)
	}
	return nil
}

var (
	errElsewhere = fmt.Errorf("%w: only from the machine the server runs on", understudy.ErrForbidden)
	errToken     = fmt.Errorf("%w: the token of run.json is needed", understudy.ErrUnauthorized)
)

// Command returns a Who that admits the commands: requests from this machine with the token of
// run.json.
func Command(token string) func(*http.Request) (understudy.Caller, error) {
	return func(r *http.Request) (understudy.Caller, error) {
		switch {
		case !jsonhttp.IsLocal(r):
			return understudy.Caller{}, errElsewhere
		case !jsonhttp.HasToken(r, token):
			return understudy.Caller{}, errToken
		}
		accesslog.LineOf(r.Context()).Caller = understudy.CommandCaller.Name
		return understudy.CommandCaller, nil
	}
}

// Person returns the caller of a request of a command, or of a person who has a role.
func Person(r *http.Request, token string, person func(*http.Request) (understudy.Caller, error)) (understudy.Caller, error) {
	if c, err := Command(token)(r); err == nil {
		return c, nil
	}
	c, err := person(r)
	if err == nil && c.Role() == "" {
		err = fmt.Errorf("%w: %s has no role", understudy.ErrForbidden, c.Name)
	}
	return c, err
}

// Audit lists what a caller is about to do by the request of ctx.
func Audit(ctx context.Context, a understudy.Auditor, c understudy.Caller, e understudy.AuditEntry) error {
	e.Caller, e.Request = c, accesslog.LineOf(ctx).ID
	return understudy.RecordAudit(ctx, a, e)
}
