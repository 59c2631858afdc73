// Follow: receives every change once and in order, over connections that may break.

// Package follow reads the change feed of an Understudy server, over one of several wires. It needs only the standard library.
//
// A change counts as received when the callback returns nil. Then the next change follows. A program stores
// Change.Cursor together with its result, and starts again with it as Options.After. It then receives every
// change exactly once, even if it or the server is killed.
package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/kit/retry"
)

// Change says that a record appeared, changed or was deleted.
type Change struct {
	// N is the change's number. Numbers grow by one per change. It is 0 for a role that does not see every
	// record.
	N       int64     `json:"n,omitempty"`
	Source  string    `json:"source"`
	Kind    string    `json:"kind"`
	ID      string    `json:"id"`
	What    string    `json:"what"` // came, changed or went
	Fields  []string  `json:"fields,omitempty"`
	Version int64     `json:"version,omitempty"` // version of the record after the change; 0 if N is 0
	At      time.Time `json:"at"`                // when the server noticed the change
	// Cursor is the position after this change, for Options.After. It contains the number and the server's run.
	// For a role that may not see numbers it is sealed.
	Cursor string `json:"cursor"`
}

// Options say what to follow. Only URL or Locate is required.
type Options struct {
	// URL is the address of the viewer ("http://127.0.0.1:4114") or the full address of a feed.
	URL    string
	Source string // may be empty if the server has one source
	// After is the Cursor of a Change. "0" starts at the beginning, "" starts now.
	After  string
	User   string // user of a credential; a Secret without User is sent as a bearer token
	Secret string
	Wire   Wire     // form in which the server sends the feed; Events if it is not set
	Kinds  []string // kinds of the changes to receive; none means all
	Fields []string // receive a changed record only if one of these fields changed; none means all
	// Locate returns the server's URL and secret before each connection, for a server that changes them with a
	// restart. URL and Secret are then ignored, and OnLost receives an error of Locate. After a 401 the request
	// is repeated once if Locate returns another secret. If nil, URL and Secret are used.
	Locate func(ctx context.Context) (url, secret string, err error)
	// HTTP sends the requests; nil means a new client. It must not have a Timeout, because that would end the
	// stream. For Frames over https its transport must use only HTTP/1.1: set http.Transport.Protocols, and for a
	// clone also TLSClientConfig.NextProtos, which would still offer h2.
	HTTP *http.Client
	// SilenceTimeout is how long the server may send nothing, not even a comment, before the connection counts
	// as lost. 0 means 45 s.
	SilenceTimeout time.Duration
	// MinPause and MaxPause limit the pause before the next attempt. It is random, from 0 to a limit that is MinPause
	// first and doubles with each failure up to MaxPause. If the server asks for a delay, that delay is added, but at
	// most MaxPause of it. 0 means 200 ms and 30 s.
	MinPause, MaxPause time.Duration
	// GiveUpAfter is how long Receive may be without a connection before it returns ErrUnavailable. 0 means forever.
	GiveUpAfter time.Duration
	// OnLost is called before each pause with the reason why a connection failed or was lost. The next attempt may
	// begin later than after the pause, because other calls of Receive try the same server. It may be nil.
	OnLost func(err error, pause time.Duration)
	// OnOpen is called when the first event of a connection was received. It may be nil.
	OnOpen func()
}

// ErrUnavailable is the error for a server without a connection for Options.GiveUpAfter. The error of Receive also wraps
// the last reason.
var ErrUnavailable = errors.New("follow: the server is unavailable")

// GapError means that the server's change numbers are not consecutive: changes are missing.
type GapError struct{ Want, Got int64 }

// Error says which number was received.
func (e *GapError) Error() string {
	return fmt.Sprintf("follow: change %d was sent, but %d is missing", e.Got, e.Want)
}

// StatusError is a refusal by the server that another attempt would not change.
type StatusError struct {
	Status    int    // status of HTTP
	Text      string // message of the server
	RequestID string // X-Request-Id of the attempt, with which the server's log names it
}

// Error returns the status and the server's message.
func (e *StatusError) Error() string {
	return fmt.Sprintf("follow: the server answered %d: %s", e.Status, e.Text)
}

// Receive calls f for each change, one after the other. It returns when ctx ends (with its error), when f fails
// (with the same error), when the server refuses the request (*StatusError), when change numbers are not
// consecutive (*GapError), and when there was no connection for too long (ErrUnavailable). It never returns nil.
//
// A change that is received again is not passed to f a second time.
// After 5 failures in a row of a server, the Receive calls of a process try that server one at a time, until it answers.
func Receive(ctx context.Context, o Options, f func(Change) error) error {
	c, err := newClient(o, f)
	if err != nil {
		return err
	}
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	c.giveUp = time.AfterFunc(c.o.GiveUpAfter, cancel)
	defer c.giveUp.Stop()
	for own.Err() == nil {
		before := c.events
		err := c.stream(own)
		lost, isLost := errors.AsType[*lostError](err)
		if ctx.Err() == nil && !isLost {
			return err
		}
		if isLost && !errors.Is(lost.err, context.Canceled) {
			c.cause = lost.err
		}
		if own.Err() != nil {
			break
		}
		if c.events > before {
			c.failures = 0
			c.giveUp.Reset(c.o.GiveUpAfter)
		}
		pause := min(max(lost.wait, c.retry), c.o.MaxPause) + c.choosePause(c.failures)
		c.failures++
		if c.o.OnLost != nil {
			c.o.OnLost(lost.err, pause)
		}
		_ = retry.Wait(own, pause) // the loop sees the end of the context
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: no connection for %v: %w", ErrUnavailable, c.o.GiveUpAfter, c.cause)
}

// choosePause returns a random pause after a number of earlier failures ("full jitter": M. Brooker, Exponential
// Backoff And Jitter, 2015).
func (c *client) choosePause(before int) time.Duration {
	return rand.N(retry.Backoff(c.o.MinPause, c.o.MaxPause, before) + 1)
}

// lostError is an error after which another attempt may succeed.
type lostError struct {
	err  error
	wait time.Duration // delay that the server asked for
}

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// client is the state of one call of Receive.
type client struct {
	o          Options
	f          func(Change) error
	at         *url.URL // address of the feed
	secret     string
	key        string        // Sec-WebSocket-Key of the last request
	denied     *StatusError  // the 401 for the current secret, if Locate may know another secret
	position   string        // current position: a cursor; "" until the server has sent one
	n          int64         // number in the current position
	known      bool          // whether n is valid
	recent     []string      // cursors of the last changes, if they are sealed
	unfiltered bool          // no filter is set, so numbers must be consecutive
	retry      time.Duration // delay that the server asks for before a new connection
	events     int           // number of events received; shows that a connection worked
	failures   int           // connections in a row that failed before their first event
	cause      error         // reason why the last connection failed
	giveUp     *time.Timer   // ends Receive; stopped while there is a connection
	id         string        // first part of the ids of requests
	requests   int64
}

// parseNumber returns the number in a cursor, which the id of the server's run may follow. ok is false if the
// cursor is sealed.
func parseNumber(cursor string) (n int64, ok bool) {
	text, _, _ := strings.Cut(cursor, ".")
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0
}

// maxRecent is how many sealed cursors are compared with the cursor of the next change.
const maxRecent = 256

// setPosition stores the position that the server sends.
func (c *client) setPosition(id string) error {
	n, plain := parseNumber(id)
	switch {
	case !plain: // sealed
		c.position, c.known = id, false
		return nil
	case c.known && n < c.n: // the server sends changes again
		return nil
	case c.known && c.unfiltered && n != c.n:
		return &GapError{Want: c.n + 1, Got: n}
	}
	c.position, c.n, c.known = id, n, true
	return nil
}

// change passes one change to the callback, unless it was passed before. The position moves only after the callback
// succeeds.
func (c *client) change(id string, data []byte) error {
	var ch Change
	if err := json.Unmarshal(data, &ch); err != nil {
		return fmt.Errorf("follow: the server sent something that is not a change: %w", err)
	}
	ch.Cursor = id
	n, _ := parseNumber(id)
	switch {
	case id == "":
		return errors.New("follow: the server sent a change without its position")
	case ch.N == 0 && slices.Contains(c.recent, id), ch.N > 0 && ch.N == n && c.known && n <= c.n:
		return nil
	case ch.N == 0:
		c.recent = append(c.recent[max(0, len(c.recent)-maxRecent+1):], id)
	case ch.N != n:
		return fmt.Errorf("follow: change %d has the id %q", ch.N, id)
	case c.known && c.unfiltered && n != c.n+1:
		return &GapError{Want: c.n + 1, Got: n}
	}
	if err := c.f(ch); err != nil {
		return err
	}
	c.position, c.n, c.known = id, ch.N, ch.N > 0
	return nil
}
