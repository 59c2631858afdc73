// This file contains the proxy with its options, and the steps of one request.

// Package proxy answers clients in place of upstream, with the same paths, methods, statuses and bytes.
//
// A request passes these steps: find the caller, find the target, check permission in the gate, get the response
// from the mirror, hide data in the gate, send the response.
//
// A refused request costs no upstream request, and its body is not read.
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
	"understudy/internal/tracing"
	"understudy/kit/accesslog"
	"understudy/kit/limiter"
	"understudy/kit/lru"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/auth"
)

// Mirror answers requests in place of upstream.
type Mirror interface {
	// Answer answers a read. Its errors are those of the root package, or the context's.
	Answer(context.Context, request.Request) (*request.Response, error)
	// Write forwards a write once. The page of its response is what upstream sent.
	Write(context.Context, request.Write) (*request.Response, error)
}

// Exchanger answers requests to generic sources.
type Exchanger interface {
	// Exchange answers a request without interpreting it. The caller must close the response. Its errors are those
	// of the root package, or the context's.
	Exchange(context.Context, request.Exchange) (*request.ExchangeResponse, error)
	// IsReadyFor reports whether a GET with the given header would now be answered from memory.
	IsReadyFor(t *spec.Target, h http.Header) bool
}

// Media opens the media contents of records.
type Media interface {
	// Open opens the content that a media path names; the caller must close it. Its errors are those of the
	// root package, or the context's.
	Open(context.Context, request.MediaRequest) (*request.MediaResponse, error)
}

// Callers finds the caller of a request.
type Callers interface {
	// Identify returns the caller that requests a source, or ErrUnauthorized.
	Identify(r *http.Request, source string) (understudy.Caller, error)
	// Rate returns how many requests the caller's credential may send; ok is false if there is no limit.
	Rate(c understudy.Caller) (r understudy.Rate, ok bool)
}

// Auditor stores audit entries; audit.Log implements it.
type Auditor interface {
	understudy.Auditor
	// MustList reports whether an action of the caller is written to the audit log one by one. If not, its entry
	// needs no ids.
	MustList(c understudy.Caller, a understudy.Action) bool
}

// Unread limits the memory of responses that clients have not read yet; frontend.Unread implements it.
type Unread interface {
	// Count adds the bytes of a waiting response until leave is called. If the limit is exceeded, it calls the end
	// function of the response that has waited longest.
	Count(bytes int, end func()) (leave func())
	// IsCrowded reports whether memory is so scarce that a response should not be made before its turn.
	IsCrowded() bool
}

// Options are the parts and settings of a Proxy. Source, Mirror, Gate and Callers must be set.
type Options struct {
	Source  *spec.Source
	Mirror  Mirror
	Gate    *access.Gate
	Callers Callers
	// Ready reports whether the mirror would now answer a target from memory, and what it found there. If Ready is
	// nil, no target is answered this way.
	Ready func(*spec.Target) (found any, ok bool)
	// Admit returns the caller of a request, and a faster check for later requests with the same credential. Both
	// give the same result as Callers. If Admit or its result later is nil, there is no faster check.
	Admit func(r *http.Request, source string) (c understudy.Caller, later func(*http.Request) (understudy.Caller, error))
	Media Media // reads the media contents of records; nil means that media paths are 404
	// Rate returns how many more requests like that of the target upstream accepts; a nil target means any request.
	// ok is false if upstream does not say. If Rate is nil, it is never known.
	Rate func(t *spec.Target, now time.Time) (r understudy.Rate, ok bool)
	// CurrentProxy returns the source's frontend under the current policy, which answers the requests of a batch. If
	// CurrentProxy is nil, this Proxy answers them.
	CurrentProxy func() *Proxy
	// Exchanger answers for a generic source in place of Mirror. It is nil if the source is not generic.
	Exchanger Exchanger
	// Open means that clients on this machine need no credential for Understudy, so that the credentials in their
	// requests are meant for upstream.
	Open bool
	// Audit stores what callers do before they get a response, and counts actions that are not listed. If Audit is
	// nil, nothing is stored or counted.
	Audit Auditor
	// Lists limits how many lists are made at once, by credential. Other list requests wait. nil means no limit.
	Lists *limiter.Limiter
	// Unread counts the memory of responses until clients have read them. If Unread is nil, this memory is not counted.
	Unread Unread
	// ParseNear parses understudy.near for a caller. Its errors are those of ParseText.
	ParseNear func(ctx context.Context, c understudy.Caller, t *spec.Target, text string) (*query.Near, error)
	// ParseText parses understudy.q for a caller. It returns the query for the store, and a filter for the hits (nil
	// means all hits). Its errors are ErrInvalid with a text for the caller, and ErrForbidden. If ParseText is nil, text
	// search is not available.
	ParseText func(c understudy.Caller, t *spec.Target, text string) (*query.Text, func(*understudy.Record) bool, error)
	// LastChange returns the number of a source's last change. If it is nil, understudy.since accepts any number.
	LastChange func(ctx context.Context, source string) (int64, error)
	Health     http.Handler   // answers /-/health and /-/ready; nil means that these paths have status 404
	MaxBody    int64          // maximum size of the body of a write in bytes; 0 means 1 MiB
	Cache      int64          // memory for compressed bodies in bytes; 0 means 16 MiB, a negative value means none
	Log        *accesslog.Log // gets one line for each request; nil means no log
	// MaxWrites is the maximum number of writes in progress. One credential may have half of them. 0 means 64.
	MaxWrites int
	// TooLarge is called for each write whose body is larger than MaxBody. Limited is called for each write
	// refused because of MaxWrites. Both may be nil.
	TooLarge, Limited func()
	// Strangers counts the requests without a valid credential. The others are counted by Caller.Usage. nil counts nothing.
	Strangers *understudy.Usage
	// OnAnswered is called with the outcome of each response, as in the access log, and its duration. It may be nil.
	// It is called from many goroutines and must not block.
	OnAnswered func(how string, took time.Duration)
	Tracer     *tracing.Tracer  // follows requests; nil means that no request is slow or exported
	Logger     *slog.Logger     // receives log messages; nil means no log
	Now        func() time.Time // the clock; nil means time.Now
}

// Proxy is the drop-in frontend of one source, an http.Handler. It is safe for concurrent use.
type Proxy struct {
	o               Options
	ids             *accesslog.IDGenerator
	fields          fields
	carriers        auth.Carriers                    // the places in which requests can carry credentials
	targets         *lru.Cache[string, parsedTarget] // the parsed targets by request line
	representations *lru.Cache[representationKey, *representation]
	freshLimits     *freshLimiter
	writes, batches *limiter.Limiter              // limit how many writes and batches each caller has in progress
	zstd            func() (*zstd.Encoder, error) // returns the zstd encoder and creates it at the first use
	// origin returns upstream's origin for a path, for callers that use upstream's addresses. It is nil for callers
	// that use this port's address.
	origin func(path string) string
}

// fields are values of header fields that are the same for many responses.
type fields struct {
	challenge []string                    // the values of the header WWW-Authenticate
	vary      []string                    // the values of the header Vary
	rate      *atomic.Pointer[rateFields] // the header fields of the last rate limit that was sent
}

// Limits of what a Proxy caches between requests, and defaults of its options.
const (
	maxTargets   = 4 << 20  // the size of all cached request targets, in bytes
	defaultCache = 16 << 20 // the default of Options.Cache, in bytes
	maxBody      = 1 << 20  // the default of Options.MaxBody, in bytes
	maxWrites    = 64       // the default of Options.MaxWrites
	targetWeight = 1 << 10  // the assumed size of a cached target without its text, in bytes
)

// New creates the frontend of one source.
func New(o Options) (*Proxy, error) {
	if o.Source == nil || o.Mirror == nil || o.Gate == nil || o.Callers == nil {
		return nil, errors.New("proxy: options need a source, a mirror, a gate and callers")
	}
	o.MaxBody = cmp.Or(o.MaxBody, maxBody)
	o.MaxWrites = cmp.Or(o.MaxWrites, maxWrites)
	o.Cache = cmp.Or(o.Cache, defaultCache)
	understudy.SetDefaults(&o.Logger, &o.Now)
	if o.TooLarge == nil {
		o.TooLarge = func() {}
	}
	if o.Limited == nil {
		o.Limited = func() {}
	}
	if o.OnAnswered == nil {
		o.OnAnswered = func(string, time.Duration) {}
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
		targets:         lru.New[string, parsedTarget](maxTargets),
		representations: lru.New[representationKey, *representation](max(o.Cache, 0)),
		freshLimits:     &freshLimiter{last: lru.New[freshKey, time.Time](10_000)},
		writes:          limiter.New(o.MaxWrites, max(1, o.MaxWrites/2)),
		batches:         limiter.New(maxBatches, maxBatches/2),
		zstd:            sync.OnceValues(newZstd),
	}
	if o.CurrentProxy == nil {
		p.o.CurrentProxy = func() *Proxy { return p }
	}
	return p, nil
}

// challenges returns the WWW-Authenticate headers for some authentication schemes.
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

// exchange is one request while it is processed.
type exchange struct {
	proxy      *Proxy
	w          http.ResponseWriter
	r          *http.Request // the request without the credentials of this server
	original   *http.Request // the request with all its credentials
	caller     understudy.Caller
	target     *spec.Target
	visibility access.Visibility // what the caller may see of the target; zero before the gate is asked
	line       accesslog.Line
	trace      *request.Trace // nil if the server has found the response in memory and the client's trace is not sampled
	// response is reused memory for a response from the cache.
	response request.Response
	leave    func() // lets the next list request begin; nil if this request is not limited
	sent     bool   // whether the response header was sent
	streams  bool   // whether the response is sent while upstream sends it
	read     bool   // whether the request body was read to its end
	queries  bool   // whether the body is a GraphQL query that the spec does not name
	foreign  bool   // whether the request line is not of this API, so that the connection must end after the response
}

// exchanges is a pool of exchanges for reuse.
var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// ServeHTTP answers and logs one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := exchanges.Get().(*exchange)
	v.proxy, v.w, v.r, v.original = p, w, p.carriers.Strip(r), r
	v.line.At, v.line.Method, v.line.Target = p.o.Now(), r.Method, v.r.RequestURI
	if given := r.Header["X-Request-Id"]; len(given) == 1 && accesslog.IsValidID(given[0]) {
		v.line.ID = given[0]
	}
	known, ok := w.(storedAnswerer)
	isStored := ok && known.StoredAnswer() != nil // so that the request causes nothing
	parent := request.ParentOf(r.Header)
	v.line.Trace = parent.Trace
	if !isStored || parent.Flags&1 != 0 {
		v.trace = request.NewTrace(r.Header, p.o.Now)
	}
	if !isStored {
		v.trace.ID = v.id()
		v.r = v.r.WithContext(request.WithTrace(r.Context(), v.trace))
	}
	defer v.end()
	v.restrictContent()
	if err := v.serve(); err != nil {
		v.fail(err)
	}
}

// PrepareRepeat prepares faster answers to repeated reads. For an answered read it returns a function which reports
// whether a request with the same header would now be answered from memory without a wait. It returns nil if that
// can never be. A repeated request with the returned context is served faster, because its target is already known.
// Everything else is decided again for each request.
func (p *Proxy) PrepareRepeat(r *http.Request) (ctx context.Context, ready func() (found any, ok bool)) {
	h := r.Header
	if p.o.Ready == nil || p.o.Admit == nil || strings.HasPrefix(r.RequestURI, "/-/") || h["Cache-Control"] != nil || h["Pragma"] != nil {
		return nil, nil
	}
	if p.o.Source.Spec.IsGeneric() {
		return p.prepareGenericRepeat(r)
	}
	header, unknown, err := p.o.Source.Spec.Headers.ReadKey(r.Method, h)
	if err != nil || unknown != "" {
		return nil, nil
	}
	v := exchange{proxy: p, r: p.carriers.Strip(r)}
	t, err := v.findTarget(header)
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
	k := p.newRepeat(r, parsedTarget{t, v.line.RedactedTarget}, admit)
	return context.WithValue(context.Background(), repeatKey{}, k), ready
}

// CanIgnore reports whether a request header field changes neither the response nor the result of PrepareRepeat.
// Such a field is no credential and no part of the cache key.
func (p *Proxy) CanIgnore(name string) bool {
	return !slices.Contains(p.carriers.Headers, name) && p.o.Source.Spec.Headers.IsTrace(name)
}

// end logs the request, also after a panic. A panic is answered like any error. If a response has already begun,
// the connection is closed instead, so that the client does not take the partial response as complete.
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
	v.line.Peer = accesslog.PeerOf(v.r)
	if v.line.Client == (accesslog.Client{}) {
		v.line.Client = accesslog.ClientOf(v.original)
	}
	v.line.Took = v.proxy.o.Now().Sub(v.line.At)
	cmp.Or(v.caller.Usage, v.proxy.o.Strangers).Count(v.line.Outcome, v.line.Status)
	isMedia := v.target != nil && v.target.Media != nil
	v.proxy.o.Tracer.End(&v.line, v.trace, func() tracing.Request {
		return tracing.Request{Source: v.proxy.o.Source.Name, Route: v.target.PathTemplate(), Streams: v.streams || isMedia,
			CacheStatus: strings.Join(v.w.Header()["Cache-Status"], ", ")}
	})
	if !isMedia {
		v.proxy.o.OnAnswered(v.line.Outcome, v.line.Took) // media requests are not measured, because a caller may play a recording for any time
	}
	v.proxy.o.Log.Add(&v.line)
	if why != nil {
		panic(http.ErrAbortHandler)
	}
	*v = exchange{}
	exchanges.Put(v)
}

// id returns the request's id and creates it if needed.
func (v *exchange) id() string {
	if v.line.ID == "" {
		v.line.ID = v.proxy.ids.Next()[0]
	}
	return v.line.ID
}

// serve answers the request, or returns an error before anything is sent.
func (v *exchange) serve() (err error) {
	if strings.HasPrefix(v.r.RequestURI, "/-/") {
		return v.serveOwn()
	}
	path, _, _ := strings.Cut(v.r.RequestURI, "?")
	asksRate := v.proxy.o.Source.Spec.IsRatePath(path)
	k, _ := v.original.Context().Value(repeatKey{}).(*repeat)
	if k != nil {
		v.line.Client = k.client
		v.caller, err = k.admit(v.original)
	} else {
		v.caller, err = v.proxy.o.Callers.Identify(v.original, v.proxy.o.Source.Name)
	}
	if err != nil {
		if over := (*understudy.RateError)(nil); asksRate && errors.As(err, &over) {
			return sendOwnRate(v, over.Rate)
		}
		return err
	}
	v.line.Caller = v.caller.Name
	rate, bound := v.proxy.o.Callers.Rate(v.caller)
	if bound {
		setRate(v, rate, v.proxy.o.Now())
	}
	if k != nil {
		v.target, v.line.RedactedTarget = k.target.target, k.target.logged
		if v.proxy.o.Source.Spec.IsGeneric() {
			return generic{v}.serve()
		}
		return v.get()
	}
	if err := checkExpectation(v.r); err != nil {
		return err
	}
	if len(v.original.RequestURI) > spec.MaxURI {
		v.foreign = true
		return fmt.Errorf("proxy: %w: the request target is longer than %d bytes", understudy.ErrTooLong, spec.MaxURI)
	}
	if v.proxy.o.Source.Spec.IsGeneric() {
		return generic{v}.serve()
	}
	reads, named := method(v.r.Method)
	if !named {
		v.foreign = true
		return fmt.Errorf("proxy: %w", understudy.ErrMethod)
	}
	header, unknown, err := v.proxy.o.Source.Spec.Headers.ReadKey(v.r.Method, v.r.Header)
	if err == nil && unknown != "" && !v.isWhole() {
		err = spec.RefuseField(unknown) // the gate cannot hide fields in a format that it does not know
	}
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	switch {
	case asksRate && reads && bound:
		return sendOwnRate(v, rate)
	case asksRate && !reads:
		return fmt.Errorf("proxy: %s: %w", path, understudy.ErrMethod)
	case v.r.Method == http.MethodPost && v.proxy.o.Source.Spec.HasPostedRead(path):
		return v.servePost(header)
	}
	if v.target, err = v.findTarget(header); err != nil {
		v.foreign = true
		return err
	}
	// only a POST names the query, so this request cannot be checked
	if t := v.target; t.Kind == nil && v.proxy.o.Source.Spec.IsGraphQLPath(t.Key.Path()) {
		return fmt.Errorf("proxy: %w: send GraphQL as POST %s, spelled exactly like this", understudy.ErrInvalid, t.Key.Path())
	}
	if reads {
		return v.get()
	}
	return v.write()
}

// method reports whether a method reads, and whether it is a known method.
func method(name string) (reads, known bool) {
	switch name {
	case http.MethodGet, http.MethodHead:
		return true, true
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return false, true
	}
	return false, false
}

// parsedTarget is the target of a request line, and the request line as the access log shows it.
type parsedTarget struct {
	target *spec.Target
	logged string
}

// findTarget returns the request's target. It caches targets by the request line and the header fields that are
// part of the key.
func (v *exchange) findTarget(header understudy.Query) (*spec.Target, error) {
	uri := v.r.RequestURI
	key := uri
	if len(header) > 0 {
		key += " " + header.String()
	}
	if a, ok := v.proxy.targets.Get(key); ok {
		v.line.RedactedTarget = a.logged
		return a.target, nil
	}
	path, params, _ := strings.Cut(uri, "?")
	if !strings.HasPrefix(uri, "/") { // the request line has an absolute URL, as clients send it to a proxy
		path, params = v.r.URL.EscapedPath(), v.r.URL.RawQuery
	}
	t, err := v.proxy.o.Source.Spec.Resolve(v.proxy.o.Source.Name, path, params)
	if err == nil {
		if t.Media != nil { // media content has one type
			header = header.Remove(func(p understudy.Param) bool { return p.Name == "Accept" })
			if len(header) > 0 {
				return nil, fmt.Errorf("proxy: %w: a request for contents can't have the header %s", understudy.ErrInvalid, header[0].Name)
			}
		}
		t, err = t.WithHeader(header)
	}
	if err != nil {
		return nil, err
	}
	v.line.RedactedTarget = string(v.proxy.o.Log.AppendTarget(nil, uri))
	v.proxy.targets.Put(strings.Clone(key), parsedTarget{t, v.line.RedactedTarget}, int64(5*len(key)+targetWeight))
	return t, nil
}
