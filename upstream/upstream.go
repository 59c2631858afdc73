// Client: the connection to one source.

// Package upstream speaks to the slow API, politely: it reads spec files,
// fetches and writes within a budget, finds the records in answers and empties
// the secrets in them.
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

// Options are a client's settings; zero values are the defaults named.
type Options struct {
	Source *spec.Source      // with a compiled spec; required
	Base   string            // upstream's URL; "" = the spec's hosts
	User   string            // of Basic auth; "" = the source's user
	Secret understudy.Secret // password or bearer token
	// Pool are more secrets of the same account, used beside Secret: their limits add up.
	Pool   []understudy.Secret
	Tokens Tokens // nil: the secrets themselves are sent

	Rate        float64 // requests a second: 10
	Concurrency int     // requests at once: 20
	Queue       int     // requests that may wait for budget: 1000
	// Prefetch is how long a prefetch may wait for budget before it is dropped: 2 s.
	Prefetch time.Duration
	MaxBody  int64 // bytes of a body, on the wire and decompressed: 64 MiB
	// MaxMedia is the bytes of a content: 1 GiB.
	MaxMedia int64

	Connect   time.Duration // for a connection, TLS included: 5 s
	FirstByte time.Duration // from the connection to the answer's head, at most: 25 s
	Stall     time.Duration // between two reads of a body, at most: 10 s
	Total     time.Duration // for one try: 30 s

	Bodies *semaphore.Weighted // the memory for bodies that are being read; nil: MaxBody, for this client

	Transport http.RoundTripper // nil: our own, which uses no proxy
	Now       func() time.Time  // nil: time.Now
	Logger    *slog.Logger      // nil: discard; told when upstream's state changes
	UserAgent string            // "understudy"
}

// Settings that may change while a client runs have their default here.
const (
	defaultRate        = 10.0
	defaultConcurrency = 20
	defaultQueue       = 1000
)

// or is v, or otherwise when v is not set.
func or[T float64 | int | int64 | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

func (o *Options) defaults() {
	o.Rate, o.Concurrency, o.Queue = or(o.Rate, defaultRate), or(o.Concurrency, defaultConcurrency), or(o.Queue, defaultQueue)
	o.Prefetch, o.MaxBody = or(o.Prefetch, 2*time.Second), or(o.MaxBody, 64<<20)
	o.Connect, o.FirstByte = or(o.Connect, 5*time.Second), or(o.FirstByte, 25*time.Second)
	o.Stall, o.Total = or(o.Stall, 10*time.Second), or(o.Total, 30*time.Second)
	if o.Bodies == nil {
		o.Bodies = semaphore.New(semaphore.Options{Limit: o.MaxBody})
	}
	o.Base = strings.TrimSuffix(o.Base, "/")
	o.User = cmp.Or(o.User, o.Source.User)
	understudy.SetDefaults(&o.Logger, &o.Now)
	o.UserAgent = cmp.Or(o.UserAgent, "understudy")
}

// throttle is what budget and breaker need of the options.
func (o *Options) throttle() throttle.Options {
	return throttle.Options{
		Rate: o.Rate, Concurrency: o.Concurrency, Queue: o.Queue, Prefetch: o.Prefetch,
		Source: o.Source.Name, Now: o.Now, Logger: o.Logger,
	}
}

// Client speaks to one source. It is safe for concurrent use.
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

// New makes a client. It sends nothing by itself. Close frees it.
func New(o Options) (*Client, error) {
	if o.Source == nil || o.Source.Spec == nil {
		return nil, errors.New("upstream: new client: no source with a spec")
	}
	o.defaults()
	if o.Base != "" && !isBase(o.Base) {
		return nil, fmt.Errorf("upstream: source %s: want its upstream as http(s)://host[:port], without user or query", o.Source.Name)
	}
	schemes, err := o.Source.Spec.Auth.ParseSent()
	if err != nil {
		return nil, fmt.Errorf("upstream: source %s: auth: %w", o.Source.Name, err)
	}
	var life lifetime
	life.ctx, life.end = context.WithCancel(context.Background())
	cred := &credential{schemes: schemes, tokens: o.Tokens, life: life.ctx, now: o.Now, log: o.Logger.With("source", o.Source.Name)}
	cred.set(o.User, append([]understudy.Secret{o.Secret}, o.Pool...))
	return &Client{
		o: o, credential: cred, connections: newConnections(&o),
		bodies: body.NewReader(o.Source.Name, o.MaxBody), pages: newPageBuilder(&o, cred),
		media: newOriginPolicy(&o), budget: throttle.NewBudget(o.throttle()), breaker: throttle.NewBreaker(o.throttle()), life: life,
	}, nil
}

// isBase reports a URL of scheme, host and path alone.
func isBase(base string) bool {
	u, err := url.Parse(base)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// SetCredential replaces user ("" keeps it) and secrets. A source that
// refused the former ones is probed at once; a request they were refused for
// after they were replaced is sent again.
func (c *Client) SetCredential(user string, secret understudy.Secret, pool ...understudy.Secret) {
	c.credential.set(user, append([]understudy.Secret{secret}, pool...))
	c.breaker.CredentialReplaced()
}

// Close ends what is under way with ErrClosed and closes idle connections.
// The client must not be used afterwards.
func (c *Client) Close() error {
	c.budget.Close() // first: a caller that ends and asks again at once is refused
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

// until is ctx that also ends with the lifetime.
func (l *lifetime) until(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(understudy.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}

// Health is the state of a source, for people.
type Health struct {
	State     string          // ok, down, credential, limited
	Why       string          // the last failure; "" when ok
	Since     time.Time       // when the state began
	NextProbe time.Time       // when upstream is asked again; zero when ok
	Recent    []time.Duration // the last 120 answer times at most, oldest first
}

// Queue is how full the queue is now.
func (c *Client) Queue() throttle.Queue { return c.budget.Stats() }

// Rate returns how many requests like those for a target upstream still takes at a time, as its answers tell in the fields
// that the spec names. ok is false where they tell nothing. Once a window has ended, all of it is left.
func (c *Client) Rate(t *spec.Target, now time.Time) (r understudy.Rate, ok bool) {
	if !c.budget.HasWindows() {
		return r, false
	}
	w := c.budget.Window(c.resources.of(placeOf(t)))
	switch {
	case w == nil || !w.Named:
		return r, false
	case !now.Before(w.Ends):
		return understudy.Rate{Limit: w.Limit, Remaining: w.Limit}, true
	}
	return understudy.Rate{Limit: w.Limit, Remaining: w.Left, Reset: w.Ends.Sub(now)}, true
}

// SetBudget replaces how many requests a second and at once go out; zero
// values are the defaults. What is under way goes on.
func (c *Client) SetBudget(rate float64, concurrency int) {
	c.budget.SetRate(or(rate, defaultRate), or(concurrency, defaultConcurrency))
}

// SetQueue replaces how many requests may wait for budget; 0 is the default.
func (c *Client) SetQueue(limit int) {
	c.budget.SetQueue(or(limit, defaultQueue))
}

// Stats are the counters now.
func (c *Client) Stats() request.SentCounts { return c.counts.Stats() }

// Spending is what was sent lately, in spans. name is the name of a flow's caller, "" when
// it is not known.
func (c *Client) Spending(name func(flow uint64) string) []request.Spending {
	return c.counts.Spending(c.o.Now(), name)
}

// Down returns why the source cannot be asked; "" when it can.
func (h Health) Down() string {
	if h.State == "ok" {
		return ""
	}
	return cmp.Or(h.Why, h.State)
}

// Health is the state now.
func (c *Client) Health() Health {
	var h Health
	h.State, h.Why, h.Since, h.NextProbe = c.breaker.State(c.resources.of(""))
	h.Recent = c.counts.Recent()
	return h
}
