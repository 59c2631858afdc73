// Pace: silence is noticed, and an upstream that is only slow is not cut off.

package upstream

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream/body"
	"understudy/upstream/throttle"
)

// quietly never answers.
func quietly(_ int, r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// stalling answers the head, and then never anything more, after d.
func stalling(d time.Duration) func(int, *http.Request) (*http.Response, error) {
	return slow(d, func(n int, r *http.Request) (*http.Response, error) {
		a := reply(200, emptyCalls)
		a.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(emptyCalls[:5]), untilDone{r.Context()}), io.NopCloser(nil)}
		return a, nil
	})
}

// untilDone gives nothing until its context ends.
type untilDone struct{ context.Context }

func (u untilDone) Read([]byte) (int, error) {
	<-u.Done()
	return 0, u.Err()
}

// reads asks as a reader does for whom nothing is held.
func reads(ctx context.Context, t *testing.T, c *Client, i int) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	page := target(t, c, fmt.Sprintf("%s?Page=%d", callsPath, i))
	_, err := c.Fetch(ctx, request.Fetch{Target: page, RetryWindow: 8 * time.Second, CanWaitForProbe: always})
	return time.Since(began), err
}

// paced is a client that has seen three answers, which took so long, and what
// upstream does from the fourth request on.
func paced(t *testing.T, takes time.Duration, then func(n int, r *http.Request) (*http.Response, error)) (*Client, *script) {
	s := &script{}
	s.do = func(n int, r *http.Request) (*http.Response, error) {
		if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
			trace.GotConn(httptrace.GotConnInfo{})
		}
		if n < 3 {
			return slow(takes, well)(n, r)
		}
		return then(n-3, r)
	}
	c := scripted(t, s, func(o *Options) { o.Rate = 1000 })
	for i := range 3 {
		if _, err := reads(t.Context(), t, c, i); err != nil {
			t.Fatal(err)
		}
	}
	return c, s
}

// lossy loses the first n requests in a way, and answers others after d.
func lossy(n int, way func(int, *http.Request) (*http.Response, error), d time.Duration) func(int, *http.Request) (*http.Response, error) {
	return func(i int, r *http.Request) (*http.Response, error) {
		if i < n {
			return way(i, r)
		}
		return slow(d, well)(i, r)
	}
}

// Finding 2: one lost answer, or one that stops in the middle, with nothing
// held: it was 503 after 25 s, by one request.
func TestOneLostAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]func(int, *http.Request) (*http.Response, error){"silence": quietly,
		"a body that stops": stalling(time.Second)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := paced(t, time.Second, lossy(1, way, time.Second))
				took, err := reads(t.Context(), t, c, 9)
				checktest.MustNoError(t, err, "")
				checktest.True(t, took < 3500*time.Millisecond, "took is %v", took)
				checktest.Equal(t, s.count(), 5, "s.count()")
				st := c.Stats()
				checktest.Equal(t, st.Hedges[request.ReasonWaiting], 1, "st.Hedges[request.ReasonWaiting]")
				checktest.Equal(t, st.Requests, 5, "st.Requests")
				checktest.Equal(t, st.ByReason[request.ReasonWaiting], 5, "st.ByReason[request.ReasonWaiting]")
			})
		})
	}
}

// Before three answers there is nothing to go by.
func TestWithoutHistoryTheSettingsHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: quietly}
		c := scripted(t, s)
		took, err := reads(t.Context(), t, c, 0)
		e := failure(t, err)
		checktest.Equal(t, e.Why, understudy.FailUnreachable, "e.Why")
		checktest.True(t, took >= 25*time.Second, "took is %v", took)
		checktest.Equal(t, s.count(), 1, "s.count()")
	})
}

// A fetch that began without history uses one as soon as it exists.
func TestHistoryHelpsWhoWaitsAlready(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: lossy(1, quietly, 100*time.Millisecond)}
		c := scripted(t, s)
		ended := make(chan time.Duration)
		go func() {
			took, err := reads(t.Context(), t, c, 0)
			if err != nil {
				t.Error(err)
			}
			ended <- took
		}()
		synctest.Wait()
		for i := range 3 {
			if _, err := reads(t.Context(), t, c, 1+i); err != nil {
				t.Error(err)
			}
		}
		if took := <-ended; took > 1500*time.Millisecond || c.Stats().Hedges[request.ReasonWaiting] != 1 {
			t.Errorf("after %v, %+v", took, c.Stats())
		}
	})
}

// Another kind, without answers so far, uses the slowest of any: 3 s after answers of 1
// s.
func TestANewKindGoesByTheSlowestAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := paced(t, time.Second, lossy(1, quietly, time.Second))
		began := time.Now()
		at := strings.Replace(callsPath, "Calls", "Messages", 1)
		_, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, at), Reason: request.ReasonPoll})
		e := failure(t, err)
		checktest.Contains(t, e.Error(), "upstream did not start to answer within 3s", "e.Error()")
		checktest.Equal(t, time.Since(began), 3*time.Second, "time.Since(began)")
		checktest.Equal(t, s.count(), 4, "s.count()")
		if st := c.Health(); st.State != "ok" {
			t.Errorf("one early deadline: %+v", st)
		}
	})
}

// Silence for ever ends at the reader's deadline, with an error that says so.
func TestSilenceEndsAtTheReadersDeadline(t *testing.T) {
	t.Parallel()
	for _, deadline := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 5 * time.Second, 12 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c, s := paced(t, 100*time.Millisecond, quietly)
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			took, err := reads(ctx, t, c, 9)
			var e *understudy.UpstreamError
			checktest.MustTrue(t, errors.As(err, &e), "deadline %v: errors.As(err, &e) is false", deadline)
			checktest.True(t, errors.Is(err, understudy.ErrUnavailable),
				"deadline %v: err is %v, want understudy.ErrUnavailable", deadline, err)
			checktest.True(t, !(e.Why != understudy.FailUnreachable && e.Why != understudy.FailDown),
				"deadline %v: e.Why != understudy.FailUnreachable && e.Why != understudy.FailDown; e.Why is %v; %v",
				deadline, e.Why, err)
			if off := took - deadline; off.Abs() > 50*time.Millisecond {
				t.Errorf("deadline %v: ended after %v, %d requests", deadline, took, s.count()-3)
			}
		})
	}
}

// From 0.1 s to 3 s: every later answer takes longer than the deadline of before. The
// first reader pays for it, and no other.
func TestASlowerUpstreamIsNotCutOff(t *testing.T) {
	t.Parallel()
	for _, takes := range []time.Duration{1500 * time.Millisecond, 3 * time.Second, 6 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c, s := paced(t, 100*time.Millisecond, slow(takes, well))
			_, err := reads(t.Context(), t, c, 9)
			if err != nil {
				t.Fatalf("%v: the first reader: %v", takes, err)
			}
			before := s.count()
			for i := range 20 {
				took, err := reads(t.Context(), t, c, 10+i)
				if err != nil || took != takes {
					t.Fatalf("%v: %v after %v", takes, err, took)
				}
			}
			if n := s.count() - before; n != 20 || c.Health().State != "ok" {
				t.Errorf("%v: 20 answers by %d requests, %+v", takes, n, c.Health())
			}
		})
	}
}

// The same with many readers of many pages at once: the source is not called
// down for being slow, and a write passes.
func TestManyReadersOfASlowerUpstream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := paced(t, 100*time.Millisecond, slow(3*time.Second, well))
		ended := make(chan error, 15)
		for i := range cap(ended) {
			go func() {
				_, err := reads(t.Context(), t, c, 20+i)
				ended <- err
			}()
		}
		time.Sleep(2 * time.Second)
		if h := c.Health(); h.State != "ok" {
			t.Errorf("%+v", h)
		}
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if n := c.Stats().Requests; n > 3+3*15 {
			t.Errorf("%d requests", n)
		}
	})
}

// No reader waits for a poll: its deadline passes, doubles, and lets it through.
func TestAPollOfASlowerUpstream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := paced(t, 100*time.Millisecond, slow(3*time.Second, well))
		var took []time.Duration
		for range 4 {
			began := time.Now()
			_, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath), Reason: request.ReasonPoll})
			took = append(took, time.Since(began))
			if err == nil {
				break
			}
			time.Sleep(30 * time.Second)
		}
		checktest.Equal(t, fmt.Sprint(took), "[1s 2s 3s]", "tries took: fmt.Sprint(took)")
		checktest.Equal(t, s.count(), 6, "tries took: s.count()")
		checktest.Equal(t, c.Health().State, "ok", "tries took: c.Health().State")
	})
}

// A source that is silent for good is down within seconds.
func TestSilenceShutsTheSource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := paced(t, 100*time.Millisecond, quietly)
		for i := range 20 {
			go func() {
				time.Sleep(time.Duration(i) * 500 * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, _ = reads(ctx, t, c, 20+i)
			}()
		}
		time.Sleep(15 * time.Second)
		if h := c.Health(); h.State != "down" {
			t.Errorf("%+v after %d requests", h, s.count())
		}
		time.Sleep(time.Minute)
	})
}

// Large pages take their time, and are not measured by small ones.
func TestLargePagesHaveAPaceOfTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		s.do = func(n int, r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.RawQuery, "PageSize=1000") {
				return slow(2*time.Second, well)(n, r)
			}
			return slow(100*time.Millisecond, well)(n, r)
		}
		c := scripted(t, s, func(o *Options) { o.Rate = 1000 })
		ask := func(query string) {
			if _, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath+query), RetryWindow: 8 * time.Second}); err != nil {
				t.Error(query, err)
			}
		}
		for range 3 {
			ask("?PageSize=1000")
			for range 30 {
				ask("")
			}
		}
		before := s.count()
		for range 5 {
			ask("?PageSize=1000")
			ask("")
		}
		if n := s.count() - before; n != 10 {
			t.Errorf("10 pages by %d requests", n)
		}
	})
}

// A hedge and a retry cost budget: without budget there is no hedge.
func TestNoHedgeWithoutBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		s.do = func(n int, r *http.Request) (*http.Response, error) {
			if n == 3 {
				return quietly(n, r)
			}
			return slow(time.Second, well)(n, r)
		}
		c := scripted(t, s, func(o *Options) { o.Rate, o.Concurrency = 0.25, 1 })
		for i := range 3 {
			if _, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath), RetryWindow: 8 * time.Second}); err != nil {
				t.Fatal(i, err)
			}
		}
		began := time.Now()
		_, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath), RetryWindow: 12 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		st := c.Stats()
		checktest.Equal(t, st.Hedges[request.ReasonWaiting], 0, "st.Hedges[request.ReasonWaiting]")
		checktest.Equal(t, st.Retries[request.ReasonWaiting], 1, "st.Retries[request.ReasonWaiting]")
		checktest.Equal(t, st.Requests, 5, "after %v: st.Requests", time.Since(began))
		for i := 1; i < len(s.at); i++ {
			if s.at[i]-s.at[i-1] < 2900*time.Millisecond {
				t.Errorf("requests at %v for one in 4 s", s.at)
			}
		}
	})
}

// Upstream's times are counted by kind and reason; a lost answer is counted.
func TestTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := paced(t, time.Second, lossy(1, quietly, 2*time.Second))
		if _, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath), Reason: request.ReasonPoll}); err == nil {
			t.Error("a silent answer")
		}
		time.Sleep(throttle.KeyPause)
		if _, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath), Reason: request.ReasonPoll}); err != nil {
			t.Error(err)
		}
		each, all := c.Times()
		checktest.MustEqual(t, len(each), 2, "len(each)")
		checktest.MustEqual(t, each[0].Kind, "calls", "each[0].Kind")
		checktest.MustEqual(t, each[0].Reason, request.ReasonWaiting, "each[0].Reason")
		checktest.MustEqual(t, each[1].Reason, request.ReasonPoll, "each[1].Reason")
		checktest.MustEqual(t, each[1].Lost, 1, "each[1].Lost")
		checktest.Equal(t, all.Whole.Count, 4, "all.Whole.Count")
		checktest.Equal(t, all.Whole.Mean, 1.25, "all.Whole.Mean")
		checktest.Equal(t, all.Whole.Deviation, 0.5, "all.Whole.Deviation")
		checktest.Equal(t, all.Whole.P99, 2, "all.Whole.P99")
		checktest.Equal(t, all.First.Min, 1, "all.First.Min")
		checktest.Equal(t, all.Lost, 1, "all.Lost")
	})
}

// L11: ten packed bodies at once, each beyond max_body when unpacked: all are
// refused, and no more than the limit and one body is unpacked at a time.
func TestPackedBodiesTogether(t *testing.T) {
	t.Parallel()
	const most = 8 << 20
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(bytes.Repeat([]byte{' '}, 3*most))
	_ = w.Close()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(int, *http.Request) (*http.Response, error) {
			return reply(200, packed.String(), "Content-Encoding", "gzip"), nil
		}}
		c := scripted(t, s, func(o *Options) { o.MaxBody, o.Rate = most, 1000 })
		ended := make(chan error, 10)
		for i := range cap(ended) {
			go func() {
				_, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, fmt.Sprintf("%s?Page=%d", callsPath, i))})
				ended <- err
			}()
		}
		for range cap(ended) {
			if e := failure(t, <-ended); !errors.Is(e, body.ErrTooLarge) {
				t.Error(e)
			}
		}
		st := c.o.Bodies.Stats()
		checktest.True(t, st.Peak <= most, "st.Peak is %v", st.Peak)
		checktest.Equal(t, st.Admitted, 10, "st.Admitted")
		checktest.Equal(t, st.Held, 0, "st.Held")
	})
}

// A connection that has gone silent is not used again: over HTTP/2, where all
// share it, the next try would be lost with it. So would it over HTTP/1.1 with
// idle connections of the same sort.
func TestASilentConnectionIsLeft(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprint("HTTP/2 ", http2), func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_,
					_ = io.WriteString(w, emptyCalls)
			}))
			l := &deadening{Listener: srv.Listener}
			srv.Listener, srv.EnableHTTP2 = l, http2
			srv.Config.ErrorLog = log.New(io.Discard, "", 0)
			srv.StartTLS()
			defer srv.Close()
			c, err := New(Options{Source: &spec.Source{Name: "twilio", Spec: builtInSpec(t, "twilio")}, Base: srv.URL, Rate: 1000})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			tls := c.connections.ownTransport.Load().TLSClientConfig
			tls.RootCAs = x509.NewCertPool()
			tls.RootCAs.AddCert(srv.Certificate())
			ended := make(chan error, 4)
			for i := range cap(ended) { // several connections over HTTP/1.1
				go func() {
					_, err := reads(t.Context(), t, c, i)
					ended <- err
				}()
			}
			for range cap(ended) {
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
			}
			l.dead.Store(true) // those that are open; later ones live
			if _, err := reads(t.Context(), t, c, 9); err != nil {
				t.Error(err)
			}
			st := c.Stats()
			if more := st.Retries[request.ReasonWaiting] + st.Hedges[request.ReasonWaiting]; more < 1 || more > 2 { // two on a busy machine
				t.Errorf("%+v", st)
			}
		})
	}
}

// deadening is a listener whose open connections can be made to say nothing
// more.
type deadening struct {
	net.Listener
	dead atomic.Bool
}

func (d *deadening) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	return &deadened{conn, d, d.dead.Load()}, err
}

type deadened struct {
	net.Conn
	of   *deadening
	late bool // accepted after the others died
}

func (d *deadened) Write(p []byte) (int, error) {
	if d.of.dead.Load() && !d.late {
		return len(p), nil
	}
	return d.Conn.Write(p)
}
