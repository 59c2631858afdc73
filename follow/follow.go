// Follow: every change, once and in order, over connections that break.

// Package follow follows the feed of an Understudy server. It needs nothing
// but the standard library.
//
// A change counts as taken when the callback returns nil; then the next one comes. A
// program keeps Change.Cursor together with its result, and begins with it as
// Options.After. It then sees every change exactly once, however often it or the server
// is killed.
package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Change says that a record came, changed or went.
type Change struct {
	// N is the change's number, rising by one from change to change; 0 for a
	// role that does not see every record.
	N       int64     `json:"n,omitempty"`
	Source  string    `json:"source"`
	Kind    string    `json:"kind"`
	ID      string    `json:"id"`
	What    string    `json:"what"` // came, changed, went
	Fields  []string  `json:"fields,omitempty"`
	Version int64     `json:"version,omitempty"` // of the record now; 0 as N
	At      time.Time `json:"at"`                // when it was noticed
	// Cursor is the position behind this change, for Options.After: the number and the server's
	// run, or a sealed text for a role that may not know numbers.
	Cursor string `json:"cursor"`
}

// Options say what to follow. Only URL, or Where, is needed.
type Options struct {
	// URL is where the viewer is reached ("http://127.0.0.1:4114"), or the
	// whole address of a feed.
	URL    string
	Source string // may be left out while the server has one
	// After is a Change's Cursor; "0": from the beginning; "": from now on.
	After  string
	User   string // of a credential; with a Secret and no User, a bearer token
	Secret string
	Kinds  []string // only these; none: all
	Fields []string // of what changed, only what changed in one of these; none: all
	// Where returns, before each connection, the server's URL and secret, for a server that
	// has others after a restart. URL and Secret are then not used, and Lost gets its
	// error. After a 401 the request is sent once more when Where returns another secret.
	// nil: URL and Secret.
	Where func(ctx context.Context) (url, secret string, err error)
	// HTTP sends the requests; nil: a client of its own. It must not have a
	// Timeout, which would end a stream.
	HTTP *http.Client
	// Silence is how long nothing, not even a sign of life, may come before the
	// connection counts as lost; 0: 45 s.
	Silence time.Duration
	// Least and Most bound the pause before another try, which doubles from one
	// to the other; 0: 200 ms and 30 s.
	Least, Most time.Duration
	// Lost is called before each pause with the reason why a connection was lost or not
	// made; nil: no call.
	Lost func(err error, pause time.Duration)
	// Open is called when a stream has begun; nil: no call.
	Open func()
}

// GapError says that the server's numbers do not follow each other: changes
// are missing, or come again.
type GapError struct{ Want, Got int64 }

// Error says which number came.
func (e *GapError) Error() string {
	if e.Got < e.Want {
		return fmt.Sprintf("follow: change %d came again, want %d", e.Got, e.Want)
	}
	return fmt.Sprintf("follow: change %d came, but %d is missing", e.Got, e.Want)
}

// StatusError is a refusal that another try would not change.
type StatusError struct {
	Status int
	Text   string // what the server says
}

// Error is the status and the server's words.
func (e *StatusError) Error() string {
	return fmt.Sprintf("follow: the server answered %d: %s", e.Status, e.Text)
}

// Changes calls f with each change and holds one change at a time. It ends with ctx
// (its error), when f fails (that error, unchanged), when the server refuses
// (*StatusError), and when its numbers are not in order (*GapError).
func Changes(ctx context.Context, o Options, f func(Change) error) error {
	c, err := newClient(o, f)
	if err != nil {
		return err
	}
	pause := c.o.Least
	for {
		began := c.events
		err := c.stream(ctx)
		var lost *lostError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.As(err, &lost):
			return err
		}
		if c.events > began {
			pause = c.o.Least
		}
		wait := max(pause/2+rand.N(pause/2+1), min(max(lost.wait, c.retry), c.o.Most))
		if c.o.Lost != nil {
			c.o.Lost(lost.err, wait)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		pause = min(2*pause, c.o.Most)
	}
}

// lostError is an error after which another try may succeed.
type lostError struct {
	err  error
	wait time.Duration // the server asked for it
}

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// client is where one call of Changes is.
type client struct {
	o      Options
	f      func(Change) error
	url    string
	secret string
	denied *StatusError  // the 401 that secret got, if Where may know another
	at     string        // the place: a cursor; "" before the server has told one
	n      int64         // the same as a number
	known  bool          // n is known
	every  bool          // no filter: each number has to come
	retry  time.Duration // what the server asks for
	events int           // blocks that came: signs that a connection was good
}

// number returns the number in a cursor, which may stand before the run that told it; ok is false when
// the cursor is sealed.
func number(cursor string) (n int64, ok bool) {
	text, _, _ := strings.Cut(cursor, ".")
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0
}

// place takes over the position that the server sends.
func (c *client) place(id string) error {
	n, plain := number(id)
	switch {
	case !plain: // sealed
		c.at, c.known = id, false
		return nil
	case c.known && (n < c.n || c.every && n != c.n):
		return &GapError{Want: c.n + 1, Got: n}
	}
	c.at, c.n, c.known = id, n, true
	return nil
}

// change hands one change to the callback. Only then does the position move behind it.
func (c *client) change(id string, data []byte) error {
	var ch Change
	if err := json.Unmarshal(data, &ch); err != nil {
		return fmt.Errorf("follow: the server sent what is no change: %w", err)
	}
	ch.Cursor = id
	n, _ := number(id)
	switch {
	case ch.N == 0:
	case ch.N != n:
		return fmt.Errorf("follow: change %d has the id %q", ch.N, id)
	case c.known && (ch.N <= c.n || c.every && ch.N != c.n+1):
		return &GapError{Want: c.n + 1, Got: ch.N}
	}
	if err := c.f(ch); err != nil {
		return err
	}
	c.at, c.n, c.known = id, ch.N, ch.N > 0
	return nil
}
