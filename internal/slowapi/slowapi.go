// The slow API itself: its options, how it starts and how it ends.

// Package slowapi is a faithful, slow, faulty API over real HTTP, for the demo, for
// tests and for benchmarks: Twilio's, or in another shape GitHub's or Stripe's.
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

// Options say what the world is like and how it behaves. The zero Options are a
// world of 5000 calls that answers at once and stands still.
type Options struct {
	// Shape is the API: twilio, which "" means too, github or stripe.
	Shape string
	// Latency is what a list takes, give or take a fifth; anything else takes
	// 0.3 of that. 0 means no wait.
	Latency time.Duration
	// Records is N: N calls and 2N messages. 0 means 5000; at most 10^9.
	Records int
	// Seed decides everything that is made up. 0 means 1.
	Seed uint64
	// Epoch dates the newest record, to the second. Zero means 2026-06-01T12:00:00Z.
	Epoch time.Time
	// Cap is how many requests may be under way; one more is 429. 0 means 200.
	Cap int
	// Arrivals is how many calls come a minute, and twice as many messages. With
	// 0 the world stands still; at most 60000.
	Arrivals float64
	// Quirks switch unverified behaviours; docs/reference/slowapi.md lists them.
	Quirks []string
	// Journal is the file that keeps writes, deletions and advances over a
	// restart. "" keeps them in memory.
	Journal string
	// Account and Token are the credentials of the main account, by default
	// AC00000000000000000000000000000001 and slowapitoken; docs/reference/slowapi.md has those
	// of the other shapes.
	Account, Token string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger takes what is logged; nil means nothing is.
	Logger *slog.Logger
}

// Server is the slow API, an http.Handler for any number of callers at once.
type Server struct {
	api     *table.API
	twilio  *twilio // nil: another API
	counts  counts
	tokens  tokens
	now     func() time.Time
	log     *slog.Logger
	packers sync.Pool // of *gzip.Writer

	faults  faults
	latency time.Duration
	cap     int // requests at once
	busy    atomic.Int64

	closing chan struct{}
	once    sync.Once
	ended   error
	running sync.WaitGroup
}

// New makes the world, lets it go through its journal, and begins arrivals.
// Errors: a setting out of its bounds, an unknown quirk, a journal that cannot
// be read or belongs to another world.
func New(o Options) (*Server, error) {
	if o.Shape == Shape {
		o.Shape = ""
	}
	_, other := shapes[o.Shape]
	switch {
	case o.Shape != "" && !other:
		return nil, fmt.Errorf("slowapi: shape %q is none of %s", o.Shape, Shapes)
	case other && (o.Journal != "" || len(o.Quirks) > 0):
		return nil, fmt.Errorf("slowapi: a journal and quirks are of the shape twilio alone")
	case other && o.Records > maxTable:
		return nil, fmt.Errorf("slowapi: records %d is more than the %d of this shape", o.Records, maxTable)
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

// check tells which setting is out of its bounds.
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

// Close ends the world's running and every wait, waits for its goroutine, and
// syncs the journal. Requests still waiting are answered 503. It may be called
// again.
func (s *Server) Close() error {
	s.once.Do(func() {
		close(s.closing)
		s.running.Wait()
		if s.twilio != nil {
			s.twilio.world.Writing.Lock()
			defer s.twilio.world.Writing.Unlock()
			s.ended = s.twilio.journal.Close()
		}
	})
	return s.ended
}

// Shapes are the names of the APIs a server can be, with commas between; Shape is
// the one that is meant where none is named.
const (
	Shapes = "twilio,github,stripe"
	Shape  = "twilio"
)

// shapes are the APIs beside Twilio's, with whom they know and what arrives.
var shapes = map[string]struct {
	account, token string
	arrive         string
	open           func(*table.World, func(token string) bool) *table.API
}{
	"github": {"robin", "slowapitoken", "issues", github.New},
	"stripe": {"acct_1SlowapiMain0001", "sk_test_slowapitoken", "customers", stripe.New},
}

// maxTable bounds the records of a world whose records are held in memory.
const maxTable = 200_000

// open makes the API of a shape, and begins arrivals.
func (s *Server) open(o Options) (err error) {
	knows := func(token string) bool { return s.tokens.know(token, o.Token) }
	way, known := shapes[o.Shape]
	if !known {
		if s.twilio, err = newTwilio(o, knows); err != nil {
			return err
		}
		s.api = &table.API{
			Routes: s.twilio.routes, Answer: s.twilio.answer,
			Refuse:  func(status int) format.Answer { return *format.RefusalFor(status) },
			Control: map[string]table.Control{"/-/advance": s.twilio.advance, "/-/edit": s.twilio.editRecords},
		}
		if o.Arrivals > 0 {
			s.running.Go(func() { s.twilio.run(o.Arrivals, s.closing) })
		}
		return nil
	}
	s.api = way.open(&table.World{
		Records: o.Records, Seed: o.Seed, Epoch: o.Epoch.UTC().Truncate(time.Second), Account: o.Account, Token: o.Token,
		Flows: o.Arrivals > 0, Now: o.Now,
	}, knows)
	if o.Arrivals > 0 {
		s.running.Go(func() { s.arrive(way.arrive, time.Duration(float64(time.Minute)/o.Arrivals)) })
	}
	return nil
}

// arrive lets one record after the other come until the server closes: often
// soon, seldom late.
func (s *Server) arrive(kind string, every time.Duration) {
	for {
		wait := time.NewTimer(time.Duration(-math.Log(1-rand.Float64()) * float64(every)))
		select {
		case <-wait.C:
		case <-s.closing:
			wait.Stop()
			return
		}
		if _, err := s.api.Control["/-/advance"](fmt.Appendf(nil, `{%q:1}`, kind)); err != nil {
			s.log.Error("slowapi: an arrival was lost", "err", err)
		}
	}
}
