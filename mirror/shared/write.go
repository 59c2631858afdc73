// Writes and HEAD: requests that are passed on, and change what is stored.

package shared

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/mirror/httpcache"
	"understudy/request"
	"understudy/spec"
)

// write passes a write on, once. What it may have changed is no longer stored when its answer
// goes out (RFC 9111, 4.4), also when it is not known what became of it. The answer to a POST
// that says that it is what a GET gets is stored as that (RFC 9110, 9.3.3).
func (c *Cache) write(ctx context.Context, r *reading) (*request.Exchanged, error) {
	if err := c.flights.Enter(r.exchange.Flow); err != nil {
		return nil, fmt.Errorf("mirror: %s: %w", r.exchange.Target.Key, err)
	}
	defer c.flights.Exit(r.exchange.Flow)
	written := c.enter(r.exchange.Target.Key)
	defer c.exit(r.exchange.Target.Key)
	x := r.exchange
	x.Most = c.most
	var came httpcache.Response
	storable := false
	x.Whole = func(status int, h http.Header, asked, at time.Time) bool {
		came = httpcache.Received(status, h, asked, at)
		storable = came.Storable(&r.q) && !misleading(x.Target, x.Header)
		return storable
	}
	got, err := r.up.Exchange(ctx, x)
	if errors.Is(err, understudy.ErrUnknownOutcome) {
		c.Invalidate(ctx, r.exchange.Target.Key)
	}
	if err != nil {
		return nil, fmt.Errorf("mirror: %s %s: %w", understudy.Clip(x.Method), x.Target.Key, err)
	}
	for _, uri := range httpcache.Invalidated(&r.q, &came, r.hosts()...) {
		c.Invalidate(ctx, understudy.Key{Source: r.exchange.Target.Key.Source, URI: uri})
		if uri == r.exchange.Target.Key.URI {
			written++ // by itself
		}
	}
	if storable && got.Stream == nil {
		c.keep(r, c.pageOf(r, &came, got.Response.Page.Body, got.Response.Page.Took), written)
	}
	got.Header, got.Response.Fwd = httpcache.EndToEnd(got.Header), "method"
	return got, nil
}

// hosts are the names under which the source's own URIs stand in answers: those of upstream,
// and as which it was asked.
func (r *reading) hosts() []string {
	all := []string{strings.ToLower(r.exchange.Host)}
	for _, h := range r.exchange.Target.Spec.Hosts {
		if _, rest, ok := strings.Cut(h.URL, "://"); ok {
			host, _, _ := strings.Cut(rest, "/")
			all = append(all, strings.ToLower(host))
		}
	}
	return all
}

// head passes a HEAD on. Its answer confirms what is stored of the GET, or ends it (RFC 9111,
// 4.3.5).
func (c *Cache) head(ctx context.Context, r *reading) (*request.Exchanged, error) {
	fwd := r.fwd()
	written := c.enter(r.exchange.Target.Key)
	defer c.exit(r.exchange.Target.Key)
	ended := r.up.ended.Load() != r.ended // a write may have ended what is held
	got, err := c.alone(ctx, r, r.exchange, fwd)
	if err != nil {
		return c.rescued(ctx, r, err)
	}
	if r.held == nil || got.Response.Page.Status == http.StatusNotModified {
		return got, nil
	}
	if failed(got.Response.Page.Status) {
		if r.decision.Error {
			return c.hit(r, "stale: upstream "+strconv.Itoa(got.Response.Page.Status)), nil
		}
		return got, nil
	}
	came := httpcache.Received(got.Response.Page.Status, got.Header, got.Asked, got.Response.Page.At)
	switch same, known := r.held.response.SameAs(&came, strconv.Itoa(len(r.held.page.Body))); {
	case !same:
		c.Invalidate(ctx, r.exchange.Target.Key)
		return got, nil
	case !known || ended:
		return got, nil
	}
	now, asGet := r.held.response.Update(&came), r.q
	asGet.Method = http.MethodGet
	if !now.Storable(&asGet) {
		return got, nil // its header is for who asked
	}
	p := c.pageOf(r, &now, r.held.page.Body, got.Response.Page.Took)
	c.keep(r, p, written)
	a := c.fetched(r, p, false)
	a.Response.Fwd = fwd
	return a, nil
}

// flight is the target under whose key the request's flight is: that of the stored answer
// which it renews, else that of its URI.
func (r *reading) flight() *spec.Target {
	if r.held == nil || r.held.page.Key == r.exchange.Target.Key {
		return r.exchange.Target
	}
	t := *r.exchange.Target
	t.Key = r.held.page.Key
	return &t
}
