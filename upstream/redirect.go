// Redirects of lists and instances, followed at home.

package upstream

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"understudy"
	"understudy/upstream/throttle"
)

// ask sends a request and, when it is a GET, follows redirects within the
// source's own paths: our credential goes nowhere else, and what lies elsewhere
// is not this API. astray says why a redirect could not be followed to its end.
func (c *Client) ask(req *http.Request, e httpRequest, quiet *throttle.Deadline) (resp *http.Response, astray, err error) {
	seen := []string{req.URL.String()}
	for {
		c.counts.Sent(e.reason)
		if resp, err = c.connections.transport().RoundTrip(req); err != nil {
			return nil, nil, err
		}
		if !isRedirect(resp.StatusCode) || e.method != http.MethodGet {
			return resp, nil, nil
		}
		to, err := c.media.next(req.URL, resp.Header.Get("Location"))
		switch {
		case err != nil:
			return resp, err, nil
		case !c.media.isHome(to):
			return resp, redirect(resp.Header), nil
		case slices.Contains(seen, to.String()):
			return resp, errors.New("redirects that lead in a circle"), nil
		case len(seen) > maxRedirects:
			return resp, fmt.Errorf("more than %d redirects", maxRedirects), nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection serves again
		_ = resp.Body.Close()
		seen = append(seen, to.String())
		quiet.Reset(e.limits.first)
		req = req.Clone(req.Context())
		req.URL, req.Host = to, ""
	}
}

// redirect says where an answer pointed, by host alone: the rest may be
// somebody's signed link.
func redirect(h http.Header) error {
	to, err := url.Parse(h.Get("Location"))
	if err != nil || to.Host == "" {
		return errors.New("a redirect is not followed")
	}
	return fmt.Errorf("a redirect to %s is not followed", understudy.Clip(to.Host))
}
