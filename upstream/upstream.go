// Client: the connection to one source.

// Package upstream sends requests to the slow API within its limits. It reads spec files. It fetches and writes within
// a budget, finds the records in answers and empties the secrets in them.
package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"understudy"
	"understudy/kit/semaphore"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream/body"
	"understudy/upstream/throttle"
)

// Options are a client's settings. A zero value means the default, where one is given.
type Options struct {
	Source *spec.Source      // the source, whose spec must be compiled; required
	Base   string            // the upstream's URL; "" means the hosts in the spec
	User   string            // the user name for Basic authentication; "" means the source's user
	Secret understudy.Secret // the password or the bearer token for the upstream
	// Pool are more secrets of the same account. They are used in turn with Secret, and their limits add up.
	Pool   []understudy.Secret
	Tokens Tokens // exchanges secrets for tokens; nil if requests carry the secrets themselves

	Rate        float64 // the maximum number of requests a second; default 10
	Concurrency int     // the maximum number of requests at the same time; default 20
	Queue       int     // the maximum number of requests that wait for the budget; default 1000
	// Prefetch is how long a prefetch may wait for the budget before it is dropped; default 2 s.
	Prefetch time.Duration
	MaxBody  int64 // the maximum size of a body in bytes, compressed and decompressed; default 64 MiB
	// MaxMedia is the maximum size of a media content in bytes; default 1 GiB.
	MaxMedia int64

	Connect   time.Duration // the time limit for connecting, including TLS; default 5 s
	FirstByte time.Duration // the time limit from the connection to the response header; default 25 s
	Stall     time.Duration // the time limit between two reads of a body; default 10 s
	Total     time.Duration // the time limit for one try; default 30 s

	Bodies *semaphore.Weighted // the memory budget for bodies being read; nil means MaxBody for this client alone

	Transport http.RoundTripper // the transport for requests; nil means the client's own transport, which uses no proxy
	Now       func() time.Time  // the clock; nil means time.Now
	Logger    *slog.Logger      // receives a line when the upstream's state changes; nil means no log
	UserAgent string            // the User-Agent header; default "understudy"
}

// Defaults of the settings that may change while a client is in use.
const (
	defaultRate        = 10.0
	defaultConcurrency = 20
	defaultQueue       = 1000
)

// defaultTo returns v, or otherwise if v is 0.
func defaultTo[T float64 | int | int64 | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

func (o *Options) setDefaults() {
	o.Rate, o.Concurrency = defaultTo(o.Rate, defaultRate), defaultTo(o.Concurrency, defaultConcurrency)
	o.Queue = defaultTo(o.Queue, defaultQueue)
	o.Prefetch, o.MaxBody = defaultTo(o.Prefetch, 2*time.Second), defaultTo(o.MaxBody, 64<<20)
	o.Connect, o.FirstByte = defaultTo(o.Connect, 5*time.Second), defaultTo(o.FirstByte, 25*time.Second)
	o.Stall, o.Total = defaultTo(o.Stall, 10*time.Second), defaultTo(o.Total, 30*time.Second)
	if o.Bodies == nil {
		o.Bodies = semaphore.New(semaphore.Options{Limit: o.MaxBody})
	}
	o.Base = strings.TrimSuffix(o.Base, "/")
	o.User = cmp.Or(o.User, o.Source.User)
	understudy.SetDefaults(&o.Logger, &o.Now)
	o.UserAgent = cmp.Or(o.UserAgent, "understudy")
}

// throttle returns the options of budget and breaker.
func (o *Options) throttle() throttle.Options {
	return throttle.Options{
		Rate: o.Rate, Concurrency: o.Concurrency, Queue: o.Queue, Prefetch: o.Prefetch,
		Source: o.Source.Name, Now: o.Now, Logger: o.Logger,
	}
}

// Client sends requests to one source. It is safe for concurrent use.
type Client struct {
	o           Options
	credential  *credential
	connections *connections
	bodies      *body.Reader
	pages       *pageBuilder
	pace        latencies
	media       *originPolicy
	budget      *throttle.Budget
	breaker     *throttle.Breaker
	resources   resources
	counts      throttle.Counts
	life        lifetime
}

// New creates a client. It sends nothing by itself. Close frees its resources.
func New(o Options) (*Client, error) {
	if o.Source == nil || o.Source.Spec == nil {
		return nil, errors.New("upstream: new client: no source with a spec")
	}
	o.setDefaults()
	if o.Base != "" && !isBase(o.Base) {
		return nil, fmt.Errorf("upstream: source %s: write its upstream as http(s)://host[:port], without user or query", o.Source.Name)
	}
	schemes, err := o.Source.Spec.Auth.ParseSent()
	if err != nil {
		return nil, fmt.Errorf("upstream: source %s: auth: %w", o.Source.Name, err)
	}
	var life lifetime
	life.ctx, life.end = context.WithCancel(context.Background())
	cred := &credential{schemes: schemes, tokens: o.Tokens, lifetime: life.ctx, now: o.Now, log: o.Logger.With("source", o.Source.Name)}
	cred.set(o.User, append([]understudy.Secret{o.Secret}, o.Pool...))
	return &Client{
		o: o, credential: cred, connections: newConnections(&o),
		bodies: body.NewReader(o.Source.Name, o.MaxBody), pages: newPageBuilder(&o, cred),
		media: newOriginPolicy(&o), budget: throttle.NewBudget(o.throttle()), breaker: throttle.NewBreaker(o.throttle()), life: life,
	}, nil
}

// isBase reports whether a URL has only scheme, host and path.
func isBase(base string) bool {
	u, err := url.Parse(base)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// SetCredential replaces the secrets and the user; an empty user keeps the former user. If the source refused the
// former secrets, a probe is sent at once. A request that was refused with a former secret after its replacement is
// sent again.
func (c *Client) SetCredential(user string, secret understudy.Secret, pool ...understudy.Secret) {
	c.credential.set(user, append([]understudy.Secret{secret}, pool...))
	c.breaker.NoteNewCredential()
}

// Close ends running requests with ErrClosed and closes idle connections. The client must not be used afterwards.
func (c *Client) Close() error {
	c.budget.Close() // closed before the requests are ended, so that callers that try again are refused
	c.life.end()
	c.connections.close()
	c.media.close()
	return nil
}

// lifetime ends with Close.
type lifetime struct {
	ctx context.Context
	end context.CancelFunc
}

// withLifetime returns a context that ends with ctx or with the lifetime.
func (l *lifetime) withLifetime(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(understudy.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// Health is the state of a source, for people.
type Health struct {
	State     string          // the name of the state: ok, down, credential or limited
	Why       string          // the last failure, or "" if State is ok
	Since     time.Time       // when the state began
	NextProbe time.Time       // when the next probe is sent; zero if State is ok
	Recent    []time.Duration // the times of the last answers, up to 120, the oldest first
}

// Budget returns the budget, which other processes may use too.
func (c *Client) Budget() *throttle.Budget { return c.budget }

// Breaker returns the breaker, which has the waits that the upstream asked for.
func (c *Client) Breaker() *throttle.Breaker { return c.breaker }

// Queue returns how full the queue is.
func (c *Client) Queue() throttle.Queue { return c.budget.Stats() }

// Rate returns how many more requests the upstream accepts for a target and similar targets, as its answers report it
// in the fields that the spec names. ok is false if they do not report it. After the end of a window all requests of it
// are left.
func (c *Client) Rate(t *spec.Target, now time.Time) (r understudy.Rate, ok bool) {
	if !c.budget.HasWindows() {
		return r, false
	}
	w := c.budget.Window(c.resources.limitFor(placeOf(t)))
	switch {
	case w == nil || !w.Named:
		return r, false
	case !now.Before(w.Ends):
		return understudy.Rate{Limit: w.Limit, Remaining: w.Limit}, true
	}
	return understudy.Rate{Limit: w.Limit, Remaining: w.Left, Reset: w.Ends.Sub(now)}, true
}

// SetBudget replaces the maximum number of requests a second and of requests at the same time; zero means the default.
// Running requests continue.
func (c *Client) SetBudget(rate float64, concurrency int) {
	c.budget.SetRate(defaultTo(rate, defaultRate), defaultTo(concurrency, defaultConcurrency))
}

// SetQueue replaces the maximum number of requests that wait for the budget; 0 means the default.
func (c *Client) SetQueue(limit int) {
	c.budget.SetQueue(defaultTo(limit, defaultQueue))
}

// Stats returns the counters.
func (c *Client) Stats() request.SentCounts { return c.counts.Stats() }

// Spending returns the requests of the last SpendingRetention, by periods. name returns the name of a flow's caller, or
// "" if it is unknown.
func (c *Client) Spending(name func(flow uint64) string) []request.Spending {
	return c.counts.Spending(c.o.Now(), name)
}

// OutageReason returns why no request can be sent to the source, or "".
func (h Health) OutageReason() string {
	if h.State == "ok" {
		return ""
	}
	return cmp.Or(h.Why, h.State)
}

// Health returns the current state.
func (c *Client) Health() Health {
	var h Health
	h.State, h.Why, h.Since, h.NextProbe = c.breaker.State(c.resources.limitFor(""))
	h.Recent = c.counts.AnswerTimes()
	return h
}
