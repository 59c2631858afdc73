// The shared cache of generic sources: requests are sent unchanged, and answers are stored and reused as the
// RFCs say.
//
// A fresh stored answer is returned at once. Otherwise one flight fetches or revalidates the answer for all
// requests that want it. A range, a condition that only upstream can check, or a HEAD gets an exchange of its
// own. So does a write, after which the answers that it may have changed are no longer stored.
//
// Package httpcache decides what may be stored and answered. An answer that may not be stored is streamed
// only to the request that caused it.

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

// Upstream is the part of package upstream that the cache needs.
type Upstream interface {
	// Exchange sends a request to upstream. Errors: *understudy.UpstreamError, ErrUnknownOutcome, ErrInvalid,
	// the context's error.
	Exchange(context.Context, request.Exchange) (*request.ExchangeResponse, error)
}

// Pages are the stored pages, in memory and in the store. The mirror implements it. Many goroutines call its
// methods at once.
type Pages interface {
	// Find returns a page from memory, or nil.
	Find(understudy.Key) *understudy.Page
	// Load returns a page from memory or from the store, or ErrNotFound.
	Load(context.Context, understudy.Key) (*understudy.Page, error)
	// Keep stores a page. After an error the page is not in the store.
	Keep(*understudy.Page) error
	// Forget deletes a page.
	Forget(context.Context, understudy.Key) error
}

// Fetch is the function that a flight runs. Its context ends when nobody waits any more.
type Fetch func(context.Context) (*understudy.Page, error)

// Flights are the fetches under way. The mirror implements it.
type Flights interface {
	// Join waits for the flight of a target's key, and starts it with fetch if none is under way. With direct
	// it does not accept the page of a completed flight.
	Join(ctx context.Context, t *spec.Target, flow uint64, direct bool, fetch Fetch) (p *understudy.Page, joined bool, err error)
	// FetchInBackground starts a flight without a waiter unless one is under way.
	FetchInBackground(t *spec.Target, fetch Fetch)
	// Enter counts a reader that starts to wait for upstream without a flight. It returns an error if too many
	// wait.
	Enter(flow uint64) error
	// Exit ends what Enter counted.
	Exit(flow uint64)
}

// Options are the settings of a Cache. Pages and Flights are required.
type Options struct {
	Pages   Pages
	Flights Flights
	MaxBody int64            // the maximum size of a stored body, in bytes; 0 means 8 MiB
	Now     func() time.Time // the clock; nil means time.Now
	Logger  *slog.Logger     // nil means no log
}

// Cache is a shared cache. Any number of goroutines may call its methods at once.
type Cache struct {
	pages   Pages
	flights Flights
	maxBody int64
	now     func() time.Time
	log     *slog.Logger
	sources map[string]*source
	headers *lru.Cache[string, http.Header] // parsed headers of pages, by Page.Header

	mu      sync.Mutex // held while the stored answers of a URI change
	running map[understudy.Key]*exchanges
}

// exchanges counts the exchanges of one URI that are under way.
type exchanges struct {
	count   int
	written int // counts the writes that were answered during the exchanges
}

// Limits of what is stored.
const (
	defaultMaxBody = 8 << 20
	maxHeaders     = 8 << 20
)

// New returns a cache without sources.
func New(o Options) *Cache {
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	understudy.SetDefaults(&o.Logger, &o.Now)
	return &Cache{pages: o.Pages, flights: o.Flights, maxBody: o.MaxBody, now: o.Now, log: o.Logger, sources: map[string]*source{},
		headers: lru.New[string, http.Header](maxHeaders), running: map[understudy.Key]*exchanges{}}
}

// AddSource adds a generic source. Call it before the first Answer.
func (c *Cache) AddSource(name string, up Upstream) { c.sources[name] = &source{Upstream: up} }

// source is a generic source.
type source struct {
	Upstream
	ignoredUntil  atomic.Int64 // answers stored until then are ignored, as Unix nanoseconds
	invalidations atomic.Int64 // counts the invalidations of the source's URIs
}

// Exchange sends a request to upstream. It returns an error for a 304 to a request without a condition (RFC
// 9110, 15.4.5).
func (s *source) Exchange(ctx context.Context, x request.Exchange) (*request.ExchangeResponse, error) {
	got, err := s.Upstream.Exchange(ctx, x)
	asked := len(x.Header["If-None-Match"])+len(x.Header["If-Modified-Since"]) > 0
	if err == nil && got.Response.Page.Status == http.StatusNotModified && !asked {
		_ = got.Close()
		return nil, &understudy.UpstreamError{Why: understudy.FailUnusable, Err: errors.New("304 to a request without a condition")}
	}
	return got, err
}

// Answer answers a request from a stored answer or from upstream. The caller must close the answer.
//
// Errors: ErrNoStoredAnswer (only-if-cached), ErrUnavailable (nearly always an *understudy.UpstreamError),
// ErrUnknownOutcome of a write, ErrInvalid, ErrClosed, the context's error.
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
	if err := c.look(ctx, r); err != nil {
		return nil, err
	}
	if r.decision.Answer && !r.q.IsForOrigin() {
		if r.decision.Refresh && !r.q.IsOnlyIfCached() {
			c.refresh(r)
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

// isMisleading reports whether the header has a field that the settings pass to upstream and on which answers
// depend, although it is not part of their key.
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

// reading is the state of one request while it is answered.
type reading struct {
	exchange      request.Exchange
	q             httpcache.Request
	source        *source
	invalidations int64       // number of invalidations before the lookup
	stored        *stored     // nil if there is no stored answer
	miss          string      // why there is no stored answer (RFC 9211, 2.2)
	privateFields http.Header // fields of the fetched answer that are only for this request
	decision      httpcache.Decision
}

// stored is a stored answer.
type stored struct {
	response httpcache.Response
	page     *understudy.Page
}

// forwardReason returns why the request was sent to upstream.
func (r *reading) forwardReason() string {
	switch {
	case r.stored == nil:
		return r.miss
	case r.decision.FreshLeft > 0:
		return "request"
	}
	return "stale"
}

// answerStored answers with the stored answer. detail says why, if it is stale.
func (c *Cache) answerStored(r *reading, detail string) *request.ExchangeResponse {
	now := c.now()
	a := &request.ExchangeResponse{Response: request.Response{Page: r.stored.page, Outcome: request.Warm, Stored: true, Detail: detail,
		Age: max(0, now.Sub(r.stored.page.At)), TTL: r.decision.FreshLeft}, Header: r.stored.response.Header}
	if r.decision.FreshLeft <= 0 {
		a.Response.Outcome = request.Stale
	}
	return a
}

// answerAfterFailure answers with the stored answer after upstream failed, if upstream permits that.
// Otherwise it returns err.
func (c *Cache) answerAfterFailure(ctx context.Context, r *reading, err error) (*request.ExchangeResponse, error) {
	var why *understudy.UpstreamError
	if r.stored == nil || !r.decision.AnswerIfDown || ctx.Err() != nil || !errors.As(err, &why) {
		return nil, err
	}
	return c.answerStored(r, "stale: "+why.ShortText()), nil
}

// isServerError reports whether a stale answer may replace an answer with that status (RFC 5861, 4).
func isServerError(status int) bool { return status == 500 || status >= 502 && status <= 504 }
