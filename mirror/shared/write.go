// Writes and HEAD requests: they are always sent to upstream and may change which responses are stored.

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

// write sends a write to upstream once. Before it returns, it invalidates the stored responses that the write may
// have changed (RFC 9111, 4.4), even if the outcome of the write is not known. If the response to a POST may be used
// for a GET, it stores the response (RFC 9110, 9.3.3).
func (c *Cache) write(ctx context.Context, r *reading) (*request.ExchangeResponse, error) {
	if err := c.flights.Enter(r.exchange.Flow); err != nil {
		return nil, fmt.Errorf("mirror: %s: %w", r.exchange.Target.Key, err)
	}
	defer c.flights.Exit(r.exchange.Flow)
	written := c.enter(r.exchange.Target.Key)
	defer c.exit(r.exchange.Target.Key)
	x := r.exchange
	x.MaxBody = c.maxBody
	var came httpcache.Response
	storable := false
	x.WantBody = func(status int, h http.Header, asked, at time.Time) bool {
		came = httpcache.NewResponse(status, h, asked, at)
		storable = came.CanStore(&r.q) && !isMisleading(x.Target, x.Header)
		return storable
	}
	got, err := r.source.Exchange(ctx, x)
	if errors.Is(err, understudy.ErrUnknownOutcome) {
		c.Invalidate(ctx, r.exchange.Target.Key)
	}
	if err != nil {
		return nil, fmt.Errorf("mirror: %s %s: %w", understudy.Clip(x.Method), x.Target.Key, err)
	}
	for _, uri := range httpcache.InvalidatedURIs(&r.q, &came, r.hosts()...) {
		c.Invalidate(ctx, understudy.Key{Source: r.exchange.Target.Key.Source, URI: uri})
		if uri == r.exchange.Target.Key.URI {
			written++ // the number includes this write
		}
	}
	if storable && got.Stream == nil {
		c.storePage(r, c.newPage(r, &came, got.Response.Page.Body, got.Response.Page.Took), written)
	}
	got.Header, got.Response.ForwardReason = httpcache.EndToEnd(got.Header), "method"
	return got, nil
}

// hosts returns the host names under which URIs in responses belong to the source: that of upstream and that in the request.
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

// answerHead sends a HEAD to upstream. The response confirms or invalidates the stored response to a GET (RFC 9111, 4.3.5).
func (c *Cache) answerHead(ctx context.Context, r *reading) (*request.ExchangeResponse, error) {
	fwd := r.forwardReason()
	written := c.enter(r.exchange.Target.Key)
	defer c.exit(r.exchange.Target.Key)
	ended := r.source.invalidations.Load() != r.invalidations // a write may have invalidated the stored response in the meantime
	got, err := c.exchangeUnstored(ctx, r, r.exchange, fwd)
	if err != nil {
		return c.answerAfterFailure(ctx, r, err)
	}
	if r.stored == nil || got.Response.Page.Status == http.StatusNotModified {
		return got, nil
	}
	if isServerError(got.Response.Page.Status) {
		if r.decision.AnswerIfError {
			return c.answerStored(r, "stale: upstream "+strconv.Itoa(got.Response.Page.Status)), nil
		}
		return got, nil
	}
	came := httpcache.NewResponse(got.Response.Page.Status, got.Header, got.SentAt, got.Response.Page.At)
	switch same, known := r.stored.response.MatchHead(&came, strconv.Itoa(len(r.stored.page.Body))); {
	case !same:
		c.Invalidate(ctx, r.exchange.Target.Key)
		return got, nil
	case !known || ended:
		return got, nil
	}
	now, asGet := r.stored.response.Update(&came), r.q
	asGet.Method = http.MethodGet
	if !now.CanStore(&asGet) {
		return got, nil // the response to this HEAD says nothing about the stored response
	}
	p := c.newPage(r, &now, r.stored.page.Body, got.Response.Page.Took)
	c.storePage(r, p, written)
	a := c.answerFetched(r, p, false)
	a.Response.ForwardReason = fwd
	return a, nil
}

// flight returns the target that identifies the flight of the request. It has the key of the stored response that
// upstream is asked to confirm, or if there is none, the key of the URI.
func (r *reading) flight() *spec.Target {
	if r.stored == nil || r.stored.page.Key == r.exchange.Target.Key {
		return r.exchange.Target
	}
	t := *r.exchange.Target
	t.Key = r.stored.page.Key
	return &t
}
