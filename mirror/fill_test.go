// Fills: pages for a walk.

package mirror

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

// fill fills and must not fail.
func (s *stage) fill(t testing.TB, f request.Fill) request.PageSaved {
	t.Helper()
	landed, err := s.Fill(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return landed
}

// told collects what completes.
func told(into *[]request.PageSaved) setting {
	var mu sync.Mutex
	return func(o *Options) {
		o.PageSaved = func(l request.PageSaved) {
			mu.Lock()
			defer mu.Unlock()
			*into = append(*into, l)
		}
	}
}

func TestFillKeepsThePage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heard []request.PageSaved
		s := open(t, 7, told(&heard))
		landed := s.fill(t, request.Fill{Target: s.newest(t), Reason: request.ReasonSync})
		checktest.MustEqual(t, len(landed.Changes), 3, "landed: len(landed.Changes)")
		checktest.MustEqual(t, len(landed.Page.Rows), 3, "landed: len(landed.Page.Rows)")
		checktest.True(t, !landed.Page.Next.IsZero(), "landed: landed.Page.Next.IsZero() is true")
		checktest.True(t, landed.Page.Rows[2].Version != 0, "landed: landed.Page.Rows[2].Version is 0")
		checktest.Equal(t, landed.Reason, request.ReasonSync, "landed: landed.Reason")
		checktest.MustEqual(t, len(heard), 1, "told of: len(heard)")
		checktest.Equal(t, heard[0].Page, landed.Page, "told of: heard[0].Page")
		checktest.MustEqual(t, len(heard[0].Changes), 3, "told of: len(heard[0].Changes)")
		checktest.Equal(t, heard[0].Reason, request.ReasonSync, "told of: heard[0].Reason")
		next, err := s.spec.Resolve("twilio", landed.Page.Next.Path(), landed.Page.Next.Query())
		if err != nil {
			t.Fatal(err)
		}
		s.fill(t, request.Fill{Target: next, Reason: request.ReasonCheck})
		synctest.Wait() // until both flights have ended
		want(t, s.get(t, next), request.Warm, "")
		if entries := s.Stats("twilio").Hot.Pages; entries != 1 {
			t.Errorf("%d pages in memory; a walk's pages are not for it, the one read is", entries)
		}
		// The page after the one read may be on its way already.
		n, by := s.fetches("Calls.json")
		checktest.Equal(t, n-by[request.ReasonPrefetch], 2, "n-by[request.ReasonPrefetch]")
		checktest.Equal(t, by[request.ReasonSync], 1, "by[request.ReasonSync]")
		checktest.Equal(t, by[request.ReasonCheck], 1, "by[request.ReasonCheck]")
		time.Sleep(2 * time.Second) // the page after the one read is prefetched
		again := s.fill(t, request.Fill{Target: next, Reason: request.ReasonSync})
		if len(again.Changes) != 0 || len(heard) != 4 {
			t.Errorf("the same page once more: %d changes, told %d times", len(again.Changes), len(heard))
		}
	})
}

func TestFillRecordsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 7)
		held := s.get(t, s.newest(t))
		synctest.Wait()
		s.set(sid(7), "busy", true)
		big := s.target(t, "Calls.json", "PageSize=1000")
		landed := s.fill(t, request.Fill{Target: big, Reason: request.ReasonSync, RecordsOnly: true})
		checktest.Equal(t, landed.Page.Key, big.Key, "landed: landed.Page.Key")
		checktest.True(t, !landed.Page.Next.IsZero(), "landed: landed.Page.Next.IsZero() is true")
		checktest.MustEqual(t, len(landed.Changes), 1, "landed: len(landed.Changes)")
		checktest.Equal(t, landed.Changes[0].Type, understudy.Changed, "landed: landed.Changes[0].Type")
		if _, err := s.memory.ReadPage(t.Context(), big.Key); !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("the page is held: %v", err)
		}
		// What showed the changed record is superseded, the record is as seen.
		if a := s.get(t, s.newest(t)); a.Outcome != request.Cold || string(a.Page.Body) == string(held.Page.Body) {
			t.Errorf("a page that shows what changed came %s", a.Outcome)
		}
		if a := s.get(t, s.call(t, sid(7))); a.Outcome != request.Composed {
			t.Errorf("an instance came %s", a.Outcome)
		}
		// A fill for records is not for readers, but takes what they have begun.
		before, _ := s.fetches("PageSize=1000")
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { s.fill(t, request.Fill{Target: big, RecordsOnly: true}) })
		synctest.Wait()
		wg.Go(func() { s.get(t, big) })
		synctest.Wait()
		if n, _ := s.fetches("PageSize=1000"); n != before+2 {
			t.Errorf("%d fetches for a fill and a reader, want 2", n-before)
		}
		landed = s.fill(t, request.Fill{Target: big, RecordsOnly: true})
		if n, _ := s.fetches("PageSize=1000"); n != before+2 || landed.Page.Version == 0 {
			t.Errorf("%d fetches, version %d; want the reader's", n-before, landed.Page.Version)
		}
	})
}

func TestFillSharesFlights(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		var wg sync.WaitGroup
		wg.Go(func() { s.fill(t, request.Fill{Target: s.newest(t)}) })
		synctest.Wait()
		wg.Go(func() { want(t, s.get(t, s.newest(t)), request.Cold, "") })
		wg.Go(func() { s.fill(t, request.Fill{Target: s.newest(t)}) })
		synctest.Wait()
		select {
		case <-s.asked[0].Promote:
		default:
			t.Error("a reader joined and the fetch is not promoted")
		}
		wg.Wait()
		if n, _ := s.fetches(""); n != 1 {
			t.Errorf("%d fetches", n)
		}
	})
}

func TestFillLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		var ended bool
		s.script(func() {
			s.fetch = func(ctx context.Context, _ request.Fetch) (*understudy.Page, error) {
				<-ctx.Done()
				ended = true
				return nil, ctx.Err()
			}
		})
		if _, err := s.Fill(ctx, request.Fill{Target: s.newest(t)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a fill whose walk has ended: %v", err)
		}
		synctest.Wait()
		loads := s.Loads()
		checktest.MustTrue(t, ended, "upstream's fetch ended: ended is false")
		checktest.Equal(t, loads.Flights.Now, 0, "upstream's fetch ended: loads.Flights.Now")
		checktest.Equal(t, loads.Background.Now, 0, "upstream's fetch ended: loads.Background.Now")
	})
}

func TestFillOutdatedByAWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		only            bool
		writes, fetches int
		err             error
	}{{true, 1, 2, nil}, {true, 2, 2, understudy.ErrOutdated}, {false, 1, 2, nil}, {false, 2, 2, understudy.ErrOutdated}} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 3)
			s.script(func() {
				s.write = func(request.Write) (*understudy.Page, error) { return &understudy.Page{Status: 202}, nil }
			})
			go func() {
				for range c.writes {
					time.Sleep(900 * time.Millisecond)
					_, _ = s.Mirror.Write(t.Context(), request.Write{Target: s.call(t, sid(1)), Method: "POST"})
				}
			}()
			_, err := s.Fill(t.Context(), request.Fill{Target: s.newest(t), RecordsOnly: c.only})
			if n, _ := s.fetches("Calls.json"); n != c.fetches || !errors.Is(err, c.err) {
				t.Errorf("%+v: %d fetches, %v", c, n, err)
			}
			// What was not written is saved all the same; what was written, by its own fetch.
			time.Sleep(3 * time.Second)
			if kinds, err := s.memory.ReadKinds(t.Context(), "twilio"); err != nil || kinds[0].Records != 3 {
				t.Errorf("%+v: %+v, %v", c, kinds, err)
			}
		})
	}
}

func TestFillOfAnInstanceThatWent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.get(t, s.newest(t))
		synctest.Wait()
		s.remove(sid(2))
		landed := s.fill(t, request.Fill{Target: s.call(t, sid(2)), Reason: request.ReasonCheck, RecordsOnly: true})
		checktest.Equal(t, landed.Page.Status, 404, "landed: landed.Page.Status")
		checktest.MustEqual(t, len(landed.Changes), 1, "landed: len(landed.Changes)")
		checktest.Equal(t, landed.Changes[0].Type, understudy.Deleted, "landed: landed.Changes[0].Type")
		checktest.Equal(t, landed.Changes[0].ID, sid(2), "landed: landed.Changes[0].ID")
		if a := s.get(t, s.newest(t)); a.Outcome != request.Cold {
			t.Errorf("a list that shows it came %s", a.Outcome)
		}
	})
}

func TestFillRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		s.script(func() {
			s.page = func(f request.Fetch) *understudy.Page {
				p := page(f.Target, 400, `{"code":20004}`)
				p.NotStored = "status 400"
				return p
			}
		})
		landed := s.fill(t, request.Fill{Target: s.newest(t)})
		if landed.Page.Status != 400 || len(landed.Changes) != 0 {
			t.Errorf("landed %+v", landed)
		}
		s.script(func() {
			s.page = func(f request.Fetch) *understudy.Page {
				p := page(f.Target, 200, `{"calls":[]}`)
				p.NotStored = "invalid UTF-8"
				return p
			}
		})
		if landed, err := s.Fill(t.Context(), request.Fill{Target: s.newest(t)}); !errors.Is(err, understudy.ErrNotStored) || landed.Page == nil {
			t.Errorf("what cannot be kept: %v", err)
		}
		s.script(func() { s.page, s.fail = nil, func(int, request.Fetch) error { return down(503) } })
		var failed *understudy.UpstreamError
		if _, err := s.Fill(t.Context(), request.Fill{Target: s.newest(t)}); !errors.As(err, &failed) || failed.Status != 503 {
			t.Errorf("in an outage: %v", err)
		}
		media := s.target(t, "Recordings/RE"+sid(1)[2:]+".mp3", "")
		for _, f := range []request.Fill{{}, {Target: &spec.Target{Key: understudy.Key{Source: "none", URI: "/"}}}, {Target: media}} {
			if _, err := s.Fill(t.Context(), f); !errors.Is(err, understudy.ErrInvalid) {
				t.Errorf("%+v: %v", f, err)
			}
		}
		s.stop()
		for _, only := range []bool{true, false} {
			if _, err := s.Fill(t.Context(), request.Fill{Target: s.newest(t), RecordsOnly: only}); !errors.Is(err, understudy.ErrClosed) {
				t.Errorf("closed: %v", err)
			}
		}
	})
}

// TestFillWhenNothingCanBeSaved: a walk hears of it and does not go on; one
// fill a minute tries.
func TestFillWhenNothingCanBeSaved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := true
		s := open(t, 3, over(func(st Store) Store {
			return &oddStore{Store: st, save: func() error {
				if full {
					return errors.New("store: disk full")
				}
				return nil
			}}
		}))
		try := func(only bool) error {
			_, err := s.Fill(t.Context(), request.Fill{Target: s.newest(t), RecordsOnly: only})
			return err
		}
		for range 5 {
			if err := try(true); !errors.Is(err, understudy.ErrNotStored) {
				t.Errorf("not saved: %v", err)
			}
		}
		if n, _ := s.fetches(""); n != 1 {
			t.Errorf("%d fetches while nothing can be saved", n)
		}
		time.Sleep(time.Minute)
		full = false
		if err := try(false); err != nil {
			t.Error(err)
		}
		if err := try(true); err != nil {
			t.Error(err)
		}
	})
}

func TestFillWeighs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		heavy := errors.New("too heavy")
		weighing := func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
			time.Sleep(time.Second)
			if f.Reserve != nil {
				if err := f.Reserve(ctx, 5<<20); err != nil {
					return nil, err
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			p := s.answer(f)
			p.At = time.Now()
			return p, nil
		}
		s.script(func() { s.fetch = weighing })
		weigh := func(err error) func(context.Context, int64) error {
			return func(_ context.Context, n int64) error {
				if n != 5<<20 {
					t.Errorf("weighed %d bytes", n)
				}
				return err
			}
		}
		if _, err := s.Fill(t.Context(), request.Fill{Target: s.newest(t), Reserve: weigh(heavy)}); !errors.Is(err, heavy) {
			t.Errorf("too heavy: %v", err)
		}
		s.fill(t, request.Fill{Target: s.newest(t), Reserve: weigh(nil)})

		// A reader that comes meanwhile is not refused.
		target := s.target(t, "Calls.json", "PageSize=2")
		go func() { s.fill(t, request.Fill{Target: target, Reserve: weigh(heavy)}) }()
		synctest.Wait()
		want(t, s.get(t, target), request.Cold, "")

		// One who comes too late for that has a fetch of his own.
		target = s.target(t, "Calls.json", "PageSize=4")
		late := func(ctx context.Context, _ int64) error {
			time.Sleep(time.Second)
			return heavy
		}
		go func() {
			if _, err := s.Fill(t.Context(), request.Fill{Target: target, Reserve: late}); err != nil {
				t.Errorf("a page somebody else wants too: %v", err)
			}
		}()
		time.Sleep(1500 * time.Millisecond)
		want(t, s.get(t, target), request.Cold, "")
		time.Sleep(5 * time.Second)

		// Nobody is told after the walk has left.
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		over := false
		_, err := s.Fill(ctx, request.Fill{Target: s.target(t, "Calls.json", "PageSize=5"), Reserve: func(ctx context.Context, _ int64) error {
			if over {
				t.Error("told after the fill returned")
			}
			<-ctx.Done()
			time.Sleep(time.Second)
			return ctx.Err()
		}})
		over = true
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("left: %v", err)
		}
		time.Sleep(time.Minute)
	})
}
