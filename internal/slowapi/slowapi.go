// The server: its options, New and Close.

// Package slowapi imitates the API of Twilio, GitHub or Stripe over real HTTP. It answers as the provider does, but
// slowly, and with the faults that a test sets. It is the upstream of the demo, of tests and of benchmarks.
package slowapi

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/github"
	"understudy/internal/slowapi/stripe"
	"understudy/internal/slowapi/table"
)

// Options describe the simulated world (all made-up records) and how the server behaves. With the zero Options, there
// are 5000 calls, no delays, and no changes but those that requests make.
type Options struct {
	// Shape is the API to imitate: twilio, github or stripe. "" means twilio.
	Shape string
	// Latency is the average time that a list takes, which varies by up to 20 %. Every other request takes 0.3 of it.
	// 0 means no delay.
	Latency time.Duration
	// Records is the number of calls. There are twice as many messages. 0 means 5000, and the maximum is 10^9.
	Records int
	// Seed is the number from which all records are generated. The same seed gives the same records. 0 means 1.
	Seed uint64
	// Epoch is the time of the newest record, in whole seconds. Zero means 2026-06-01T12:00:00Z.
	Epoch time.Time
	// Cap is the maximum number of requests that may run at once. Further requests get the status 429. 0 means 200.
	Cap int
	// Arrivals is the average number of new calls a minute, at most 60000. There are twice as many new messages. With
	// 0, nothing new arrives and the clock of the simulated world stands still.
	Arrivals float64
	// Quirks turn on behaviors that the real API may or may not have. They are listed in docs/reference/slowapi.md.
	Quirks []string
	// Journal is the path of a file that stores writes, deletions and clock changes across restarts. If it is "",
	// they are kept only in memory.
	Journal string
	// Account and Token are the credentials of the main account. The defaults for Twilio are
	// AC00000000000000000000000000000001 and slowapitoken. docs/reference/slowapi.md lists the
	// defaults of the other shapes.
	Account, Token string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger receives log messages; nil means that nothing is logged.
	Logger *slog.Logger
}

// Server is the simulated API. It is an http.Handler and is safe for concurrent use.
type Server struct {
	api     *table.API
	twilio  *twilio // the part for Twilio; nil if another API is imitated
	counts  counts
	tokens  tokens
	now     func() time.Time
	log     *slog.Logger
	packers sync.Pool // reused values of type *gzip.Writer

	faults  faults
	latency time.Duration
	cap     int          // the maximum number of requests that may run at once
	busy    atomic.Int64 // the number of requests that run now

	closing    chan struct{}
	closeOnce  sync.Once
	closeErr   error
	background sync.WaitGroup
}

// New generates the simulated records, applies the changes in the journal, and starts to create new records. It returns an
// error if an option is out of bounds, a quirk is not known, or the journal cannot be read or belongs to other records.
func New(o Options) (*Server, error) {
	if o.Shape == DefaultShape {
		o.Shape = ""
	}
	_, other := shapes[o.Shape]
	switch {
	case o.Shape != "" && !other:
		return nil, fmt.Errorf("slowapi: shape %q is none of %s", o.Shape, Shapes)
	case other && (o.Journal != "" || len(o.Quirks) > 0):
		return nil, fmt.Errorf("slowapi: a journal and quirks are of the shape twilio alone")
	case other && o.Records > maxTableRecords:
		return nil, fmt.Errorf("slowapi: records %d is more than the %d of this shape", o.Records, maxTableRecords)
	}
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Server{now: o.Now, log: o.Logger, latency: o.Latency, cap: o.Cap, closing: make(chan struct{})}
	if err := s.open(o); err != nil {
		return nil, err
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	o.Records, o.Seed, o.Cap = cmp.Or(o.Records, 5000), cmp.Or(o.Seed, 1), cmp.Or(o.Cap, 200)
	o.Account = cmp.Or(o.Account, shapes[o.Shape].account, "AC00000000000000000000000000000001")
	o.Token = cmp.Or(o.Token, shapes[o.Shape].token, "slowapitoken")
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Epoch.IsZero() {
		o.Epoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// check returns an error about the first option that is out of bounds.
func (o Options) check() error {
	switch {
	case o.Latency < 0:
		return fmt.Errorf("slowapi: latency %s is negative", o.Latency)
	case o.Records < 0 || o.Records > 1e9:
		return fmt.Errorf("slowapi: records %d is not 1 to 10^9", o.Records)
	case o.Cap < 0:
		return fmt.Errorf("slowapi: cap %d is negative", o.Cap)
	case o.Arrivals < 0 || o.Arrivals > 60000 || math.IsNaN(o.Arrivals):
		return fmt.Errorf("slowapi: arrivals %v is not 0 to 60000 calls a minute", o.Arrivals)
	case o.Epoch.Unix() < 0 || o.Epoch.Year() > 9000:
		return errors.New("slowapi: epoch must lie between 1970 and 9000")
	}
	return nil
}

// Close stops the creation of records and waits for its goroutine. It answers waiting requests with 503 and closes
// the journal. It may be called several times.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		s.background.Wait()
		if s.twilio != nil {
			s.twilio.world.Writing.Lock()
			defer s.twilio.world.Writing.Unlock()
			s.closeErr = s.twilio.journal.Close()
		}
	})
	return s.closeErr
}

// Shapes are the names of the APIs that a server can imitate, separated by commas.
// DefaultShape is used if none is named.
const (
	Shapes       = "twilio,github,stripe"
	DefaultShape = "twilio"
)

// shapes are the APIs besides Twilio's, each with its default credentials, the kind of its new records, and its constructor.
var shapes = map[string]struct {
	account, token string
	arrive         string
	open           func(*table.World, func(token string) bool) *table.API
}{
	"github": {"robin", "slowapitoken", "issues", github.New},
	"stripe": {"acct_1SlowapiMain0001", "sk_test_slowapitoken", "customers", stripe.New},
}

// maxTableRecords is the maximum of Options.Records for APIs whose records are all in memory.
const maxTableRecords = 200_000

// open makes the API that the options name, and starts to create new records.
func (s *Server) open(o Options) (err error) {
	isToken := func(token string) bool { return s.tokens.match(token, o.Token) }
	shape, known := shapes[o.Shape]
	if !known {
		if s.twilio, err = newTwilio(o, isToken); err != nil {
			return err
		}
		s.api = &table.API{
			Routes: s.twilio.routes, Answer: s.twilio.answer,
			Refuse:  func(status int) format.Answer { return *format.RefusalFor(status) },
			Control: map[string]table.Control{"/-/advance": s.twilio.advance, "/-/edit": s.twilio.applyEdits},
		}
		if o.Arrivals > 0 {
			s.background.Go(func() { s.twilio.run(o.Arrivals, s.closing) })
		}
		return nil
	}
	s.api = shape.open(&table.World{
		Records: o.Records, Seed: o.Seed, Epoch: o.Epoch.UTC().Truncate(time.Second), Account: o.Account, Token: o.Token,
		ClockRuns: o.Arrivals > 0, Now: o.Now,
	}, isToken)
	if o.Arrivals > 0 {
		s.background.Go(func() { s.addArrivals(shape.arrive, time.Duration(float64(time.Minute)/o.Arrivals)) })
	}
	return nil
}

// addArrivals creates one record after another until the server closes. The times between two records are
// exponentially distributed, with the average every.
func (s *Server) addArrivals(kind string, every time.Duration) {
	for {
		select {
		case <-time.After(time.Duration(-math.Log(1-rand.Float64()) * float64(every))):
		case <-s.closing:
			return
		}
		if _, err := s.api.Control["/-/advance"](fmt.Appendf(nil, `{%q:1}`, kind)); err != nil {
			s.log.Error("slowapi: an arrival was lost", "err", err)
		}
	}
}
