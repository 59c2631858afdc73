// This file handles one request of an agent.

// Package agents serves agents over the Model Context Protocol. Its tools read records as the role of a credential
// sees them.
//
// The endpoint uses Streamable HTTP (revision 2025-11-25 of the protocol, and the other revisions of the SDK)
// without sessions. Every request carries its own credential, so a revoked credential gives no access any more. The
// server never sends a request of its own. The tools only read: by design, no tool sends, deletes or exports data.
package agents

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/access/seen"
	"understudy/internal/jsonapi"
	"understudy/internal/query"
	"understudy/internal/viewer/plan"
	"understudy/kit/accesslog"
	"understudy/kit/jsonhttp"
	"understudy/kit/limiter"
	"understudy/kit/token"
	"understudy/request"
	"understudy/spec"

	"understudy/kit/lockwatch"
)

// Path is the path of the endpoint.
const Path = "/-/mcp"

// Routes returns the methods and paths that a Server handles.
func Routes() []string { return []string{"POST " + Path} }

// Mirror answers requests with pages of the upstream; mirror.Mirror implements it.
type Mirror interface {
	Answer(ctx context.Context, a request.Request) (*request.Response, error)
}

// Search finds records by words and conditions, and sums them up; search.Searcher implements it.
type Search interface {
	Find(ctx context.Context, c understudy.Caller, a query.SearchRequest) (*query.SearchResult, error)
	Sum(ctx context.Context, c understudy.Caller, r query.SumRequest) (*query.SumResult, error)
}

// Limits are the limits for the requests of agents. A zero value means the default.
type Limits struct {
	Time       time.Duration // the maximum duration of a request, default 20s
	Rows       int           // the maximum number of records in a response, default 100
	Bytes      int           // the maximum size of the records in a response, in bytes, default 512 KiB
	Body       int64         // the maximum size of a request, in bytes, default 256 KiB
	Concurrent int           // the maximum number of concurrent requests, default 32; one caller may have half of them
}

// Options are the options of a Server.
type Options struct {
	Sources []*spec.Source
	Gate    *access.Gate
	Callers jsonapi.Callers
	Mirror  Mirror
	Search  Search       // searches records; nil if there is no search tool
	History seen.History // reads the versions of records; nil if there is no history tool
	// StoredState returns whether all records of a kind are stored, and when the newest were last read (zero means never).
	// If StoredState is nil, responses do not contain this.
	StoredState func(ctx context.Context, source, kind string) (complete bool, caughtUp time.Time)
	Audit       understudy.Auditor // records actions in the audit log; nil if nothing is recorded
	Key         []byte             // the key that encrypts cursors, token.KeySize bytes long
	PublicURL   string             // the origin of the viewer; "" if links are only paths
	Version     string             // the version of Understudy
	Limits      Limits
	Logger      *slog.Logger     // receives log messages; nil means no log
	Now         func() time.Time // the clock; nil means time.Now
}

// Server serves agents under one policy. It is an http.Handler, safe for concurrent use.
type Server struct {
	o       Options
	sources []*plan.Source
	running *limiter.Limiter // limits the running calls of each caller
	handler http.Handler
	mu      lockwatch.Mutex
	offers  map[string]*offer // the offered tools by role and source
}

// New returns a server. It starts no goroutines.
func New(o Options) (*Server, error) {
	if o.Gate == nil || o.Callers == nil || o.Mirror == nil || len(o.Sources) == 0 || len(o.Key) != token.KeySize {
		return nil, errors.New("agents: options need sources, a gate, callers, a mirror and a key")
	}
	o.Limits = Limits{Time: cmp.Or(o.Limits.Time, 20*time.Second), Rows: cmp.Or(o.Limits.Rows, 100), Bytes: cmp.Or(o.Limits.Bytes, 512<<10),
		Body: cmp.Or(o.Limits.Body, 256<<10), Concurrent: cmp.Or(o.Limits.Concurrent, 32)}
	understudy.SetDefaults(&o.Logger, &o.Now)
	s := &Server{o: o, running: limiter.New(o.Limits.Concurrent, (o.Limits.Concurrent+1)/2), offers: map[string]*offer{}}
	for _, src := range o.Sources {
		p, err := plan.New(src)
		if err != nil {
			return nil, fmt.Errorf("agents: %w", err)
		}
		s.sources = append(s.sources, p)
	}
	forms, err := jsonhttp.NewFormProtection(o.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("agents: public_url: %w", err)
	}
	forms.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		jsonhttp.Error(w, http.StatusForbidden,
			"this request comes from a page of another site; only pages of viewer.public_url may send requests")
	}))
	// If a reverse proxy has another host name, a request to localhost gives no access without a credential.
	protocol := mcp.NewStreamableHTTPHandler(serverOf, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true,
		MaxRequestBodyBytes: o.Limits.Body, DisableLocalhostProtection: o.PublicURL != "", PropagateRequestCancellation: true})
	s.handler = forms.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, protocol) }))
	return s, nil
}

// ServeHTTP handles one request of an agent.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Cache-Control", "private, no-store")
	head.Set("Vary", "Authorization")
	head.Set("X-Content-Type-Options", "nosniff")
	s.handler.ServeHTTP(w, r)
}

// exchange is the state of one request while it is handled.
type exchange struct {
	srv    *Server
	ctx    context.Context // the context of the request, with its deadline
	caller understudy.Caller
	began  time.Time
	offer  *offer
	server *mcp.Server
}

// exchangeKey is the context key of an exchange.
type exchangeKey struct{}

// serverOf returns the protocol server of a request.
func serverOf(r *http.Request) *mcp.Server {
	if v, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		return v.server
	}
	return nil
}

// serve identifies the caller and handles the request by the protocol, with a deadline.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, protocol http.Handler) {
	c, err := jsonapi.IdentifyPerson(r, "", s.o.Callers.IdentifyPerson)
	if err != nil {
		(&jsonapi.Options{}).Refuse(w, r, err)
		return
	}
	leave, err := s.running.Take(c.Name)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		jsonhttp.Error(w, http.StatusServiceUnavailable, "too many requests at once; try again in a moment")
		return
	}
	defer leave()
	if r.ContentLength > s.o.Limits.Body {
		why := fmt.Sprintf("the request is larger than %d bytes; send a smaller one", s.o.Limits.Body)
		jsonhttp.Error(w, http.StatusRequestEntityTooLarge, why)
		return
	}
	if r.Body, err = checkSingle(http.MaxBytesReader(w, r.Body, s.o.Limits.Body)); err != nil {
		jsonhttp.Error(w, http.StatusBadRequest, understudy.PlainText(err))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Limits.Time)
	defer cancel()
	v := &exchange{srv: s, ctx: ctx, caller: c, began: s.o.Now(), offer: s.offerOf(c)}
	v.server = v.protocolServer()
	out := &explainer{ResponseWriter: w}
	protocol.ServeHTTP(out, r.WithContext(context.WithValue(ctx, exchangeKey{}, v)))
	out.end()
}

// explainer is the writer of the protocol's responses. It marks a refused request as this server's own error, and
// adds the text of the refusal.
type explainer struct {
	http.ResponseWriter
	refused int // the status of a refusal whose text is not written yet; 0 if there is none
}

// Unwrap returns the wrapped writer for http.ResponseController.
func (e *explainer) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// WriteHeader delays the status of a refusal until its text is written.
func (e *explainer) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(e.Header().Get("Content-Type"), "text/plain") {
		e.refused = status
		return
	}
	e.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the response. To the text of a refusal it adds what the client should do.
func (e *explainer) Write(p []byte) (int, error) {
	if e.refused == 0 {
		return e.ResponseWriter.Write(p)
	}
	text := strings.TrimSpace(string(p))
	switch {
	case e.refused == http.StatusRequestEntityTooLarge:
		text += "; send a smaller one"
	case strings.HasPrefix(text, "malformed payload"):
		text += "; send one JSON-RPC 2.0 message"
	case e.refused == http.StatusMethodNotAllowed:
		text += "; use POST"
	}
	jsonhttp.SignError(e.Header(), e.refused, text)
	e.end()
	if _, err := io.WriteString(e.ResponseWriter, text+"\n"); err != nil {
		return 0, err
	}
	return len(p), nil
}

// end sends a refusal that has no text.
func (e *explainer) end() {
	if e.refused != 0 {
		e.ResponseWriter.WriteHeader(e.refused)
		e.refused = 0
	}
}

// checkSingle returns an error for a body that is an array of requests. Older revisions of the protocol allow
// such bodies, but the limits apply to a single response.
func checkSingle(body io.ReadCloser) (io.ReadCloser, error) {
	in := bufio.NewReader(body)
	first, _ := in.Peek(1) // an error of reading the body is handled by the protocol server
	for len(first) == 1 && first[0] <= ' ' {
		_, _ = in.Discard(1) // cannot fail, because Peek has read one byte
		first, _ = in.Peek(1)
	}
	if string(first) == "[" {
		return body, errors.New("batches are not supported; send each request alone")
	}
	return struct {
		io.Reader
		io.Closer
	}{in, body}, nil
}

// recordAction records what the caller does, before the response is sent.
func (v *exchange) recordAction(ctx context.Context, e understudy.AuditEntry) error {
	e.Caller, e.AsPerson, e.Request = v.caller, true, accesslog.LineOf(v.ctx).ID
	return understudy.RecordAudit(ctx, v.srv.o.Audit, e)
}
