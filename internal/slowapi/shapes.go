// Shapes: the other APIs that this one can be.

package slowapi

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/github"
	"understudy/internal/slowapi/stripe"
	"understudy/internal/slowapi/table"
)

// Shapes are the names of the APIs a server can be, with commas between; Shape is
// the one that is meant where none is named.
const (
	Shapes = "twilio,github,stripe"
	Shape  = twilio
	twilio = "twilio"
)

// shape is an API in place of Twilio's: count, cap, faults and waits are over
// when it is asked.
type shape interface {
	// Answer answers a request that came to the address here.
	Answer(r *http.Request, body []byte, here string) format.Answer
	// Refuse is the error the provider gives with a status.
	Refuse(status int) format.Answer
	// Control changes the world from outside: a path under /-/ and its body.
	Control(path string, raw []byte) (any, error)
	// IsList tells whether a request is for a list.
	IsList(r *http.Request) bool
}

// shapes are the APIs beside Twilio's, with whom they know and what arrives.
var shapes = map[string]struct {
	account, token string
	arrive         string
	open           func(table.Options, func(token string) bool) shape
}{
	"github": {"robin", "slowapitoken", "issues", func(o table.Options, knows func(string) bool) shape { return github.New(o, knows) }},
	"stripe": {"acct_1SlowapiMain0001", "sk_test_slowapitoken", "customers",
		func(o table.Options, knows func(string) bool) shape { return stripe.New(o, knows) }},
}

// maxTable bounds the records of a world whose records are held in memory.
const maxTable = 200_000

// newShape makes a server of another API than Twilio's.
func newShape(o Options) (*Server, error) {
	way, known := shapes[o.Shape]
	switch {
	case !known:
		return nil, fmt.Errorf("slowapi: shape %q is none of %s", o.Shape, Shapes)
	case o.Journal != "" || len(o.Quirks) > 0:
		return nil, fmt.Errorf("slowapi: a journal and quirks are of the shape twilio alone")
	case o.Records > maxTable:
		return nil, fmt.Errorf("slowapi: records %d is more than the %d of this shape", o.Records, maxTable)
	}
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Server{
		now: o.Now, log: o.Logger, behaviour: behaviour{latency: o.Latency, cap: o.Cap},
		lifetime: lifetime{nudge: make(chan struct{}, 1), closing: make(chan struct{})},
	}
	s.api = way.open(table.Options{
		Records: o.Records, Seed: o.Seed, Epoch: o.Epoch.UTC().Truncate(time.Second), Account: o.Account, Token: o.Token,
		Flows: o.Arrivals > 0, Now: o.Now,
	}, func(token string) bool { return s.tokens.know(token, o.Token) })
	if o.Arrivals > 0 {
		s.running.Go(func() { s.arrive(way.arrive, time.Duration(float64(time.Minute)/o.Arrivals)) })
	}
	return s, nil
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
		if _, err := s.api.Control("/-/advance", fmt.Appendf(nil, `{%q:1}`, kind)); err != nil {
			s.log.Error("slowapi: an arrival was lost", "err", err)
		}
	}
}

// refuse is the provider's error for a status.
func (s *Server) refuse(status int) format.Answer {
	if s.api != nil {
		return s.api.Refuse(status)
	}
	return format.RefusalFor(status).Answer()
}

// isList tells whether a request is for a list.
func (s *Server) isList(r *http.Request) bool {
	if s.api != nil {
		return s.api.IsList(r)
	}
	at, _ := routeOf(r.URL.EscapedPath())
	return at != nil && !at.instance && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}
