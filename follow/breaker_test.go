// Breaker: a server that does not answer, and many calls that follow it.

package follow

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
)

// dead is a server that refuses connections while it is down. It counts them.
type dead struct {
	mu       sync.Mutex
	isUp     bool
	attempts int
	at       map[int64]int // attempts by second
	now, top int           // attempts at once, since the count was last reset
}

var hosts atomic.Int64

// newURL returns the URL of a server that no other test names: the breakers of dead servers stay.
func newURL() string { return fmt.Sprintf("http://host%d.example", hosts.Add(1)) }

var errRefused = errors.New("connection refused")

func (d *dead) RoundTrip(r *http.Request) (*http.Response, error) {
	d.count(1)
	defer d.count(-1)
	time.Sleep(time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isUp {
		return nil, errRefused
	}
	return newAnswer(r, false), nil
}

func (d *dead) count(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now += n; n > 0 {
		d.attempts++
		d.at[time.Now().Unix()]++
		d.top = max(d.top, d.now)
	}
}

// reset returns the number of attempts, the most at once and the most in a second, and begins again.
func (d *dead) reset() (attempts, top, second int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	attempts, top = d.attempts, d.top
	for _, n := range d.at {
		second = max(second, n)
	}
	d.attempts, d.top, d.at = 0, 0, map[int64]int{}
	return attempts, top, second
}

// hang is a server that accepts connections and never answers.
type hang struct{}

func (hang) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestDeadServerIsUnavailableAfterTheDeadline(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]http.RoundTripper{"refuses": &dead{at: map[int64]int{}}, "hangs": hang{}} {
		for wire := range answers {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := Receive(t.Context(), Options{URL: newURL(), Wire: Wire(wire), HTTP: &http.Client{Transport: over},
					GiveUpAfter: 100 * time.Second}, nil)
				checktest.True(t, errors.Is(err, ErrUnavailable), "%s: %v", name, err)
				checktest.Equal(t, time.Since(began), 100*time.Second, "%s: time to the error", name)
				checktest.Equal(t, errors.Is(err, errRefused), name == "refuses", "%s: the cause of %v", name, err)
			})
		}
	}
}

// The time without a connection begins anew when a connection was lost.
func TestDeadlineBeginsWhenAConnectionIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &dead{at: map[int64]int{}}
		began := time.Now()
		time.AfterFunc(5*time.Second, func() { s.set(true) })
		time.AfterFunc(time.Hour, func() { s.set(false) })
		err := Receive(t.Context(), Options{URL: newURL(), HTTP: &http.Client{Transport: s}, GiveUpAfter: 30 * time.Second,
			SilenceTimeout: 2 * time.Hour}, nil)
		checktest.True(t, errors.Is(err, ErrUnavailable), "%v", err)
		// The connection of the sixth second is silent for two hours.
		took := time.Since(began)
		checktest.True(t, took > 2*time.Hour+30*time.Second && took < 2*time.Hour+time.Minute+5*time.Second, "it ended after %v", took)
	})
}

func (d *dead) set(isUp bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isUp = isUp
}

// Two hundred calls follow a server that stops, and comes back after an hour.
func TestRetryStormIsBounded(t *testing.T) {
	t.Parallel()
	for wire := range answers {
		if Wire(wire) != Pages { // the server sends only streams
			synctest.Test(t, func(t *testing.T) { checkStorm(t, Wire(wire)) })
		}
	}
}

func checkStorm(t *testing.T, wire Wire) {
	const calls = 200
	ctx, cancel := context.WithCancel(t.Context())
	s := &dead{at: map[int64]int{}}
	at := newURL()
	var opened, ended sync.WaitGroup
	opened.Add(calls)
	for range calls {
		ended.Go(func() {
			isOpen := false
			err := Receive(ctx, Options{URL: at, Wire: wire, HTTP: &http.Client{Transport: s}, SilenceTimeout: 100 * time.Hour,
				OnOpen: func() {
					if !isOpen {
						isOpen = true
						opened.Done()
					}
				}}, nil)
			checktest.True(t, errors.Is(err, context.Canceled), "%v", err)
		})
	}
	time.Sleep(time.Minute)
	attempts, _, second := s.reset()
	checktest.True(t, attempts <= calls*6/5, "%d attempts in the first minute", attempts)
	checktest.True(t, second <= calls*6/5, "%d attempts in a second", second)
	time.Sleep(time.Hour)
	attempts, top, _ := s.reset()
	checktest.Equal(t, top, 1, "attempts at once in the next hour")
	checktest.True(t, attempts > 60 && attempts < 600, "%d attempts in the next hour", attempts)

	s.set(true)
	opened.Wait()
	attempts, _, _ = s.reset()
	checktest.True(t, attempts <= calls*6/5, "%d attempts until all are connected", attempts)
	_, cause := findBreaker(strings.TrimPrefix(at, "http://"))
	checktest.NoError(t, cause, "the breaker of a server that answers")
	cancel()
	ended.Wait()
}

// A call that waits for its turn ends at once with its context, and names the cause of the others.
func TestWaitForATurnEndsWithTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &dead{at: map[int64]int{}}
		o := Options{URL: newURL(), HTTP: &http.Client{Transport: s}}
		ctx, cancel := context.WithCancel(t.Context())
		var first sync.WaitGroup
		first.Go(func() { _ = Receive(ctx, o, nil) })
		time.Sleep(10 * time.Minute)
		b, _ := findBreaker(strings.TrimPrefix(o.URL, "http://"))
		b.probe <- struct{}{} // another call probes
		defer func() { <-b.probe }()
		began := time.Now()
		short, end := context.WithTimeout(t.Context(), time.Microsecond)
		defer end()
		err := Receive(short, o, nil)
		checktest.True(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
		checktest.Equal(t, time.Since(began), time.Microsecond, "time to the end")
		o.GiveUpAfter = time.Microsecond
		err = Receive(t.Context(), o, nil)
		checktest.True(t, errors.Is(err, ErrUnavailable), "%v", err)
		checktest.True(t, errors.Is(err, errRefused), "the cause of %v", err)
		cancel()
		first.Wait()
	})
}
