// The windows of flow control.

package http2lane

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// Answers of the lane and of net/http share the windows of a client that opens them at random. No window is exceeded, and
// every answer arrives whole.
func TestWindowsAreNeverExceeded(t *testing.T) {
	w := newWorld(t, forms)
	for range sample.Count(10, 500) {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) { w.checkWindows(t, rand.New(rand.NewPCG(seed, 0))) })
	}
	checktest.True(t, w.answered.Load() > 0, "the lane has answered nothing")
	checktest.Equal(t, w.counted.Load(), 0, "bytes that are still counted")
}

// pending is a stream of which the client has not received everything.
type pending struct{ window, size, got int }

// checkWindows sends requests on one connection.
func (w *world) checkWindows(t *testing.T, random *rand.Rand) {
	initial := minWindow + random.IntN(40_000)
	f := newFrames(t, w.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(initial)})
	whole, open := defaultWindow, map[uint32]*pending{}
	for sent := uint32(0); sent < 40 || len(open) > 0; {
		if sent < 40 && random.IntN(3) == 0 {
			p := &pending{window: initial, size: random.IntN(5)*30_000 + 1}
			open[2*sent+1] = p
			f.get(2*sent+1, fmt.Sprintf("%s?n=%d&set-Content-Type=a", []string{"/warm", "/cold"}[random.IntN(2)], p.size))
			sent++
		}
		whole += 20_000
		checktest.MustNoError(t, f.WriteWindowUpdate(0, 20_000), "window")
		for id, p := range open {
			if random.IntN(2) == 0 {
				p.window += 10_000
				checktest.MustNoError(t, f.WriteWindowUpdate(id, 10_000), "window")
			}
		}
		checktest.MustNoError(t, f.WritePing(false, [8]byte{}), "ping")
		for isAnswered := false; !isAnswered; {
			got, err := f.ReadFrame()
			checktest.MustNoError(t, err, "read")
			switch got := got.(type) {
			case *http2.PingFrame:
				isAnswered = true
			case *http2.RSTStreamFrame, *http2.GoAwayFrame:
				t.Fatal(got)
			case *http2.DataFrame:
				p := open[got.StreamID]
				p.window, p.got, whole = p.window-len(got.Data()), p.got+len(got.Data()), whole-len(got.Data())
				checktest.MustTrue(t, p.window >= 0 && whole >= 0, "windows of stream %d: %d, and %d for all", got.StreamID, p.window, whole)
				if got.StreamEnded() {
					checktest.Equal(t, p.got, p.size, "bytes of stream %d", got.StreamID)
					delete(open, got.StreamID)
				}
			}
		}
	}
}

// An answer that waits goes on when the client enlarges the windows of all streams by its settings, and ends when the
// client resets the stream or closes the connection.
func TestHeldAnswers(t *testing.T) {
	w := newWorld(t, forms)
	for _, end := range []string{"settings", "window", "reset", "close"} {
		f := newFrames(t, w.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: minWindow})
		checktest.MustNoError(t, f.WriteWindowUpdate(0, 1<<20), "window")
		f.get(1, "/warm?n=10&set-Content-Type=a")
		f.end(1)
		const path = "/warm?n=100000&set-Content-Type=a"
		w.mu.Lock()
		for head, r := range w.known { // net/http has answered a shorter one
			w.known[strings.Replace(head, "/warm?n=10&", "/warm?n=100000&", 1)] = withPath(r, path)
		}
		w.mu.Unlock()
		before := w.answered.Load()
		f.get(3, path)
		for n := 0; n < minWindow; n += len(next[*http2.DataFrame](f).Data()) {
		}
		checktest.NoError(t, f.WritePing(false, [8]byte{}), "ping") // then nothing is being written
		next[*http2.PingFrame](f)
		checktest.Equal(t, w.answered.Load(), before+1, "answers of the lane")
		checktest.Equal(t, w.counted.Load(), 100_000-minWindow, "bytes that wait")
		switch end {
		case "settings":
			checktest.NoError(t, f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}), "settings")
		case "window":
			checktest.NoError(t, f.WriteWindowUpdate(3, 100_000), "window")
		case "reset":
			checktest.NoError(t, f.WriteRSTStream(3, http2.ErrCodeCancel), "reset")
		case "close":
			checktest.NoError(t, f.conn.Close(), "close")
			<-w.closed
			checktest.Equal(t, w.counted.Load(), 0, "bytes that wait after %s", end)
			return
		}
		if end != "reset" {
			_, n := f.end(3)
			checktest.Equal(t, n, 100_000-minWindow, "the rest after %s", end)
		}
		f.get(5, "/cold?n=1&set-Content-Type=a")
		status, n := f.end(5)
		checktest.Equal(t, status+" "+fmt.Sprint(n), "200 1", "the next answer after %s", end)
		checktest.Equal(t, w.counted.Load(), 0, "bytes that wait after %s", end)
		_ = f.conn.Close()
		<-w.closed
	}
}

func withPath(r *http.Request, path string) *http.Request {
	r = r.Clone(context.Background())
	r.URL, _ = url.Parse(path)
	return r
}
