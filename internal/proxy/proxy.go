// Proxy: its parts, and the way of one request through it.

// Package proxy answers programs in upstream's stead: the same paths, methods,
// statuses and bytes.
//
//	caller -> target -> gate (may this be asked?) -> mirror -> gate (what is
//	shown?) -> answer
//
// A request that is refused costs no upstream request, and a body it brings is
// not read.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/kit/accesslog"
	"understudy/kit/limiter"
	"understudy/kit/lru"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/auth"
)

// Mirror answers for upstream.
type Mirror interface {
	// Answer answers a read. Errors are the root package's kinds, or the
	// context's.
	Answer(context.Context, request.Request) (*request.Response, error)
	// Write passes a write on, once. Its answer's page is whatever upstream
	// answered.
	Write(context.Context, request.Write) (*request.Response, error)
}

// Exchanger answers requests to generic sources.
type Exchanger interface {
	// Exchange answers a request as it came; the answer must be closed. Errors are the root
	// package's kinds, or the context's.
	Exchange(context.Context, request.Exchange) (*request.ExchangeResponse, error)
	// IsReadyFor reports whether a GET with some header would be answered from memory now.
	IsReadyFor(t *spec.Target, h http.Header) bool
}

// Media opens the contents of records.
type Media interface {
	// Open is the content a media path names; it must be closed. Errors are the
	// root package's kinds, or the context's.
	Open(context.Context, request.MediaRequest) (*request.MediaResponse, error)
}

// Callers finds the caller of a request.
type Callers interface {
	// Caller names the program that asks source; ErrUnauthorized.
	Identify(r *http.Request, source string) (understudy.Caller, error)
	// Rate is what the caller's credential may send; ok is false where nothing bounds it.
	Rate(c understudy.Caller) (r understudy.Rate, ok bool)
}

// Auditor keeps audit entries; audit.Log fills it.
type Auditor interface {
	understudy.Auditor
	// Lists reports whether what a caller does is listed; else its ids do not count.
	MustList(c understudy.Caller, a understudy.Action) bool
}

// Unread bounds what is kept of answers that clients have not read yet; frontend.Unread fills it.
type Unread interface {
	// Enter counts bytes until leave is called; beyond the bound it ends what has waited longest.
	Count(bytes int, end func()) (leave func())
	// Crowded reports whether nothing is to be made before its turn.
	IsCrowded() bool
}

// Options are what a Proxy is made of. Source, Mirror, Gate and Callers must
// be set.
type Options struct {
	Source  *spec.Source
	Mirror  Mirror
	Gate    *access.Gate
	Callers Callers
	// Ready reports whether the mirror would answer a target from memory now, and what it found there; nil: never.
	Ready func(*spec.Target) (found any, ok bool)
	// Admit returns the caller of a request, and gives that of later requests with the same
	// credential, as Callers does; nil, or later is nil: there is no shorter way.
	Admit func(r *http.Request, source string) (c understudy.Caller, later func(*http.Request) (understudy.Caller, error))
	Media Media // contents of records; nil: media paths are 404
	// Rate returns what upstream still takes of requests like those for a target (nil: any) at a time. ok is false where it
	// tells nothing; nil: it never does.
	Rate func(t *spec.Target, now time.Time) (r understudy.Rate, ok bool)
	// Current is the frontend of the source under the policy in force now, which answers the
	// requests of a batch; nil: this one.
	Current func() *Proxy
	// Exchanger answers for a generic source in place of Mirror; nil: the source is none.
	Exchanger Exchanger
	// Open: programs on this machine need no credential, and theirs are upstream's.
	Open bool
	// Audit lists what callers do, before they are answered, and counts the rest; nil:
	// neither.
	Audit Auditor
	// Lists bounds the lists that are fetched, read and formed at once, by credential; others wait. nil: nothing does.
	Lists *limiter.Limiter
	// Unread counts what is kept of answers until clients read it; nil: nothing does.
	Unread Unread
	// Text parses understudy.q for a caller. It returns the query for the store, and a
	// filter for the hits (nil: all). Errors: ErrInvalid with a text for the caller,
	// ErrForbidden. nil: text search is not available.
	Text func(c understudy.Caller, t *spec.Target, text string) (*query.Text, func(*understudy.Record) bool, error)
	// LastChange is the number of a source's last change; nil: it is not known, and
	// understudy.since takes any number.
	LastChange func(ctx context.Context, source string) (int64, error)
	Health     http.Handler   // answers /-/health, the one path of our own; nil: 404
	MaxBody    int64          // bytes of a write's body; 0 = 1 MiB
	Cache      int64          // bytes for bodies compressed here; 0 = 16 MiB, less than 0 = none
	Log        *accesslog.Log // one line a request; nil: none
	// MaxWrites is how many writes may be under way, half of them of one
	// credential; 0 = 64.
	MaxWrites int
	// TooLarge is called for each write whose body is larger than MaxBody. Limited is
	// called for each write refused because of MaxWrites. nil: no call.
	TooLarge, Limited func()
	// Took is called with how each answer came, as the access log has it, and its duration;
	// nil: no call. It is called from many goroutines and must not block.
	Took   func(how string, took time.Duration)
	Logger *slog.Logger     // nil: discard
	Now    func() time.Time // nil: time.Now
}

// Proxy is the drop-in frontend of one source, an http.Handler. It is safe for
// concurrent use.
type Proxy struct {
	o               Options
	ids             *accesslog.IDGenerator
	fields          fields
	carriers        auth.Carriers             // where credentials stand in requests
	targets         *lru.Cache[string, aimed] // by request line
	representations *lru.Cache[representationKey, *representation]
	fresh           *freshLimiter
	writes, batches *limiter.Limiter              // by caller
	zstd            func() (*zstd.Encoder, error) // made when first asked for
	origin          func(path string) string      // of upstream, for callers that ask there (At); nil: this port's
}

// fields are values of header fields that are the same for many answers.
type fields struct {
	challenge []string                    // WWW-Authenticate
	vary      []string                    // Vary
	rate      *atomic.Pointer[rateFields] // told last
}

// Bounds of what is remembered between requests.
const (
	maxTargets   = 4 << 20 // bytes of request targets
	maxLabels    = 16 << 20
	maxBody      = 1 << 20
	maxWrites    = 64
	targetWeight = 1 << 10 // of one target beside its text
)

// New makes the frontend of one source.
func New(o Options) (*Proxy, error) {
	if o.Source == nil || o.Mirror == nil || o.Gate == nil || o.Callers == nil {
		return nil, errors.New("proxy: options need a source, a mirror, a gate and callers")
	}
	o.MaxBody = cmp.Or(o.MaxBody, maxBody)
	o.MaxWrites = cmp.Or(o.MaxWrites, maxWrites)
	o.Cache = cmp.Or(o.Cache, maxLabels)
	understudy.SetDefaults(&o.Logger, &o.Now)
	if o.TooLarge == nil {
		o.TooLarge = func() {}
	}
	if o.Limited == nil {
		o.Limited = func() {}
	}
	if o.Took == nil {
		o.Took = func(string, time.Duration) {}
	}
	taken, err := o.Source.Spec.Auth.ParseAccepted()
	if err != nil {
		return nil, fmt.Errorf("proxy: source %s: auth: %w", o.Source.Name, err)
	}
	carriers, vary := auth.CarriersOf(taken), o.Source.Spec.Headers.Vary()
	for _, name := range carriers.Headers {
		vary += ", " + name
	}
	p := &Proxy{
		o:        o,
		ids:      accesslog.NewIDGenerator(),
		carriers: carriers,
		fields: fields{challenges(o.Source.Spec, taken), []string{"Authorization, Accept-Encoding" + vary},
			new(atomic.Pointer[rateFields])},
		targets:         lru.New[string, aimed](maxTargets),
		representations: lru.New[representationKey, *representation](max(o.Cache, 0)),
		fresh:           &freshLimiter{last: lru.New[freshKey, time.Time](10_000)},
		writes:          limiter.New(o.MaxWrites, max(1, o.MaxWrites/2)),
		batches:         limiter.New(maxBatches, maxBatches/2),
		zstd:            sync.OnceValues(newZstd),
	}
	if o.Current == nil {
		p.o.Current = func() *Proxy { return p }
	}
	return p, nil
}

// challenges are the WWW-Authenticate headers that name some schemes.
func challenges(s *spec.Spec, taken []auth.Scheme) (all []string) {
	realm := s.Auth.Realm
	realm = cmp.Or(realm, s.Title)
	for _, scheme := range taken {
		if c := scheme.Challenge(realm); !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// exchange is one request on its way.
type exchange struct {
	proxy  *Proxy
	w      http.ResponseWriter
	r      *http.Request // without the credentials that carriers name
	came   *http.Request // with them
	caller understudy.Caller
	target *spec.Target
	sight  access.Visibility // what the caller may see of the target; zero: it was not looked up
	line   accesslog.Line
	// response is memory for that of a hit.
	response request.Response
	leave    func() // gives the place of a list back; nil: there is none
	sent     bool   // the header has gone out
	read     bool   // the body has been read to its end
	queries  bool   // the body is a GraphQL query that the spec does not name
	odd      bool   // the request line is not one of this API: nothing more is read from its sender
}

// exchanges are those that no request has.
var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// ServeHTTP answers one request, whatever happens, and logs it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := exchanges.Get().(*exchange)
	v.proxy, v.w, v.r, v.came = p, w, p.carriers.Strip(r), r
	v.line.At, v.line.Method, v.line.Target = p.o.Now(), r.Method, v.r.RequestURI
	if given := r.Header["X-Request-Id"]; len(given) == 1 && accesslog.IsValidID(given[0]) {
		v.line.ID = given[0]
	}
	defer v.end()
	v.confine()
	if err := v.serve(); err != nil {
		v.fail(err)
	}
}

// known is what requests with one head have in common under one policy.
type known struct {
	aimed aimed
	admit func(*http.Request) (understudy.Caller, error)
}

type knownKey struct{}

// Known gives, for a read that was answered, whether one with the same head would be answered
// from memory now, without a wait; nil: it never is. Such a request is served sooner with the
// context: what it asks for is not read again. All else is decided of every request.
func (p *Proxy) Known(r *http.Request) (ctx context.Context, ready func() (found any, ok bool)) {
	h := r.Header
	if p.o.Ready == nil || p.o.Admit == nil || strings.HasPrefix(r.RequestURI, "/-/") || h["Cache-Control"] != nil || h["Pragma"] != nil {
		return nil, nil
	}
	if p.o.Source.Spec.IsGeneric() {
		return p.knownGeneric(r)
	}
	header, unknown, err := p.o.Source.Spec.Headers.ReadKey(r.Method, h)
	if err != nil || unknown != "" {
		return nil, nil
	}
	v := exchange{proxy: p, r: p.carriers.Strip(r)}
	t, err := v.aim(header)
	c, admit := p.o.Admit(r, p.o.Source.Name)
	if err != nil || admit == nil || t.Media != nil || len(t.OwnParams) > 0 {
		return nil, nil
	}
	ready = func() (found any, ok bool) {
		if found, ok = p.o.Ready(t); ok {
			return found, ok
		}
		return nil, access.HasKeptList(p.o.Gate, c, t)
	}
	if _, ok := ready(); !ok {
		return nil, nil
	}
	k := &known{aimed{t, v.line.RedactedTarget}, admit}
	return context.WithValue(context.Background(), knownKey{}, k), ready
}

// Traces reports whether a field of requests changes no answer, and none of what Known decides: it names no
// credential, and is no part of the key.
func (p *Proxy) Traces(name string) bool {
	return !slices.Contains(p.carriers.Headers, name) && p.o.Source.Spec.Headers.IsTrace(name)
}

// end logs the request, a panic included. A panic is answered like any failure,
// unless a response has begun. Then the connection is closed, so that the client
// does not take the partial response as complete.
func (v *exchange) end() {
	why := recover()
	if why != nil && why != http.ErrAbortHandler {
		v.proxy.o.Logger.Error("panic while answering", "id", v.id(), "method", v.r.Method, "panic", fmt.Sprint(why))
		if !v.sent {
			clear(v.w.Header())
			v.fail(fmt.Errorf("proxy: panic: %v", why))
			why = nil
		}
	}
	if v.line.Status == http.StatusUnauthorized || v.line.Status == http.StatusTooManyRequests && v.caller.Name == "" {
		v.line.Peer = accesslog.PeerOf(v.r)
	}
	v.line.Took = v.proxy.o.Now().Sub(v.line.At)
	if v.target == nil || v.target.Media == nil {
		v.proxy.o.Took(v.line.Outcome, v.line.Took) // how long a caller listens is no answer time
	}
	v.proxy.o.Log.Add(&v.line)
	if why != nil {
		panic(http.ErrAbortHandler)
	}
	*v = exchange{}
	exchanges.Put(v)
}

// id is the request's id, made when first asked for.
func (v *exchange) id() string {
	if v.line.ID == "" {
		v.line.ID = v.proxy.ids.Next()[0]
	}
	return v.line.ID
}

// serve answers, or returns an error before anything is sent.
func (v *exchange) serve() (err error) {
	if strings.HasPrefix(v.r.RequestURI, "/-/") {
		return v.own()
	}
	path, _, _ := strings.Cut(v.r.RequestURI, "?")
	asksRate := path == v.proxy.o.Source.Spec.Limits.Path
	k, _ := v.came.Context().Value(knownKey{}).(*known)
	if k != nil {
		v.caller, err = k.admit(v.came)
	} else {
		v.caller, err = v.proxy.o.Callers.Identify(v.came, v.proxy.o.Source.Name)
	}
	if err != nil {
		if over := (*understudy.RateError)(nil); asksRate && errors.As(err, &over) {
			return ownRate(v, over.Rate)
		}
		return err
	}
	v.line.Caller = v.caller.Name
	rate, bound := v.proxy.o.Callers.Rate(v.caller)
	if bound {
		tellRate(v, rate, v.proxy.o.Now())
	}
	if k != nil {
		v.target, v.line.RedactedTarget = k.aimed.target, k.aimed.written
		if v.proxy.o.Source.Spec.IsGeneric() {
			return generic{v}.serve()
		}
		return v.get()
	}
	if err := expectation(v.r); err != nil {
		return err
	}
	if len(v.came.RequestURI) > spec.MaxURI {
		v.odd = true
		return fmt.Errorf("proxy: %w: request target longer than %d bytes", understudy.ErrTooLong, spec.MaxURI)
	}
	if v.proxy.o.Source.Spec.IsGeneric() {
		return generic{v}.serve()
	}
	reads, named := method(v.r.Method)
	if !named {
		v.odd = true
		return fmt.Errorf("proxy: %w", understudy.ErrMethod)
	}
	header, unknown, err := v.proxy.o.Source.Spec.Headers.ReadKey(v.r.Method, v.r.Header)
	if err == nil && unknown != "" && !v.whole() {
		err = spec.RefuseField(unknown) // what hides a part of an answer does not know its form
	}
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	switch {
	case asksRate && reads && bound:
		return ownRate(v, rate)
	case asksRate && !reads:
		return fmt.Errorf("proxy: %s: %w", path, understudy.ErrMethod)
	case v.r.Method == http.MethodPost && v.proxy.o.Source.Spec.HasPostedRead(path):
		return v.posted(header)
	}
	if v.target, err = v.aim(header); err != nil {
		v.odd = true
		return err
	}
	if t := v.target; t.Kind == nil && v.proxy.o.Source.Spec.IsGraphQLPath(t.Key.Path()) { // its document was not read
		return fmt.Errorf("proxy: %w: GraphQL is asked by POST %s, spelt so", understudy.ErrInvalid, t.Key.Path())
	}
	if reads {
		return v.get()
	}
	return v.write()
}

// method says whether a method reads, and whether upstream could know it.
func method(name string) (reads, known bool) {
	switch name {
	case http.MethodGet, http.MethodHead:
		return true, true
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return false, true
	}
	return false, false
}

// aimed is the target of a request line, and its form in the access log.
type aimed struct {
	target  *spec.Target
	written string
}

// aim is the request's target, remembered by the request line and the header fields that
// are part of the key.
func (v *exchange) aim(header understudy.Query) (*spec.Target, error) {
	uri := v.r.RequestURI
	key := uri
	if len(header) > 0 {
		key += " " + header.String()
	}
	if a, ok := v.proxy.targets.Get(key); ok {
		v.line.RedactedTarget = a.written
		return a.target, nil
	}
	path, params, _ := strings.Cut(uri, "?")
	if !strings.HasPrefix(uri, "/") { // a whole URL, as proxies are asked
		path, params = v.r.URL.EscapedPath(), v.r.URL.RawQuery
	}
	t, err := v.proxy.o.Source.Spec.Resolve(v.proxy.o.Source.Name, path, params)
	if err == nil {
		t, err = withHeader(t, header)
	}
	if err != nil {
		return nil, err
	}
	v.line.RedactedTarget = string(v.proxy.o.Log.AppendTarget(nil, uri))
	v.proxy.targets.Put(strings.Clone(key), aimed{t, v.line.RedactedTarget}, int64(5*len(key)+targetWeight))
	return t, nil
}

// withHeader is a target asked with header fields. A content is of one type, whatever is
// accepted.
func withHeader(t *spec.Target, header understudy.Query) (*spec.Target, error) {
	if t.Media != nil {
		header = header.Remove(func(p understudy.Param) bool { return p.Name == "Accept" })
		if len(header) > 0 {
			return nil, fmt.Errorf("proxy: %w: contents are not asked for with the header %s", understudy.ErrInvalid, header[0].Name)
		}
	}
	return t.WithHeader(header)
}
