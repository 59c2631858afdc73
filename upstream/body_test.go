// Bodies: the memory they take on their way, and how they wait for it.

package upstream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/kit/semaphore"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream/body"
)

// A heavy body is read into its place: row 30 found three times as much in
// buffers that doubled, and one copy more.
func TestABodyTakesItsLengthOnce(t *testing.T) {
	heavy := append(callsPage(50), bytes.Repeat([]byte{' '}, 6<<20)...)
	for _, c := range []struct {
		name, coding string
		weighs       bool
		most         float64 // times its length
	}{
		{"plain, weighed", "", true, 1.3},
		{"gzip, weighed", "gzip", true, 1.3},
		{"plain", "", false, 3},
		{"gzip", "gzip", false, 3},
	} {
		wire := heavy
		for _, p := range packers {
			if p.coding == c.coding {
				wire = packed(p.writer, heavy)
			}
		}
		client := served(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if c.coding != "" {
				w.Header().Set("Content-Encoding", c.coding)
			}
			w.Header().Set("Content-Length", strconv.Itoa(len(wire)))
			_, _ = w.Write(wire)
		})
		f := request.Fetch{Target: target(t, client, callsPath)}
		if c.weighs {
			f.Reserve = func(context.Context, int64) error { return nil }
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := client.Fetch(t.Context(), f)
		runtime.ReadMemStats(&after)
		if err != nil || len(p.Body) != len(heavy) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		times := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(heavy))
		if t.Logf("%s: %.2f times its length", c.name, times); times > c.most {
			t.Errorf("%s: %.2f times its length, want at most %.2f", c.name, times, c.most)
		}
	}
}

// What a packed body says of its length may be a lie, too small or too large.
func TestAPackedBodyThatLiesAboutItsLength(t *testing.T) {
	body := append(callsPage(50), bytes.Repeat([]byte{' '}, 3<<20)...)
	for _, said := range []byte{0, 1, 255} {
		wire := packed(packers[0].writer, body)
		wire[len(wire)-1] = said // ISIZE, which the decoder checks: it is broken
		client := served(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(wire)
		})
		told := int64(0)
		_, err := client.Fetch(t.Context(), request.Fetch{Target: target(t, client, callsPath), Reserve: func(_ context.Context, n int64) error {
			told = max(told, n)
			return nil
		}})
		checktest.True(t, !(said == 0 && err != nil), "%d: said == 0 && err != nil; said is %v, err is %v", said,
			said, err)
		checktest.True(t, !(said != 0 && err == nil), "%d: said != 0 && err == nil; said is %v", said, said)
		checktest.True(t, told <= client.o.MaxBody, "%d: told is %v; %v", said, told, err)
	}
}

// waiting is an API with two slots in its budget, whose pages are heavy but for one,
// and a semaphore without free memory.
func waiting(t *testing.T, do func(t *testing.T, c *Client, heavy, light *spec.Target)) {
	synctest.Test(t, func(t *testing.T) {
		heavy, light := string(callsPage(1000)), string(callsPage(2))
		s := &script{do: func(_ int, r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.RawQuery, "PageSize=1000") {
				return reply(200, heavy), nil
			}
			return reply(200, light), nil
		}}
		c := scripted(t, s, func(o *Options) { o.Concurrency = 2; o.Total = 20 * time.Second })
		do(t, c, target(t, c, callsPath+"?PageSize=1000"), target(t, c, callsPath+"?PageSize=2"))
	})
}

// Fetches that wait for memory hold no slot of the budget, and neither their deadlines
// nor upstream's silence count meanwhile.
func TestWhoWaitsForRoomIsInNobodysWay(t *testing.T) {
	waiting(t, func(t *testing.T, c *Client, heavy, light *spec.Target) {
		room := make(chan struct{})
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				p, err := c.Fetch(t.Context(), request.Fetch{Target: heavy, Reserve: func(ctx context.Context, _ int64) error {
					select {
					case <-room:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}})
				if err != nil || p.Took > time.Second {
					t.Errorf("%v, as if upstream had taken that long: %+v", err, p)
				}
			})
		}
		time.Sleep(time.Second)
		begin := time.Now()
		if _, err := c.Fetch(t.Context(), request.Fetch{Target: light, Reason: request.ReasonWaiting}); err != nil ||
			time.Since(begin) > time.Second {
			t.Errorf("a reader beside them: %v after %v", err, time.Since(begin))
		}
		time.Sleep(40 * time.Second) // longer than Total
		close(room)
		all.Wait()
		if got := c.Stats(); got.Requests != 6 {
			t.Errorf("%+v", got)
		}
	})
}

// A body stays in the socket for parkTime, and no longer.
func TestAWaitForRoomEnds(t *testing.T) {
	waiting(t, func(t *testing.T, c *Client, heavy, light *spec.Target) {
		begin := time.Now()
		_, err := c.Fetch(t.Context(), request.Fetch{Target: heavy, Reserve: func(ctx context.Context, _ int64) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}})
		late := time.Since(begin) != body.ParkTime
		checktest.MustTrue(t, err != nil, "err is nil")
		checktest.MustTrue(t, !late, "late is true; %v", err)
		checktest.True(t, !errors.Is(err, understudy.ErrUnavailable),
			"errors.Is(err, understudy.ErrUnavailable) is true")
		checktest.Contains(t, err.Error(), "not enough free memory", "err.Error()")
		if _, err := c.Fetch(t.Context(), request.Fetch{Target: light}); err != nil || c.Health().State != "ok" {
			t.Errorf("%v, %+v", err, c.Health())
		}
	})
}

// TestABodyCountsUntilItIsSaved: with room for one body the next is read once its caller has no more use for the first.
func TestABodyCountsUntilItIsSaved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		text := string(callsPage(1000))
		client := scripted(t, &script{do: func(int, *http.Request) (*http.Response, error) { return reply(200, text), nil }},
			func(o *Options) { o.Bodies = semaphore.New(semaphore.Options{Limit: int64(len(text)) * 3 / 2}) })
		kept, saved := context.WithCancel(t.Context())
		fetch := request.Fetch{Target: target(t, client, callsPath), BodyInUse: kept}
		if _, err := client.Fetch(t.Context(), fetch); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		time.AfterFunc(3*time.Second, saved)
		fetch.BodyInUse = nil
		if _, err := client.Fetch(t.Context(), fetch); err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}
