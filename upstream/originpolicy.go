// Origin policy: which hosts contents may come from, and which get the credential.

package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"understudy"
	"understudy/upstream/throttle"
)

// originPolicy leads to contents: on the source's own hosts, and where these send us.
type originPolicy struct {
	limit   int64         // bytes of one content
	slots   chan struct{} // streams at once
	homes   []homeOrigin
	base    *url.URL // where contents are asked for first; nil = the spec's hosts
	outside http.RoundTripper
	own     *http.Transport // nil when the transport was given
}

var errInward = errors.New("an address inside this network, where only the source's own may be")

// homeOrigin is the beginning of the source's own URLs: what is shown the credential.
type homeOrigin struct{ scheme, host, path string }

func newOriginPolicy(o *Options) *originPolicy {
	w := &originPolicy{limit: or(o.MaxMedia, defaultMedia), slots: make(chan struct{}, o.Concurrency), outside: o.Transport}
	for _, h := range o.Source.Spec.Hosts {
		at := h.URL
		if o.Base != "" {
			at = o.Base
		}
		u, err := url.Parse(at)
		if err != nil {
			continue // New has looked at the base, Compile at the hosts
		}
		if o.Base != "" {
			w.base = u
		}
		for _, prefix := range h.Prefixes {
			w.homes = append(w.homes, homeOrigin{u.Scheme, authority(u), strings.TrimSuffix(u.EscapedPath(), "/") + prefix})
		}
	}
	if w.outside == nil {
		w.own = newOutside(o, w.allowed)
		w.outside = w.own
	}
	return w
}

// newOutside is the transport to other hosts: it carries no credential, keeps no
// cookie, uses no proxy, and connects to no private address.
func newOutside(o *Options, allowed func(context.Context, netip.AddrPort) bool) *http.Transport {
	dialer := &net.Dialer{
		Timeout: o.Connect, KeepAlive: 30 * time.Second,
		// The address is checked after the name was resolved.
		ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			if at, err := netip.ParseAddrPort(address); err != nil || !allowed(ctx, at) {
				return errInward
			}
			return nil
		},
	}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    o.Connect,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           o.Concurrency,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

func (w *originPolicy) close() {
	if w.own != nil {
		w.own.CloseIdleConnections()
	}
}

// ownPorts are the ports that the schemes imply.
var ownPorts = map[string]string{"http": "80", "https": "443"}

// authority is host and port in one form.
func authority(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = ownPorts[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// isHome reports whether a URL is one of the source's own: scheme, host and
// port, and one of the paths the spec says are there.
func (w *originPolicy) isHome(u *url.URL) bool {
	path := u.EscapedPath()
	for _, h := range w.homes {
		if u.Scheme != h.scheme || authority(u) != h.host || !strings.HasPrefix(path, h.path) {
			continue
		}
		if strings.HasSuffix(h.path, "/") || len(path) == len(h.path) || path[len(h.path)] == '/' {
			return !dotted(u.Path)
		}
	}
	return false
}

// dotted reports a path with segments that may lead out of its beginning.
func dotted(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return strings.Contains(path, `\`)
}

// next is where a redirect leads. Errors name the host alone: the rest may be
// a signed link.
func (w *originPolicy) next(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	switch {
	case err != nil || location == "" || to.Host == "" || to.Opaque != "":
		return nil, errors.New("a redirect that leads nowhere")
	case to.Scheme != "https" && to.Scheme != "http":
		return nil, fmt.Errorf("a redirect to scheme %q", understudy.Clip(to.Scheme))
	case to.Scheme == "http" && from.Scheme == "https":
		return nil, fmt.Errorf("a redirect to %s without TLS", understudy.Clip(to.Host))
	}
	to.User, to.Fragment, to.RawFragment = nil, "", ""
	return to, nil
}

// allowed reports whether a redirect may lead to an address: a public one, or the
// configured address and port of the source itself. Other servers inside this network,
// this program too, are not upstream's.
func (w *originPolicy) allowed(ctx context.Context, to netip.AddrPort) bool {
	at := to.Addr().Unmap()
	switch {
	case isPublic(at):
		return true
	case w.base == nil || !at.IsLoopback() && !at.IsPrivate():
		return false
	}
	host, port, err := net.SplitHostPort(authority(w.base))
	if err != nil || port != strconv.Itoa(int(to.Port())) {
		return false
	}
	if literal, err := netip.ParseAddr(host); err == nil {
		return literal.Unmap() == at
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err == nil && slices.ContainsFunc(addrs, func(base netip.Addr) bool { return base.Unmap() == at })
}

// inward are blocks that are not public beside those netip knows (IANA's
// special-purpose registries; the last four carry IPv4 addresses in them).
var inward = func() []netip.Prefix {
	var all []netip.Prefix
	for _, block := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "fec0::/10",
		"64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16",
	} {
		all = append(all, netip.MustParsePrefix(block))
	}
	return all
}()

func isPublic(at netip.Addr) bool {
	if !at.IsGlobalUnicast() || at.IsPrivate() || at.IsLoopback() || at.IsLinkLocalUnicast() || at.Zone() != "" {
		return false
	}
	for _, block := range inward {
		if block.Contains(at) {
			return false
		}
	}
	return true
}

// ask sends a request and, when it is a GET, follows redirects within the
// source's own paths: our credential goes nowhere else, and what lies elsewhere
// is not this API. astray says why a redirect could not be followed to its end.
func (c *Client) ask(req *http.Request, e httpRequest, quiet *throttle.Deadline) (resp *http.Response, astray, err error) {
	seen := []string{req.URL.String()}
	for {
		c.counts.Sent(e.purpose.reason, e.purpose.flow, c.o.Now())
		if resp, err = final(c.connections.transport().RoundTrip(req)); err != nil {
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
		e.by.sign(req) // a key in the query is not in the link
	}
}

// redirect says where an answer pointed, by host alone: the rest may be a signed link.
func redirect(h http.Header) error {
	to, err := url.Parse(h.Get("Location"))
	if err != nil || to.Host == "" {
		return errors.New("a redirect is not followed")
	}
	return fmt.Errorf("a redirect to %s is not followed", understudy.Clip(to.Host))
}
