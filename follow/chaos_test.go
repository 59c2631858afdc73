// Wires: what Receive promises holds for each wire, also over connections that break.

package follow_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/follow"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// overEach runs a test over each wire.
func overEach(t *testing.T, run func(t *testing.T, wire follow.Wire)) {
	for wire, name := range []string{"events", "pages", "websocket", "frames", "connect"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, follow.Wire(wire))
		})
	}
}

var errEnough = errors.New("enough")

// receive returns the next n changes.
func receive(t *testing.T, o follow.Options, n int) (got []follow.Change, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o.MinPause, o.MaxPause = time.Millisecond, 10*time.Millisecond
	err = follow.Receive(ctx, o, func(ch follow.Change) error {
		if got = append(got, ch); len(got) == n {
			return errEnough
		}
		return nil
	})
	if err == errEnough {
		err = nil
	}
	return got, err
}

func TestEachWireSendsTheSameChanges(t *testing.T) {
	t.Parallel()
	s := openCounter(t)
	s.add(150)
	want, err := receive(t, follow.Options{URL: s.server.URL, After: "0"}, 150)
	checktest.MustNoError(t, err, "the first changes")
	sealed, err := receive(t, follow.Options{URL: s.server.URL, After: "0", User: "some"}, 150)
	checktest.MustNoError(t, err, "the first changes with sealed cursors")
	overEach(t, func(t *testing.T, wire follow.Wire) {
		for role, want := range map[string][]follow.Change{"": want, "some": sealed} {
			o := follow.Options{URL: s.server.URL, After: "0", User: role, Wire: wire}
			got, err := receive(t, o, 70)
			checktest.MustNoError(t, err, "begin")
			o.After = got[69].Cursor
			more, err := receive(t, o, 80)
			checktest.MustNoError(t, err, "continue")
			for i, ch := range append(got, more...) {
				if role != "" {
					checktest.True(t, !strings.Contains(ch.Cursor, "."), "the cursor %s has a number", ch.Cursor)
					ch.Cursor = want[i].Cursor // each sealed cursor is different
				}
				checktest.MustEqual(t, describe(ch), describe(want[i]), "change %d of %q", i, role)
			}
		}
		o := follow.Options{URL: s.server.URL, Wire: wire, Kinds: []string{"calls"}, OnOpen: func() { s.add(3) }}
		now, err := receive(t, o, 3)
		checktest.MustNoError(t, err, "from now on")
		checktest.True(t, now[0].N > 150, "the first new change is %d", now[0].N)
		checktest.Equal(t, now[2].N, now[0].N+2, "number of the third change")
	})
}

// describe returns what a change says.
func describe(ch follow.Change) string {
	return strings.Join(append([]string{ch.Cursor, ch.Source, ch.Kind, ch.ID, ch.What, ch.At.String()}, ch.Fields...), " ")
}

func TestEachWireReportsRefusals(t *testing.T) {
	t.Parallel()
	s := openCounter(t)
	overEach(t, func(t *testing.T, wire follow.Wire) {
		for _, c := range []struct {
			o      follow.Options
			status int
		}{
			{follow.Options{After: "nonsense"}, http.StatusBadRequest},
			{follow.Options{Kinds: []string{"calls", "nothing"}}, http.StatusBadRequest},
			{follow.Options{User: "nobody"}, http.StatusUnauthorized},
			{follow.Options{User: "other"}, http.StatusForbidden},
		} {
			c.o.URL, c.o.Wire = s.server.URL, wire
			_, err := receive(t, c.o, 1)
			refused, ok := errors.AsType[*follow.StatusError](err)
			checktest.MustTrue(t, ok, "%+v: %v", c.o, err)
			checktest.Equal(t, refused.Status, c.status, "status of %v", err)
			checktest.True(t, refused.Text != "" && refused.Text[0] != '{', "the text of %v", err)
		}
	})
}

// A wait for a change ends at once with its context.
func TestEachWireEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := openCounter(t)
	overEach(t, func(t *testing.T, wire follow.Wire) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		opened := make(chan struct{})
		go func() {
			ended <- follow.Receive(ctx, follow.Options{URL: s.server.URL, Wire: wire, OnOpen: func() { close(opened) }},
				func(follow.Change) error { return nil })
		}()
		await(t, opened)
		cancel()
		select {
		case err := <-ended:
			checktest.True(t, errors.Is(err, context.Canceled), "%v", err)
		case <-time.After(10 * time.Second):
			t.Fatal("Receive goes on for 10 s after its context ended")
		}
	})
}

func await(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("nothing happened for a minute")
	}
}

// chaos is a TCP proxy that resets every connection: three in ten in its first bytes, in the handshake or the first
// events; the others after some more. It counts both.
type chaos struct {
	listener net.Listener
	to       string
	open     sync.WaitGroup

	mu           sync.Mutex
	rng          *rand.Rand
	conns        map[net.Conn]bool // nil after the end
	early, later int
}

func startChaos(t *testing.T, seed uint64, to string) *chaos {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	checktest.MustNoError(t, err, "listen")
	p := &chaos{listener: listener, to: to, rng: rand.New(rand.NewPCG(seed, 30)), conns: map[net.Conn]bool{}}
	p.open.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		conns := p.conns
		p.conns = nil
		p.mu.Unlock()
		for conn := range conns {
			reset(conn)
		}
		p.open.Wait()
	})
	return p
}

func (p *chaos) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.open.Go(func() { p.serve(in) })
	}
}

// serve copies both directions until so many bytes have passed, in whichever of them, and then resets both sides.
func (p *chaos) serve(in net.Conn) {
	out, err := net.Dial("tcp", p.to)
	if err != nil || !p.add(in, out) {
		reset(in)
		return
	}
	left := &budget{bytes: p.choose()}
	var both sync.WaitGroup
	both.Go(func() { left.copy(out, in) })
	both.Go(func() { left.copy(in, out) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, in)
	delete(p.conns, out)
}

// add reports whether the proxy still runs, and keeps the connections until they end.
func (p *chaos) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		if p.conns == nil {
			reset(conn)
			continue
		}
		p.conns[conn] = true
	}
	return p.conns != nil
}

// choose returns after how many bytes a connection is reset.
func (p *chaos) choose() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.early < 2 || p.rng.IntN(10) < 3 { // the first two of them, so that each run has some
		p.early++
		return p.rng.IntN(2 << 10)
	}
	p.later++
	return 1<<10 + p.rng.IntN(32<<10) // a page of 100 changes must fit at times
}

// budget is how many bytes may still pass.
type budget struct {
	mu    sync.Mutex
	bytes int
}

func (b *budget) take(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.bytes)
	b.bytes -= n
	return n
}

// copy copies until the budget is used up or one side ends. Then it resets both sides, so that both directions end.
func (b *budget) copy(to, from net.Conn) {
	defer reset(to)
	defer reset(from)
	buf := make([]byte, 4<<10)
	for {
		n, err := from.Read(buf)
		allowed := b.take(n)
		if _, failed := to.Write(buf[:allowed]); failed != nil || err != nil {
			return
		}
		if allowed < n {
			return
		}
	}
}

// reset closes a connection without waiting for what was not sent, as the end of a process does.
func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// Each change is an increment of a counter. The counter is exact, whatever breaks.
func TestChaosProxyLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	increments := sample.Count(200, 10_000)
	seed := sample.Seed(t)
	s := openCounter(t)
	making, stop := context.WithCancel(t.Context())
	var made sync.WaitGroup
	made.Go(func() {
		for range increments / 10 {
			s.add(10)
			select {
			case <-time.After(time.Millisecond):
			case <-making.Done():
			}
		}
	})
	t.Cleanup(func() { stop(); made.Wait() })
	overEach(t, func(t *testing.T, wire follow.Wire) {
		p := startChaos(t, seed, s.server.Listener.Addr().String())
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		lost, last := 0, error(nil)
		var counts []int64
		err := follow.Receive(ctx, follow.Options{
			URL: "http://" + p.listener.Addr().String(), Wire: wire, After: "0", HTTP: &http.Client{Transport: &http.Transport{}},
			MinPause: time.Millisecond, MaxPause: 5 * time.Millisecond, SilenceTimeout: 20 * time.Second,
			OnLost: func(err error, _ time.Duration) { lost, last = lost+1, err },
		}, func(ch follow.Change) error {
			if counts = append(counts, ch.N); len(counts) == increments {
				return errEnough
			}
			return nil
		})
		checktest.MustEqual(t, err, errEnough, "after %d of %d increments and %d lost connections: %v", len(counts), increments, lost, last)
		for i, n := range counts {
			checktest.MustEqual(t, n, int64(i+1), "increment %d", i+1)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		checktest.True(t, p.early+p.later > 1, "there was one connection")
		t.Logf("%d increments over %d connections, %d of them reset early", increments, p.early+p.later, p.early)
	})
}
