// Everything at once, for the race detector.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/request"
	"understudy/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStress: 64 readers hit, miss, let expire, leave early and write, over a
// hot tier too small for it all. No answer may be wrong: the body must name
// what was asked for.
func TestStress(t *testing.T) {
	t.Parallel()
	s := open(t, 60, polls("calls", "messages"), hotBytes(minHot), func(o *Options) {
		o.Ages = Ages{Newest: 5 * time.Millisecond, Older: 7 * time.Millisecond, Final: 9 * time.Millisecond, Other: 3 * time.Millisecond,
			NotFound: 2 * time.Millisecond, Stale: 5 * time.Millisecond, Wait: 20 * time.Millisecond, Try: 50 * time.Millisecond}
	})
	s.script(func() {
		s.delay = func(request.Fetch) time.Duration { return time.Duration(rand.IntN(3)) * time.Millisecond }
		s.fail = func(n int, _ request.Fetch) error {
			if n%17 == 0 {
				return down(503)
			}
			return nil
		}
	})
	s.answers(t, http.StatusNoContent, nil, nil)
	var wg sync.WaitGroup
	acts := sample.Count(30, 150)
	for reader := range 64 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(reader), 7))
			for range acts {
				s.act(t, r)
			}
		})
	}
	wg.Wait()
	s.script(func() { s.delay, s.fail = nil, nil })
	s.SetAges(Ages{}) // a slow machine may have answered nothing warm until now
	for n, how := 0, request.Cold; how != request.Warm && n < 20; n++ {
		for _, anew := range []bool{true, false} {
			a, err := s.Answer(t.Context(), request.Request{Target: s.newest(t), NoCache: anew})
			if err != nil {
				t.Fatal(err)
			}
			how = a.Outcome
		}
	}
	st := s.Stats("twilio")
	checktest.True(t, st.Requests != 0, "stats: st.Requests is 0")
	checktest.True(t, st.Warm+st.Composed != 0, "stats: st.Warm+st.Composed is 0")
	checktest.True(t, st.Stale != 0, "stats: st.Stale is 0")
	checktest.True(t, st.Cold != 0, "stats: st.Cold is 0")
	checktest.True(t, st.Writes != 0, "stats: st.Writes is 0")
	checktest.True(t, st.Hot.Bytes <= minHot, "stats: st.Hot.Bytes is %v", st.Hot.Bytes)
	s.stop()
	s.flights.Lock()
	defer s.flights.Unlock()
	if len(s.flights.running) != 0 || s.flights.background != 0 {
		t.Errorf("left over: %d flights, %d behind", len(s.flights.running), s.flights.background)
	}
}

// act does one thing at random.
func (s *stage) act(t *testing.T, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+r.IntN(40))*time.Millisecond)
	defer cancel()
	var target *spec.Target
	switch r.IntN(10) {
	case 0:
		s.set(sid(1+r.IntN(60)), fmt.Sprintf("s%d", r.IntN(4)), r.IntN(2) == 0)
		return
	case 1:
		_, err := s.Mirror.Write(ctx, request.Write{Target: s.call(t, sid(1+r.IntN(60))), Method: http.MethodPost})
		if err != nil {
			t.Error(err)
		}
		return
	case 2, 3, 4:
		target = s.call(t, sid(1+r.IntN(65)))
	case 5, 6:
		target = s.target(t, "Calls.json", fmt.Sprintf("Page=%d&PageToken=x", r.IntN(20)))
	default:
		target = s.newest(t)
	}
	a := request.Request{Target: target, NoCache: r.IntN(20) == 0}
	answer, err := s.Answer(ctx, a)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, understudy.ErrUnavailable):
	case err != nil:
		t.Error(err)
	case answer.Page.Key != target.Key || answer.Age < 0 || answer.Page.Status == 200 && target.ID != "" &&
		answer.Page.Rows[0].ID != target.ID:
		t.Errorf("asked for %s, got %s (%s)", target.Key, answer.Page.Key, answer.Outcome)
	}
}
