// Package feed is a part of the bench: from a change to a thousand subscribers, one of whom takes
// nothing.
package feed

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"understudy/bench/rig"
)

// listener is one subscriber: a connection that reads events and remembers the
// newest number and when it came. It is small, because a thousand of them
// share the machine with the server.
type listener struct {
	end    func() error                         // closes the connection
	follow func(take func(cursor string)) error // calls take for each event until the stream ends
	at     atomic.Int64                         // newest number
	when   sync.Map                             // when each number came, in nanoseconds since the bench began
	lost   atomic.Int64                         // numbers that did not follow the one before
	err    atomic.Pointer[error]                // why it ended
}

// listen opens a stream of server-sent events.
func listen(ctx context.Context, address, query string) (*listener, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(conn, "GET /-/feed?%s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", query, conn.RemoteAddr()); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &listener{end: conn.Close, follow: func(take func(string)) error { return readEvents(conn, take) }}, nil
}

// readEvents reads the head of an answer and then server-sent events.
func readEvents(conn net.Conn, take func(cursor string)) error {
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	buf := make([]byte, 0, 4096)
	for {
		n, err := resp.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		last := bytes.LastIndexByte(buf, '\n') + 1
		for line := range bytes.Lines(buf[:last]) {
			if id, is := bytes.CutPrefix(line, []byte("id: ")); is {
				take(string(bytes.TrimSpace(id)))
			}
		}
		buf = append(buf[:0], buf[last:]...)
		if err == nil && len(buf) == cap(buf) {
			err = errors.New("a line of more than 4 KiB")
		}
		if err != nil {
			return err
		}
	}
}

// read follows the feed until the connection is closed; ready is called once the stream
// has told its place, or has ended.
func (l *listener) read(began time.Time, ready func()) {
	err := l.follow(func(cursor string) {
		now := int64(time.Since(began))
		n, err := numberOf(cursor)
		if err != nil {
			l.broken(err)
			return
		}
		before := l.at.Load()
		if before != 0 && n != before+1 {
			l.lost.Add(1)
		}
		l.when.Store(n, now)
		l.at.Store(n)
		if before == 0 {
			ready()
		}
	})
	l.broken(err)
	ready()
}

func (l *listener) broken(err error) { l.err.CompareAndSwap(nil, &err) }

// audience is all subscribers of the part.
type audience struct {
	quick   []*listener
	began   time.Time
	running sync.WaitGroup
}

// gather opens a number of streams from the present position, and waits until each has announced its position.
func gather(ctx context.Context, address string, n int, listen func(ctx context.Context, address string) (*listener, error)) (*audience, error) {
	c := &audience{began: time.Now()}
	var ready sync.WaitGroup
	ready.Add(n)
	for range n {
		l, err := listen(ctx, address)
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		c.quick = append(c.quick, l)
		c.running.Go(func() { l.read(c.began, sync.OnceFunc(ready.Done)) })
	}
	all := make(chan struct{})
	go func() { ready.Wait(); close(all) }()
	select {
	case <-all:
		for _, l := range c.quick {
			if err := l.err.Load(); err != nil {
				return nil, errors.Join(*err, c.close())
			}
		}
		return c, nil
	case <-time.After(rig.Patience):
	case <-ctx.Done():
	}
	return nil, errors.Join(errors.New("not every stream began"), c.close())
}

func (c *audience) close() error {
	var errs []error
	for _, l := range c.quick {
		errs = append(errs, l.end())
	}
	c.running.Wait()
	return errors.Join(errs...)
}

// reached waits until all subscribers have received a change, and returns the times since the request that caused it.
func (c *audience) reached(ctx context.Context, n int64, asked time.Duration) ([]time.Duration, error) {
	took := make([]time.Duration, 0, len(c.quick))
	deadline := time.Now().Add(10 * time.Second)
	for _, l := range c.quick {
		for l.at.Load() < n {
			if err := l.err.Load(); err != nil {
				return nil, *err
			}
			if time.Now().After(deadline) || ctx.Err() != nil {
				return nil, fmt.Errorf("a subscriber is at %d, not %d: %w", l.at.Load(), n, ctx.Err())
			}
			time.Sleep(time.Millisecond)
		}
		when, _ := l.when.LoadAndDelete(n)
		took = append(took, time.Duration(when.(int64))-asked)
	}
	return took, nil
}

// Measure lets the world move, asks the drop-in for a page it does not hold,
// and times from before that question to the last event of it at each
// subscriber: upstream's answer, the diff, the save and the gate are in it.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	subscribers, held := r.Size(1000, 20), r.Size(20_000, 1000)
	s := rig.Fast(held / 50)
	s.Extra = fmt.Sprintf("feed: {subscribers: %d, subscribers_each: %d, stall: 5m}", subscribers+10, subscribers+10)
	g, err := r.Rig(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	w := g.Through()
	defer w.Close()
	if _, err := w.Walk(ctx, rig.Calls+"?PageSize=1000", held, nil); err != nil {
		return err
	}
	c, err := gather(ctx, g.Serve.Addresses["viewer"], subscribers-1, wires[0].listen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return fed(ctx, r, g, w, c)
}

// MeasureNodes times a change that one process fetches and saves, from before the question to its last event at subscribers of another
// process on the same PostgreSQL database.
func MeasureNodes(ctx context.Context, r *rig.Run, g *rig.Rig, other *rig.Child, held int) (err error) {
	w := g.Through()
	defer w.Close()
	if _, err := w.Walk(ctx, rig.Calls+"?PageSize=1000", held, nil); err != nil {
		return err
	}
	c, err := gather(ctx, other.Addresses["viewer"], 5, wires[0].listen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	took, changes, err := measureRounds(ctx, r, g, w, c, 0, r.Times(300, 2))
	if err != nil {
		return err
	}
	r.Table([][]string{append([]string{"changes"}, rig.SpreadHead...), append([]string{fmt.Sprint(changes)}, rig.Spread("at another process", took)...)})
	r.AtMost("change to a subscriber of another process, 99 %", rig.Ms(rig.Quantile(took, 0.99)), 100, "ms")
	return nil
}

// fed runs rounds without and then with the slow subscriber. That subscriber
// requests all changes and does not read the response.
func fed(ctx context.Context, r *rig.Run, g *rig.Rig, w *rig.Client, c *audience) error {
	before, err := g.Serve.Resident()
	if err != nil {
		return err
	}
	rows := [][]string{append([]string{"changes"}, rig.SpreadHead...)}
	var worst float64
	for i, name := range []string{"without a slow one", "with one that reads nothing"} {
		if i == 1 {
			slow, err := listen(ctx, g.Serve.Addresses["viewer"], "after=0")
			if err != nil {
				return err
			}
			defer slow.end()
		}
		rounds := r.Times(50, 2)
		took, changes, err := measureRounds(ctx, r, g, w, c, rounds*i, rounds)
		if err != nil {
			return err
		}
		worst = rig.Ms(rig.Quantile(took, 0.99))
		rows = append(rows, append([]string{fmt.Sprint(changes)}, rig.Spread(name, took)...))
	}
	after, err := g.Serve.Resident()
	if err != nil {
		return err
	}
	r.Say("from the question that brings a change to each of %d subscribers:", len(c.quick))
	r.Table(rows)
	r.Say("resident memory of the server: %s MiB before, %s MiB after", rig.Figure(float64(before)/rig.Mib), rig.Figure(float64(after)/rig.Mib))
	lost := int64(0)
	for _, l := range c.quick {
		lost += l.lost.Load()
	}
	r.AtMost("change to subscriber beside a slow one, 99 %", worst, 50, "ms")
	r.Exactly("numbers out of order or missing, of all subscribers", int(lost), 0)
	return nil
}

// measureRounds lets the world move and asks, so many times, for pages that no round
// before asked for.
func measureRounds(ctx context.Context, r *rig.Run, g *rig.Rig, w *rig.Client, c *audience, first, n int) (took []time.Duration, changes int64, err error) {
	api := g.Direct()
	defer api.Close()
	for round := range n {
		if err := api.Post(ctx, "/-/advance", `{"calls":1,"seconds":1}`); err != nil {
			return nil, 0, err
		}
		from, err := newest(ctx, g)
		if err != nil {
			return nil, 0, err
		}
		asked := time.Since(c.began)
		since := time.Date(1970, 1, 1+first+round, 0, 0, 0, 0, time.UTC) // every call is later
		if _, err := w.Page(ctx, rig.Calls+"?PageSize=20&StartTime%3E="+since.Format(time.DateOnly)); err != nil {
			return nil, 0, err
		}
		each, to, err := c.told(ctx, g, from, asked)
		if err != nil {
			return nil, 0, err
		}
		took = append(took, each...)
		changes += to - from
		time.Sleep(r.Long(100 * time.Millisecond)) // a quiet moment between rounds
	}
	return took, changes, nil
}

// told waits until all subscribers have received the changes of a page, and returns the times of the last one. The page is saved in one
// transaction, but the feed may be notified after the page was answered. Later changes, of pages that the server fetches by itself, do not
// count.
func (c *audience) told(ctx context.Context, g *rig.Rig, from int64, asked time.Duration) (each []time.Duration, to int64, err error) {
	for deadline := time.Now().Add(10 * time.Second); to <= from; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return nil, 0, errors.New("a new call is no change")
		}
		if to, err = newest(ctx, g); err != nil {
			return nil, 0, err
		}
	}
	each, err = c.reached(ctx, to, asked)
	return each, to, err
}

// newest is the number of the newest change.
func newest(ctx context.Context, g *rig.Rig) (int64, error) {
	w := rig.NewClient(g.Serve.Addresses["viewer"], "", "")
	defer w.Close()
	var page struct {
		Next string `json:"next"`
	}
	if err := w.Json(ctx, "/-/feed.json?after=now&limit=1", &page); err != nil {
		return 0, err
	}
	return numberOf(page.Next)
}

// numberOf returns the number in a place of the feed.
func numberOf(place string) (int64, error) {
	number, _, _ := strings.Cut(place, ".")
	return strconv.ParseInt(number, 10, 64)
}
