// Generic sources over the mirror's own flights, hot tier and store.

package mirror

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/request"
	"understudy/spec"
)

// plainOrigin is a generic upstream that takes a second for an answer.
type plainOrigin struct {
	*world
	header http.Header
	asked  atomic.Int64
	ended  atomic.Int64 // exchanges whose context ended before
	open   atomic.Int64 // streams that are not closed
}

func (o *plainOrigin) Exchange(ctx context.Context, x request.Exchange) (*request.ExchangeResponse, error) {
	o.asked.Add(1)
	began := time.Now()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		o.ended.Add(1)
		return nil, ctx.Err()
	}
	a := &request.ExchangeResponse{Response: request.Response{Page: &understudy.Page{Key: x.Target.Key, Status: 200, At: time.Now()},
		Outcome: request.Cold}, Header: o.header.Clone(), SentAt: began}
	if x.WantBody != nil && x.WantBody(200, a.Header, began, time.Now()) {
		a.Response.Page.Body = []byte("whole")
		return a, nil
	}
	o.open.Add(1)
	a.Stream, a.Length = &countedStream{Reader: strings.NewReader("stream"), o: o}, -1
	return a, nil
}

type countedStream struct {
	io.Reader
	o    *plainOrigin
	once sync.Once
}

func (s *countedStream) Close() error {
	s.once.Do(func() { s.o.open.Add(-1) })
	return nil
}

// openGeneric is a mirror with a generic source "web".
func openGeneric(t *testing.T, control string, settings ...setting) (*stage, *plainOrigin, *spec.Target) {
	t.Helper()
	sp, err := spec.NewGeneric("http://web.example", "none")
	if err != nil {
		t.Fatal(err)
	}
	o := &plainOrigin{header: http.Header{"Cache-Control": {control}}}
	s := open(t, 0, append(settings, func(opts *Options) {
		o.world = opts.Sources[0].Upstream.(*world)
		opts.Sources = append(opts.Sources, Source{Source: &spec.Source{Name: "web", Spec: sp}, Upstream: o})
	})...)
	target, err := sp.ResolveVerbatim("web", "/a?b=1")
	if err != nil {
		t.Fatal(err)
	}
	return s, o, target
}

// readAll sends requests at once, and gives the answers' bodies.
func readAll(t *testing.T, s *stage, target *spec.Target, n int) map[string]int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[string]int{}
	for range n {
		wg.Go(func() {
			a, err := s.Exchange(context.Background(), request.Exchange{Target: target, Method: "GET", Header: http.Header{}, Flow: 7})
			if err != nil {
				t.Error(err)
				return
			}
			defer a.Close()
			body := a.Response.Page.Body
			if a.Stream != nil {
				body, _ = io.ReadAll(a.Stream)
			}
			mu.Lock()
			got[string(body)]++
			mu.Unlock()
		})
	}
	wg.Wait()
	return got
}

func TestGenericReadersShareAFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, o, target := openGeneric(t, "max-age=60")
		defer s.stop()
		if got := readAll(t, s, target, 50); got["whole"] != 50 || o.asked.Load() != 1 {
			t.Errorf("%v, upstream was asked %d times", got, o.asked.Load())
		}
		if !s.IsReadyFor(target, http.Header{}) {
			t.Error("it is not in memory")
		}
		p, err := s.memory.ReadPage(t.Context(), target.Key)
		checktest.MustNoError(t, err, "the store has")
		checktest.Equal(t, string(p.Body), "whole", "the store has: string(p.Body)")
		checktest.Equal(t, p.HeaderField("Cache-Control"), "max-age=60",
			`the store has: p.HeaderField("Cache-Control")`)
		time.Sleep(61 * time.Second)
		if s.IsReadyFor(target, http.Header{}) {
			t.Error("past fresh, and ready")
		}
		if stats := s.Stats("web"); stats.Cold != 50 || stats.Coalesced != 49 {
			t.Errorf("%+v", stats)
		}
	})
}

// lateReads is a store of which one read takes two seconds more.
type lateReads struct {
	*store.DB
	late atomic.Bool
}

func (s *lateReads) ReadPage(ctx context.Context, key understudy.Key) (*understudy.Page, error) {
	p, err := s.DB.ReadPage(ctx, key)
	if s.late.CompareAndSwap(true, false) {
		time.Sleep(2 * time.Second)
	}
	return p, err
}

// What a reader took from the store before a write, or before a purge, is not in memory after it.
func TestGenericReadsBesideAWriteBringNothingBack(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*stage, *spec.Target) error{
		"write": func(s *stage, target *spec.Target) error {
			a, err := s.Exchange(context.Background(), request.Exchange{Target: target, Method: "POST", Header: http.Header{}, Flow: 8})
			if err == nil {
				err = a.Close()
			}
			return err
		},
		"purge": func(s *stage, target *spec.Target) error {
			_, err := s.Forget(context.Background(), target)
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var reads *lateReads
			s, o, target := openGeneric(t, "max-age=60", over(func(under Store) Store {
				reads = &lateReads{DB: under.(*store.DB)}
				return reads
			}))
			defer s.stop()
			readAll(t, s, target, 1)
			s.entries.hot.Forget(s.entries.hot.Hash(target.Key))
			reads.late.Store(true)
			var wg sync.WaitGroup
			wg.Go(func() { readAll(t, s, target, 1) })
			synctest.Wait()
			if err := end(s, target); err != nil {
				t.Error(err)
			}
			wg.Wait()
			before := o.asked.Load()
			readAll(t, s, target, 1)
			if o.asked.Load() != before+1 {
				t.Errorf("after the %s upstream is not asked", name)
			}
		})
	}
}

// An answer that is for one request alone is shared by none.
func TestGenericStreamsAreNotShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, o, target := openGeneric(t, "private, max-age=60")
		defer s.stop()
		got := readAll(t, s, target, 20)
		checktest.Equal(t, got["stream"], 20, `got["stream"]`)
		checktest.Equal(t, o.asked.Load(), 20, "o.asked.Load(); got %v", got)
		checktest.Equal(t, o.open.Load(), 0, "o.open.Load(); got %v", got)
		if _, err := s.memory.ReadPage(t.Context(), target.Key); !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("the store has it: %v", err)
		}
	})
}

// A reader that leaves takes no other's answer along, and the last one ends the exchange.
func TestGenericReadersThatLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, o, target := openGeneric(t, "max-age=60")
		defer s.stop()
		leave := func(ctx context.Context) {
			_, err := s.Exchange(ctx, request.Exchange{Target: target, Method: "GET", Header: http.Header{}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("a reader that left: %v", err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { leave(ctx) })

		time.Sleep(100 * time.Millisecond)
		done := make(chan map[string]int)
		go func() { done <- readAll(t, s, target, 1) }()
		time.Sleep(100 * time.Millisecond)
		cancel()
		got := <-done
		checktest.Equal(t, got["whole"], 1, `got["whole"]`)
		checktest.Equal(t, o.asked.Load(), 1, "o.asked.Load(); got %v", got)
		checktest.Equal(t, o.ended.Load(), 0, "o.ended.Load(); got %v", got)
		wg.Wait()
		time.Sleep(2 * time.Minute)
		ctx, cancel = context.WithCancel(t.Context())
		wg.Go(func() { leave(ctx) })
		time.Sleep(100 * time.Millisecond)
		cancel()
		wg.Wait()
		time.Sleep(2 * time.Second)
		if o.asked.Load() != 2 || o.ended.Load() != 1 {
			t.Errorf("asked %d, ended %d", o.asked.Load(), o.ended.Load())
		}
	})
}
