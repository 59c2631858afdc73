// The shared cache of generic sources: it sends requests to upstream unchanged, and stores and reuses the responses
// according to the RFCs.
//
// A fresh stored response is the answer at once. Otherwise one flight fetches the response, or asks upstream to
// confirm the stored one, for all requests that want it. A request for a range, a request with a condition that only
// upstream can evaluate, and a HEAD each get an exchange of their own. So does a write. Responses that the write may
// have changed are then no longer used.
//
// Package httpcache decides what may be stored and reused. A response that may not be stored is streamed only to the
// request that caused it.

// Package shared answers requests to generic sources as a shared HTTP cache (RFC 9111).
package shared

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/kit/lru"
	"understudy/mirror/httpcache"
	"understudy/request"
	"understudy/spec"

	"understudy/kit/lockwatch"
)

// Upstream is the part of package upstream that the cache needs.
type Upstream interface {
	// Exchange sends a request to upstream. Errors: *understudy.UpstreamError, ErrUnknownOutcome, ErrInvalid, and the
	// context's error.
	Exchange(context.Context, request.Exchange) (*request.ExchangeResponse, error)
}

// Pages has the stored responses as pages, in memory and in the store. The mirror implements it. It must be safe for
// concurrent use.
type Pages interface {
	// Find returns a page from memory, or nil.
	Find(understudy.Key) *understudy.Page
	// Load returns a page from memory or from the store, or ErrNotFound.
	Load(context.Context, understudy.Key) (*understudy.Page, error)
	// Keep stores a page. If it returns an error, the page is not in the store.
	Keep(*understudy.Page) error
	// Forget deletes a page.
	Forget(context.Context, understudy.Key) error
}

// Fetch is the function that a flight runs. Its context ends when nobody waits for the flight any more.
type Fetch func(context.Context) (*understudy.Page, error)

// Flights are the running fetches. The mirror implements it.
type Flights interface {
	// Join waits for the flight for a target's key. If none is running, it starts one that runs fetch. If direct is
	// true, it does not accept a page of a flight that has already ended.
	Join(ctx context.Context, t *spec.Target, flow uint64, direct bool, fetch Fetch) (p *understudy.Page, joined bool, err error)
	// FetchInBackground starts a flight that nobody waits for, unless a flight for the key is running.
	FetchInBackground(t *spec.Target, fetch Fetch)
	// Enter counts a reader that starts to wait for upstream without a flight. It returns an error if too many readers wait.
	Enter(flow uint64) error
	// Exit must be called when a reader that Enter has counted no longer waits.
	Exit(flow uint64)
}

// Options are the settings of a Cache. Pages and Flights are required.
type Options struct {
	Pages   Pages
	Flights Flights
	MaxBody int64            // the maximum size in bytes of a stored body; 0 means 8 MiB
	Now     func() time.Time // the function that returns the time; nil means time.Now
	Logger  *slog.Logger     // the log; nil means that nothing is logged
}

// Cache is a shared HTTP cache. It is safe for concurrent use.
type Cache struct {
	pages   Pages
	flights Flights
	maxBody int64
	now     func() time.Time
	log     *slog.Logger
	sources map[string]*source
	headers *lru.Cache[string, http.Header] // the parsed headers of pages, by the value of Page.Header

	mu      lockwatch.Mutex // is locked while stored responses for an address are replaced or deleted
	running map[understudy.Key]*exchanges
}

// exchanges counts the requests for one URI that have been sent to upstream and not been answered yet.
type exchanges struct {
	count   int
	written int // the number of writes to the URI that were answered in the meantime
}

// Limits for stored responses.
const (
	defaultMaxBody = 8 << 20
	maxHeaders     = 8 << 20
)

// New returns a cache that has no sources yet.
func New(o Options) *Cache {
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	understudy.SetDefaults(&o.Logger, &o.Now)
	return &Cache{pages: o.Pages, flights: o.Flights, maxBody: o.MaxBody, now: o.Now, log: o.Logger, sources: map[string]*source{},
		headers: lru.New[string, http.Header](maxHeaders), running: map[understudy.Key]*exchanges{}}
}

// AddSource adds the client of a generic source. It must be called before the first Answer.
func (c *Cache) AddSource(name string, up Upstream) { c.sources[name] = &source{Upstream: up} }

// source is a generic source.
type source struct {
	Upstream
	ignoredUntil  atomic.Int64 // responses stored before this time, in Unix nanoseconds, are ignored
	invalidations atomic.Int64 // the number of invalidations of the source's addresses
}

// Exchange sends a request to upstream. It returns an error if upstream answers 304 although the request has no
// condition (RFC 9110, 15.4.5).
func (s *source) Exchange(ctx context.Context, x request.Exchange) (*request.ExchangeResponse, error) {
	got, err := s.Upstream.Exchange(ctx, x)
	asked := len(x.Header["If-None-Match"])+len(x.Header["If-Modified-Since"]) > 0
	if err == nil && got.Response.Page.Status == http.StatusNotModified && !asked {
		_ = got.Close()
		return nil, &understudy.UpstreamError{Why: understudy.FailUnusable, Err: errors.New("304 to a request without a condition")}
	}
	return got, err
}

// Answer answers a request with a stored response or from upstream. The caller must close the response.
//
// Errors: ErrNoStoredAnswer (only-if-cached), ErrUnavailable (nearly always an *understudy.UpstreamError),
// ErrUnknownOutcome for a write, ErrInvalid, ErrClosed, and the context's error.
func (c *Cache) Answer(ctx context.Context, x request.Exchange) (*request.ExchangeResponse, error) {
	up := c.sources[x.Target.Key.Source]
	if up == nil {
		return nil, fmt.Errorf("mirror: %w: no such generic source", understudy.ErrInvalid)
	}
	x.Header = httpcache.EndToEnd(x.Header)
	r := &reading{exchange: x, source: up, invalidations: up.invalidations.Load(),
		q: httpcache.Request{Method: x.Method, URI: x.Target.Key.URI, Header: x.Header}}
	switch {
	case !httpcache.IsSafe(x.Method):
		return c.write(ctx, r)
	case x.Method != http.MethodGet && x.Method != http.MethodHead || len(x.Body) > 0:
		return c.exchangeUnstored(ctx, r, x, "method")
	case isMisleading(x.Target, x.Header):
		return c.exchangeUnstored(ctx, r, x, "bypass")
	}
	if err := c.lookUp(ctx, r); err != nil {
		return nil, err
	}
	if r.decision.Answer && !r.q.IsForOrigin() {
		if r.decision.Refresh && !r.q.IsOnlyIfCached() {
			again := *r
			again.exchange.Reason = request.ReasonRefresh
			c.flights.FetchInBackground(r.flight(), c.fetch(&again, nil))
		}
		return c.answerStored(r, ""), nil
	}
	switch {
	case r.q.IsOnlyIfCached():
		return nil, fmt.Errorf("mirror: %s: %w", x.Target.Key, understudy.ErrNoStoredAnswer)
	case x.Method == http.MethodHead:
		return c.answerHead(ctx, r)
	case r.q.IsForOrigin() || r.stored == nil && r.q.IsPartial():
		return c.exchangeForOne(ctx, r)
	}
	return c.join(ctx, r)
}

// isMisleading reports whether the header has a field on which responses depend, but which is not part of their key.
// This happens to fields that the settings pass to upstream.
func isMisleading(t *spec.Target, h http.Header) bool {
	if len(t.Spec.Headers.Pass) == 0 {
		return false
	}
	for name := range h {
		if spec.IsMisleading(name) {
			return true
		}
	}
	return false
}

// reading is a request while it is being answered.
type reading struct {
	exchange      request.Exchange
	q             httpcache.Request
	source        *source
	invalidations int64       // the number of the source's invalidations before the stored response was looked up
	stored        *stored     // the stored response; nil if there is none
	miss          string      // why there is no stored response, as RFC 9211, 2.2 names it
	privateFields http.Header // the header fields of upstream's response that are only for this request
	decision      httpcache.Decision
}

// stored is a stored response.
type stored struct {
	response httpcache.Response
	page     *understudy.Page
}

// forwardReason returns why the request was sent to upstream, as RFC 9211, 2.2 names it.
func (r *reading) forwardReason() string {
	switch {
	case r.stored == nil:
		return r.miss
	case r.decision.FreshLeft > 0:
		return "request"
	}
	return "stale"
}

// answerStored answers with the stored response. If it is stale, detail says why it is used.
func (c *Cache) answerStored(r *reading, detail string) *request.ExchangeResponse {
	now := c.now()
	a := &request.ExchangeResponse{Response: request.Response{Page: r.stored.page, Outcome: request.Warm, Stored: true, Detail: detail,
		Age: max(0, now.Sub(r.stored.page.At)), TTL: r.decision.FreshLeft}, Header: r.stored.response.Header}
	if r.decision.FreshLeft <= 0 {
		a.Response.Outcome = request.Stale
	}
	return a
}

// answerAfterFailure answers with the stored response after upstream has failed. If upstream's headers forbid that,
// it returns err.
func (c *Cache) answerAfterFailure(ctx context.Context, r *reading, err error) (*request.ExchangeResponse, error) {
	var why *understudy.UpstreamError
	if r.stored == nil || !r.decision.AnswerIfDown || ctx.Err() != nil || !errors.As(err, &why) {
		return nil, err
	}
	return c.answerStored(r, "stale: "+why.ShortText()), nil
}

// isServerError reports whether a stale response may be used instead of a response with this status (RFC 5861, 4).
func isServerError(status int) bool { return status == 500 || status >= 502 && status <= 504 }
