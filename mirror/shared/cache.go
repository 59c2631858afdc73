// The shared cache of generic sources: requests are passed on as they came, and answers are
// stored and reused by the RFCs.
//
//	request --> stored, and may be answered --> the stored answer
//	        --> not stored, or past fresh ----> one flight brings it for all who want it,
//	                                            or confirms what is stored
//	        --> a part, a condition, a HEAD --> an exchange of its own
//	        --> a write ----------------------> an exchange of its own; what it may have
//	                                            changed is no longer stored
//
// What may be done is decided in mirror/httpcache. An answer that may not be stored goes to
// the request that brought it alone, as a stream.

// Package shared answers requests to generic sources as a shared HTTP cache (RFC 9111).
package shared

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/kit/lru"
	"understudy/mirror/httpcache"
	"understudy/request"
	"understudy/spec"
)

// Upstream is what a cache needs of the upstream package.
type Upstream interface {
	// Exchange passes a request on. Errors: *understudy.UpstreamError, ErrUnknownOutcome,
	// ErrInvalid, the context's.
	Exchange(context.Context, request.Exchange) (*request.Exchanged, error)
}

// Pages are what is stored, in memory and in the store. The mirror fills it. All methods are
// called from many goroutines.
type Pages interface {
	// Find is a page in memory; nil: it is not there.
	Find(understudy.Key) *understudy.Page
	// Load returns a page in memory or in the store; ErrNotFound.
	Load(context.Context, understudy.Key) (*understudy.Page, error)
	// Keep stores a page; what it says of an error is that the store has it not.
	Keep(*understudy.Page) error
	// Forget forgets a page.
	Forget(context.Context, understudy.Key) error
}

// Fetch is what a flight does. Its context ends when nobody waits any more.
type Fetch func(context.Context) (*understudy.Page, error)

// Flights are the fetches under way. The mirror fills it.
type Flights interface {
	// Join waits for the flight of a target's key, which begins now with fetch unless one is
	// under way. With direct one that has brought its page already will not do.
	Join(ctx context.Context, t *spec.Target, flow uint64, direct bool, fetch Fetch) (p *understudy.Page, joined bool, err error)
	// FetchInBackground begins a flight that nobody waits for, unless one is under way.
	FetchInBackground(t *spec.Target, fetch Fetch)
	// Enter counts a reader that waits for upstream on its own; an error turns it away.
	Enter(flow uint64) error
	// Exit ends what Enter began.
	Exit(flow uint64)
}

// Options are a cache's settings. Pages and Flights must be set.
type Options struct {
	Pages   Pages
	Flights Flights
	Most    int64            // bytes of a body that is stored; 0 = 8 MiB
	Now     func() time.Time // the clock; nil = time.Now
	Logger  *slog.Logger     // nil = silence
}

// Cache is a shared cache. Its methods may be called by any number of goroutines.
type Cache struct {
	pages   Pages
	flights Flights
	most    int64
	now     func() time.Time
	log     *slog.Logger
	sources map[string]*source
	headers *lru.Cache[string, http.Header] // of pages, by Page.Header

	keeping sync.Mutex // held while what is stored of a URI changes
	under   map[understudy.Key]*underway
}

// underway are the exchanges of one URI under way.
type underway struct {
	count   int
	written int // writes that were answered meanwhile
}

// Bounds of what is stored and remembered.
const (
	defaultMost = 8 << 20
	mostHeaders = 8 << 20
)

// New makes a cache without sources.
func New(o Options) *Cache {
	o.Most = cmp.Or(o.Most, defaultMost)
	understudy.SetDefaults(&o.Logger, &o.Now)
	return &Cache{pages: o.Pages, flights: o.Flights, most: o.Most, now: o.Now, log: o.Logger, sources: map[string]*source{},
		headers: lru.New[string, http.Header](mostHeaders), under: map[understudy.Key]*underway{}}
}

// AddSource adds a generic source, before the first Do.
func (c *Cache) AddSource(name string, up Upstream) { c.sources[name] = &source{Upstream: up} }

// source is a generic source.
type source struct {
	Upstream
	lost  atomic.Int64 // Unix nanoseconds: what was stored until then does not count
	ended atomic.Int64 // invalidations of its URIs
}

// Exchange passes a request on. A 304 to one without a condition is no answer (RFC 9110, 15.4.5).
func (s *source) Exchange(ctx context.Context, x request.Exchange) (*request.Exchanged, error) {
	got, err := s.Upstream.Exchange(ctx, x)
	asked := len(x.Header["If-None-Match"])+len(x.Header["If-Modified-Since"]) > 0
	if err == nil && got.Response.Page.Status == http.StatusNotModified && !asked {
		_ = got.Close()
		return nil, &understudy.UpstreamError{Why: understudy.FailUnusable, Err: errors.New("304 to a request without a condition")}
	}
	return got, err
}

// Do answers a request, from what is stored or from upstream. The answer must be closed.
//
// Errors: ErrNotHeld (only-if-cached), ErrUnavailable (nearly always an
// *understudy.UpstreamError), ErrUnknownOutcome of a write, ErrInvalid, ErrClosed, the
// context's.
func (c *Cache) Do(ctx context.Context, x request.Exchange) (*request.Exchanged, error) {
	up := c.sources[x.Target.Key.Source]
	if up == nil {
		return nil, fmt.Errorf("mirror: %w: no such generic source", understudy.ErrInvalid)
	}
	x.Header = httpcache.EndToEnd(x.Header)
	r := &reading{exchange: x, up: up, ended: up.ended.Load(), q: httpcache.Request{Method: x.Method, URI: x.Target.Key.URI, Header: x.Header}}
	switch {
	case !httpcache.Safe(x.Method):
		return c.write(ctx, r)
	case x.Method != http.MethodGet && x.Method != http.MethodHead || len(x.Body) > 0:
		return c.alone(ctx, r, x, "method")
	case misleading(x.Target, x.Header):
		return c.alone(ctx, r, x, "bypass")
	}
	if err := c.look(ctx, r); err != nil {
		return nil, err
	}
	if r.decision.Answer && !r.q.ForOrigin() {
		if r.decision.Refresh && !r.q.OnlyIfCached() {
			c.refresh(r)
		}
		return c.hit(r, ""), nil
	}
	switch {
	case r.q.OnlyIfCached():
		return nil, fmt.Errorf("mirror: %s: %w", x.Target.Key, understudy.ErrNotHeld)
	case x.Method == http.MethodHead:
		return c.head(ctx, r)
	case r.q.ForOrigin() || r.held == nil && r.q.Partial():
		return c.aside(ctx, r)
	}
	return c.join(ctx, r)
}

// misleading reports a field that the settings pass, on which answers depend though it is no
// part of their key.
func misleading(t *spec.Target, h http.Header) bool {
	if len(t.Spec.Headers.Pass) == 0 {
		return false
	}
	for name := range h {
		if spec.Misleads(name) {
			return true
		}
	}
	return false
}

// reading is one request on its way.
type reading struct {
	exchange request.Exchange
	q        httpcache.Request
	up       *source
	ended    int64       // invalidations before held was looked for
	held     *stored     // nil: nothing
	miss     string      // with nothing held: why (RFC 9211, 2.2)
	own      http.Header // of the answer that it brought, for this request alone
	decision httpcache.Decision
}

// stored is a stored answer.
type stored struct {
	response httpcache.Response
	page     *understudy.Page
}

// fwd is why the request went upstream.
func (r *reading) fwd() string {
	switch {
	case r.held == nil:
		return r.miss
	case r.decision.Left > 0:
		return "request"
	}
	return "stale"
}

// hit answers with what is stored. detail says why, where it is past fresh.
func (c *Cache) hit(r *reading, detail string) *request.Exchanged {
	now := c.now()
	a := &request.Exchanged{Response: request.Response{Page: r.held.page, Outcome: request.Warm, Stored: true, Detail: detail,
		Age: max(0, now.Sub(r.held.page.At)), TTL: r.decision.Left}, Header: r.held.response.Header}
	if r.decision.Left <= 0 {
		a.Response.Outcome = request.Stale
	}
	return a
}

// rescued is what is stored where upstream failed, if upstream permits that; else the error.
func (c *Cache) rescued(ctx context.Context, r *reading, err error) (*request.Exchanged, error) {
	var why *understudy.UpstreamError
	if r.held == nil || !r.decision.Down || ctx.Err() != nil || !errors.As(err, &why) {
		return nil, err
	}
	return c.hit(r, "stale: "+why.Short()), nil
}

// failed reports an answer in place of which a stale one may be given (RFC 5861, 4).
func failed(status int) bool { return status == 500 || status >= 502 && status <= 504 }
