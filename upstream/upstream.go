// Client: what speaks to one source.

// Package upstream speaks to the slow API, politely: it reads spec files,
// fetches and writes within a budget, finds the records in answers and empties
// the secrets in them.
package upstream

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/kit/semaphore"
	"understudy/spec"
)

// Options are a client's settings; zero values are the defaults named.
type Options struct {
	Source *spec.Source      // with a compiled spec; required
	Base   string            // upstream's URL; "" = the spec's hosts
	User   string            // of Basic auth; "" = the source's user
	Secret understudy.Secret // password or bearer token

	Rate        float64 // requests a second: 10
	Concurrency int     // requests at once: 20
	Queue       int     // errands that may wait for budget: 1000
	// Hope is how long a Prefetch may wait for budget before it is dropped: 2 s.
	Prefetch time.Duration
	MaxBody  int64 // bytes of a body, on the wire and decompressed: 64 MiB
	// MaxMedia is the bytes of a content: 1 GiB.
	MaxMedia int64

	Connect   time.Duration // for a connection, TLS included: 5 s
	FirstByte time.Duration // from the connection to the answer's head, at most: 25 s
	Stall     time.Duration // between two reads of a body, at most: 10 s
	Total     time.Duration // for one try: 30 s

	Bodies *semaphore.Weighted // what bodies that are being read weigh together; nil: one of MaxBody, for this client

	Transport http.RoundTripper // nil: our own, which uses no proxy
	Now       func() time.Time  // nil: time.Now
	Logger    *slog.Logger      // nil: discard; told when upstream's state changes
	UserAgent string            // "understudy"
}

// What may be changed while a client runs has its default named.
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
	if o.User == "" {
		o.User = o.Source.User
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.UserAgent == "" {
		o.UserAgent = "understudy"
	}
}

// Client speaks to one source. It is safe for concurrent use.
type Client struct {
	o       Options
	source  *spec.Source
	plans   map[*spec.Kind]*plan
	secrets []secret // every secret field of the spec
	// origins is worked out at the first use: by then it is known where we
	// listen, and so the source's public URL.
	origins  func() *origins
	own      atomic.Pointer[wires] // nil when the transport was given
	came     moment                // of any answer
	pace     latencies
	media    *originPolicy
	budget   *budget
	breaker  *breaker
	counts   counts
	buffers  sync.Pool // *bytes.Buffer
	lengths  lengths
	tooLarge error // of a body
	codings  codings

	credentials atomic.Int64 // how often the credential was replaced

	closing context.Context // ends with Close
	close   context.CancelFunc

	mu           sync.RWMutex
	user         string
	secret       understudy.Secret
	secretTraces [][]byte // what must not come back in a body
}

// New makes a client. Nothing is sent before it is asked to. Close frees it.
func New(o Options) (*Client, error) {
	if o.Source == nil || o.Source.Spec == nil {
		return nil, errors.New("upstream: new client: no source with a spec")
	}
	o.defaults()
	if o.Base != "" {
		u, err := url.Parse(o.Base)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("upstream: source %s: want its upstream as http(s)://host[:port], without user or query", o.Source.Name)
		}
	}
	c := &Client{
		o: o, source: o.Source, plans: map[*spec.Kind]*plan{}, secrets: allSecrets(o.Source.Spec),
		budget: newBudget(&o), breaker: newBreaker(&o),
		buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }}, tooLarge: tooLargeFor(o.Source.Name, o.MaxBody),
	}
	c.origins = sync.OnceValue(func() *origins { return newOrigins(o.Source, o.Base) })
	for _, k := range o.Source.Spec.Kinds {
		c.plans[k] = newPlan(o.Source.Spec, k)
	}
	if o.Transport == nil {
		c.own.Store(&wires{newTransport(&o), o.Now()})
	}
	c.media = newOriginPolicy(&o)
	c.closing, c.close = context.WithCancel(context.Background())
	c.set(o.User, o.Secret)
	return c, nil
}

// SetCredential replaces user and secret ("" keeps the user). A source that
// refused the former ones is probed at once; a request they were refused for
// after they were replaced is sent again.
func (c *Client) SetCredential(user string, secret understudy.Secret) {
	if user == "" {
		user, _ = c.credential()
	}
	c.set(user, secret)
	c.credentials.Add(1)
	c.breaker.credential()
}

func (c *Client) set(user string, secret understudy.Secret) {
	wire := base64.RawStdEncoding.EncodeToString([]byte(user + ":" + secret.Reveal()))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.user, c.secret, c.secretTraces = user, secret, nil
	if distinct(secret.Reveal()) {
		c.secretTraces = append(c.secretTraces, []byte(secret.Reveal()))
	}
	if !secret.Empty() && c.source.Spec.Auth.Style == "basic" && len(wire) >= 8 {
		c.secretTraces = append(c.secretTraces, []byte(wire))
	}
}

func (c *Client) credential() (user string, secret understudy.Secret) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.user, c.secret
}

// needles is what must not come back in a body.
func (c *Client) needles() [][]byte {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.secretTraces
}

// clean is err, unless its text holds our credential.
func (c *Client) clean(err error) error {
	_, secret := c.credential()
	text := err.Error()
	if len(secret.Reveal()) >= 4 {
		text = strings.ReplaceAll(text, secret.Reveal(), "[redacted]")
	}
	text = string(takeOut([]byte(text), c.needles()))
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// Close ends what is under way with ErrClosed and closes idle connections.
// The client must not be used afterwards.
func (c *Client) Close() error {
	c.budget.close() // before: who is ended and asks again at once is refused
	c.close()
	if w := c.own.Load(); w != nil {
		w.CloseIdleConnections()
	}
	c.media.close()
	return nil
}

// until is ctx that also ends with Close.
func (c *Client) until(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.closing, func() { cancel(understudy.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}
