// Stream: one connection to the feed, or pages that are requested one after another.

package follow

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	maxProblem = 64 << 10 // how much of a refusal is read, in bytes
	maxPage    = 16 << 20 // largest size of a page, in bytes
)

// errType is the error of a response that is not the feed.
var errType = errors.New("follow: the server's answer is not the feed")

// newClient returns the state of a new call of Receive, with defaults for missing options.
func newClient(o Options, f func(Change) error) (*client, error) {
	if o.Wire < Events || o.Wire > Connect {
		return nil, fmt.Errorf("follow: there is no wire %d", o.Wire)
	}
	if o.HTTP == nil {
		o.HTTP = newHTTPClient(o.Wire)
	}
	or := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	or(&o.SilenceTimeout, 45*time.Second)
	or(&o.MinPause, 200*time.Millisecond)
	or(&o.MaxPause, 30*time.Second)
	or(&o.GiveUpAfter, math.MaxInt64)
	c := &client{o: o, f: f, secret: o.Secret, position: o.After, unfiltered: len(o.Kinds)+len(o.Fields) == 0,
		cause: errors.New("the server did not answer"), id: rand.Text()[:10]}
	if n, plain := parseNumber(o.After); plain {
		c.n, c.known = n, true
	}
	if o.Locate == nil {
		return c, c.setAddress(o.URL)
	}
	return c, nil
}

// setAddress stores the feed's address for the server's URL.
func (c *client) setAddress(at string) error {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("follow: the URL must be http(s)://host")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = feedPath
	}
	q := u.Query()
	if c.o.Source != "" {
		q.Set("source", c.o.Source)
	}
	q["kind"], q["field"] = c.o.Kinds, c.o.Fields
	u.RawQuery = q.Encode()
	c.at = u
	return nil
}

// refreshAddress asks Options.Locate for the address and the secret.
func (c *client) refreshAddress(ctx context.Context) error {
	if c.o.Locate == nil {
		return nil
	}
	at, secret, err := c.o.Locate(ctx)
	switch {
	case err != nil:
		return &lostError{err: findCause(ctx, err)}
	case c.denied != nil && secret == c.secret:
		return c.denied
	}
	c.secret, c.denied = secret, nil
	return c.setAddress(at)
}

// stream reads one connection until it ends. After a lostError another attempt may succeed.
func (c *client) stream(ctx context.Context) error {
	if err := c.refreshAddress(ctx); err != nil {
		return err
	}
	leave, err := c.enter(ctx)
	if err != nil {
		return err
	}
	err = c.read(ctx, leave)
	leave(err)
	return err
}

// read connects and handles events until the connection ends. It calls leave after the first event.
func (c *client) read(ctx context.Context, leave func(error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := fmt.Errorf("nothing came for %v", c.o.SilenceTimeout)
	watch := time.AfterFunc(c.o.SilenceTimeout, func() { cancel(silent) })
	defer watch.Stop()
	next := c.openPages(ctx)
	if c.o.Wire != Pages {
		resp, err := c.send(ctx, c.at)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusSwitchingProtocols { // then the end of ctx does not close the connection
			defer context.AfterFunc(ctx, func() { _ = resp.Body.Close() })()
		}
		if next, err = c.openStream(resp); err != nil {
			return c.explain(ctx, err)
		}
	}
	for isFirst := true; ; isFirst = false {
		e, err := next()
		if err != nil {
			return c.explain(ctx, err)
		}
		// The time that the callback takes does not count as silence of the server.
		watch.Stop()
		c.events++
		if isFirst {
			leave(nil)
			c.giveUp.Stop()
			if c.o.OnOpen != nil {
				c.o.OnOpen()
			}
		}
		if err := c.take(e); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return &lostError{err: findCause(ctx, ctx.Err())}
		}
		watch.Reset(c.o.SilenceTimeout)
	}
}

// send requests the feed over Options.Wire, with the credential, the position and an id of its own.
func (c *client) send(ctx context.Context, at *url.URL) (*http.Response, error) {
	req, err := c.newRequest(ctx, at)
	if err != nil {
		return nil, err
	}
	c.requests++
	req.Header.Set("X-Request-Id", c.requestID())
	req.Header.Set("Cache-Control", "no-store")
	switch {
	case c.o.User != "":
		req.SetBasicAuth(c.o.User, c.secret)
	case c.secret != "":
		req.Header.Set("Authorization", "Bearer "+c.secret)
	}
	if c.position != "" {
		req.Header.Set("Last-Event-ID", c.position)
	}
	resp, err := c.o.HTTP.Do(req)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	if err = checkResponse(resp, answers[c.o.Wire]); err != nil {
		_ = resp.Body.Close()
		return nil, c.explain(ctx, err)
	}
	return resp, nil
}

// requestID returns the id of the last request.
func (c *client) requestID() string { return c.id + "-" + strconv.FormatInt(c.requests, 36) }

// explain returns the error of a connection as Receive needs it: a *lostError, unless another attempt would end in the same way.
func (c *client) explain(ctx context.Context, err error) error {
	_, isLost := errors.AsType[*lostError](err)
	refused, isRefused := errors.AsType[*StatusError](err)
	if isRefused {
		refused.RequestID = c.requestID()
	}
	switch {
	case isLost:
		return err
	case isRefused && c.o.Locate != nil && refused.Status == http.StatusUnauthorized:
		c.denied = refused
		return &lostError{err: err}
	case isRefused, errors.Is(err, errLong), errors.Is(err, errType):
		return err
	}
	return &lostError{err: findCause(ctx, err)}
}

// openPages returns a function that reads the events of page after page. The server answers the first one at once.
func (c *client) openPages(ctx context.Context) func() (event, error) {
	var page []event
	wait := time.Duration(0)
	return func() (e event, err error) {
		if len(page) == 0 {
			page, err = c.readPage(ctx, wait)
			wait = min(20*time.Second, c.o.SilenceTimeout/2)
		}
		if err == nil {
			e, page = page[0], page[1:]
		}
		return e, err
	}
}

// readPage requests the next page. Its last event is the position after the page.
func (c *client) readPage(ctx context.Context, wait time.Duration) (events []event, err error) {
	at, q := *c.at, c.at.Query()
	if q.Set("wait", wait.String()); c.position == "" {
		q.Set("after", "now")
	}
	at.RawQuery = q.Encode()
	early := time.NewTimer(wait / 2)
	defer early.Stop()
	resp, err := c.send(ctx, &at)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var page struct {
		Changes []json.RawMessage
		Next    string
	}
	if err = json.NewDecoder(io.LimitReader(resp.Body, maxPage)).Decode(&page); err == nil && page.Next == "" {
		err = errors.New("the server sent a page without its position")
	}
	if err != nil {
		return nil, &lostError{err: findCause(ctx, err)}
	}
	if (len(page.Changes) == 0 || page.Next == c.position) && wait > 0 && early.Stop() {
		return nil, &lostError{err: findCause(ctx, io.EOF)} // the server stops, or does not know the parameters wait or after
	}
	for _, data := range page.Changes {
		var ch Change
		_ = json.Unmarshal(data, &ch) // change reports the error
		if ch.N > 0 {                 // the cursor is the number, and the server's run as in next
			ch.Cursor = strconv.FormatInt(ch.N, 10) + strings.TrimLeft(page.Next, "0123456789")
		}
		events = append(events, event{id: ch.Cursor, data: data, retry: -1})
	}
	return append(events, event{id: page.Next, hasID: true, retry: -1}), nil
}

// take handles one event.
func (c *client) take(e event) error {
	if e.retry >= 0 {
		c.retry = e.retry
	}
	switch {
	case e.data != nil:
		return c.change(e.id, e.data)
	case e.hasID:
		return c.setPosition(e.id)
	}
	return nil
}

// findCause returns why a connection ended: if silence cancelled the context, it returns that reason and not
// the cancellation.
func findCause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	if errors.Is(err, io.EOF) {
		return errors.New("the server ended the stream")
	}
	return err
}

// checkResponse returns nil if a response has the wanted media type, or the wanted protocol after an upgrade.
func checkResponse(resp *http.Response, want string) error {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	switch resp.StatusCode {
	case http.StatusSwitchingProtocols:
		kind = resp.Header.Get("Upgrade")
		fallthrough
	case http.StatusOK:
		if strings.EqualFold(strings.TrimSpace(kind), want) {
			return nil
		}
		return fmt.Errorf("%w: it is %q, not %q", errType, kind, want)
	case http.StatusUnauthorized:
		if kind == want && want == answers[Connect] { // the response is an envelope with the error
			return nil
		}
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem)) // a partial body is good enough for a message
	var problem struct {
		Error string `json:"error"`
	}
	text := string(bytes.TrimSpace(body))
	if json.Unmarshal(body, &problem) == nil && problem.Error != "" {
		text = problem.Error
	}
	return newRefusal(resp.StatusCode, text, resp.Header.Get("Retry-After"))
}

// newRefusal returns the error of a refusal: a *lostError if the server may accept another attempt, otherwise a *StatusError.
// retryAfter is in seconds, or empty.
func newRefusal(status int, text, retryAfter string) error {
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	err := &StatusError{Status: status, Text: text}
	if status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout {
		seconds, _ := strconv.Atoi(retryAfter) // 0 if it is missing
		return &lostError{err: err, wait: time.Duration(min(max(seconds, 0), 3600)) * time.Second}
	}
	return err
}
