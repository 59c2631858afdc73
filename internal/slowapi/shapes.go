// Shapes: the other APIs that this one can be.

package slowapi

import (
	"fmt"
	"math"
	"math/rand/v2"
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
	Shape  = "twilio"
)

// shapes are the APIs beside Twilio's, with whom they know and what arrives.
var shapes = map[string]struct {
	account, token string
	arrive         string
	open           func(table.Options, func(token string) bool) *table.API
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
	s.api = way.open(table.Options{
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
