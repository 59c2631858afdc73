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

// maxProblem bounds what is read of a refusal, in bytes.
const maxProblem = 64 << 10

func newClient(o Options, f func(Change) error) (*client, error) {
	if o.HTTP == nil {
		o.HTTP = &http.Client{}
	}
	or := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	or(&o.Silence, 45*time.Second)
	or(&o.Least, 200*time.Millisecond)
	or(&o.Most, 30*time.Second)
	c := &client{o: o, f: f, secret: o.Secret, at: o.After, every: len(o.Kinds)+len(o.Fields) == 0}
	if n, plain := number(o.After); plain {
		c.n, c.known = n, true
	}
	if o.Where == nil {
		return c, c.address(o.URL)
	}
	return c, nil
}

// address takes over the server's URL and secret.
func (c *client) address(at string) error {
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

// where asks Options.Where.
func (c *client) where(ctx context.Context) error {
	if c.o.Where == nil {
		return nil
	}
	at, secret, err := c.o.Where(ctx)
	switch {
	case err != nil:
		return &lostError{err: cause(ctx, err)}
	case c.denied != nil && secret == c.secret:
		return c.denied
	}
	c.secret, c.denied = secret, nil
	return c.address(at)
}

// stream reads one connection to its end. A lostError is worth another try.
func (c *client) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := fmt.Errorf("nothing came for %v", c.o.Silence)
	watch := time.AfterFunc(c.o.Silence, func() { cancel(silent) })
	defer watch.Stop()
	if err := c.where(ctx); err != nil {
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
	if c.at != "" {
		req.Header.Set("Last-Event-ID", c.at)
	}
	resp, err := c.o.HTTP.Do(req)
	if err != nil {
		return &lostError{err: cause(ctx, err)}
	}
	defer resp.Body.Close()
	if err := refusal(resp); err != nil {
		var denied *StatusError
		if c.o.Where != nil && errors.As(err, &denied) && denied.Status == http.StatusUnauthorized {
			c.denied = denied
			return &lostError{err: err}
		}
		return err
	}
	if c.o.Open != nil {
		c.o.Open()
	}
	in := newParser(resp.Body)
	for {
		e, err := in.next()
		switch {
		case errors.Is(err, errLong):
			return err
		case err != nil:
			return &lostError{err: cause(ctx, err)}
		}
		// The callback's own time does not count as silence of the server.
		watch.Stop()
		c.events++
		if err := c.take(e); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return &lostError{err: cause(ctx, ctx.Err())}
		}
		watch.Reset(c.o.Silence)
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
		return c.place(e.id)
	}
	return nil
}

// cause is why a connection ended: the silence, not the cancelling that followed it.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	if errors.Is(err, io.EOF) {
		return errors.New("the server ended the stream")
	}
	return err
}

// refusal is the error of an answer that is no stream.
func refusal(resp *http.Response) error {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if resp.StatusCode == http.StatusOK && strings.TrimSpace(kind) == "text/event-stream" {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem)) // what came of it
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
		return fmt.Errorf("follow: the server answered %q, which is no stream of events", kind)
	case s >= 500 || s == http.StatusTooManyRequests || s == http.StatusRequestTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // 0 when it says none
		return &lostError{err: err, wait: time.Duration(min(max(seconds, 0), 3600)) * time.Second}
	}
	return err
}
