// Stream: one connection to the feed.

package follow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxProblem is how much of a refusal is read, in bytes.
const maxProblem = 64 << 10

// newClient returns the state of a new call of Receive, with defaults for missing options.
func newClient(o Options, f func(Change) error) (*client, error) {
	if o.HTTP == nil {
		o.HTTP = &http.Client{}
	}
	or := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	or(&o.SilenceTimeout, 45*time.Second)
	or(&o.MinPause, 200*time.Millisecond)
	or(&o.MaxPause, 30*time.Second)
	c := &client{o: o, f: f, secret: o.Secret, position: o.After, unfiltered: len(o.Kinds)+len(o.Fields) == 0}
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
		u.Path = "/-/feed"
	}
	q := u.Query()
	if c.o.Source != "" {
		q.Set("source", c.o.Source)
	}
	q["kind"], q["field"] = c.o.Kinds, c.o.Fields
	u.RawQuery = q.Encode()
	c.url = u.String()
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := fmt.Errorf("nothing came for %v", c.o.SilenceTimeout)
	watch := time.AfterFunc(c.o.SilenceTimeout, func() { cancel(silent) })
	defer watch.Stop()
	if err := c.refreshAddress(ctx); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	req.Header.Set("Accept", "text/event-stream")
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
		return &lostError{err: findCause(ctx, err)}
	}
	defer resp.Body.Close()
	if err := checkResponse(resp); err != nil {
		if denied, ok := errors.AsType[*StatusError](err); ok && c.o.Locate != nil && denied.Status == http.StatusUnauthorized {
			c.denied = denied
			return &lostError{err: err}
		}
		return err
	}
	if c.o.OnOpen != nil {
		c.o.OnOpen()
	}
	in := newParser(resp.Body)
	for {
		e, err := in.readEvent()
		switch {
		case errors.Is(err, errLong):
			return err
		case err != nil:
			return &lostError{err: findCause(ctx, err)}
		}
		// The time that the callback takes does not count as silence of the server.
		watch.Stop()
		c.events++
		if err := c.take(e); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return &lostError{err: findCause(ctx, ctx.Err())}
		}
		watch.Reset(c.o.SilenceTimeout)
	}
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

// checkResponse returns the error of a response that is not an event stream, or nil.
func checkResponse(resp *http.Response) error {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if resp.StatusCode == http.StatusOK && strings.TrimSpace(kind) == "text/event-stream" {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem)) // a partial body is good enough for a message
	var problem struct {
		Error string `json:"error"`
	}
	text := string(bytes.TrimSpace(body))
	if json.Unmarshal(body, &problem) == nil && problem.Error != "" {
		text = problem.Error
	}
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	err := &StatusError{Status: resp.StatusCode, Text: text}
	switch s := resp.StatusCode; {
	case s == http.StatusOK:
		return fmt.Errorf("follow: the server answered with %q, which is not a stream of events", kind)
	case s >= 500 || s == http.StatusTooManyRequests || s == http.StatusRequestTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // 0 if the header is missing
		return &lostError{err: err, wait: time.Duration(min(max(seconds, 0), 3600)) * time.Second}
	}
	return err
}
