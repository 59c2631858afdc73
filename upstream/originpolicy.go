// This file decides which hosts media may be read from, and which hosts receive the credential.

package upstream

import (
	"cmp"
	"context"
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

// originPolicy decides from which hosts media are read: from the source's own hosts, and from the hosts to which these
// redirect.
type originPolicy struct {
	limit   int64         // the maximum size of one content, in bytes
	slots   chan struct{} // a channel that contains one element for each open stream
	homes   []homeOrigin
	base    *url.URL // the URL at which media requests begin, or nil for the hosts in the spec
	outside http.RoundTripper
	own     *http.Transport // the policy's own transport, or nil if one was given
}

var errPrivateAddress = errors.New("an address inside this network, which only the source's own host may have")

// homeOrigin is the beginning of the source's own URLs. Requests to them carry the credential.
type homeOrigin struct{ scheme, host, path string }

// newOriginPolicy returns the policy of a source.
func newOriginPolicy(o *Options) *originPolicy {
	w := &originPolicy{limit: defaultTo(o.MaxMedia, defaultMedia), slots: make(chan struct{}, o.Concurrency), outside: o.Transport}
	for _, h := range o.Source.Spec.Hosts {
		at := h.URL
		if o.Base != "" {
			at = o.Base
		}
		u, err := url.Parse(at)
		if err != nil {
			continue // cannot happen, because New has checked the base URL, and Compile the hosts
		}
		if o.Base != "" {
			w.base = u
		}
		for _, prefix := range h.Prefixes {
			w.homes = append(w.homes, homeOrigin{u.Scheme, authority(u), strings.TrimSuffix(u.EscapedPath(), "/") + prefix})
		}
	}
	if w.outside == nil {
		w.own = newOutsideTransport(o, w.isAllowed)
		w.outside = w.own
	}
	return w
}

// newOutsideTransport returns the transport to other hosts. It sends no credential, keeps no cookies, uses no
// proxy, and connects to no private address.
func newOutsideTransport(o *Options, allowed func(context.Context, netip.AddrPort) bool) *http.Transport {
	dialer := &net.Dialer{
		Timeout: o.Connect, KeepAlive: 30 * time.Second,
		// The address is checked after the name was resolved.
		ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			if at, err := netip.ParseAddrPort(address); err != nil || !allowed(ctx, at) {
				return errPrivateAddress
			}
			return nil
		},
	}
	t := newTransport(o)
	t.DialContext, t.HTTP2, t.MaxIdleConnsPerHost, t.MaxResponseHeaderBytes = dialer.DialContext, nil, 2, 64<<10
	return t
}

func (w *originPolicy) close() {
	if w.own != nil {
		w.own.CloseIdleConnections()
	}
}

// ownPorts are the default ports of the schemes.
var ownPorts = map[string]string{"http": "80", "https": "443"}

// authority returns the lower-case host and the port.
func authority(u *url.URL) string {
	port := cmp.Or(u.Port(), ownPorts[u.Scheme])
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// isHome reports whether a URL is one of the source's own: it has the scheme, host and port of the source, and a path
// in the spec.
func (w *originPolicy) isHome(u *url.URL) bool {
	path := u.EscapedPath()
	for _, h := range w.homes {
		if u.Scheme != h.scheme || authority(u) != h.host || !strings.HasPrefix(path, h.path) {
			continue
		}
		if strings.HasSuffix(h.path, "/") || len(path) == len(h.path) || path[len(h.path)] == '/' {
			return !hasDotSegment(u.Path)
		}
	}
	return false
}

// hasDotSegment reports whether a path has dot segments, which could lead to another path than its beginning says.
func hasDotSegment(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return strings.Contains(path, `\`)
}

// resolveRedirect returns the target of a redirect. Errors contain only the host, because the rest may be a signed link.
func (w *originPolicy) resolveRedirect(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	switch {
	case err != nil || location == "" || to.Host == "" || to.Opaque != "":
		return nil, errors.New("a redirect without a valid address")
	case to.Scheme != "https" && to.Scheme != "http":
		return nil, fmt.Errorf("a redirect to scheme %q", understudy.Clip(to.Scheme))
	case to.Scheme == "http" && from.Scheme == "https":
		return nil, fmt.Errorf("a redirect to %s without TLS", understudy.Clip(to.Host))
	}
	to.User, to.Fragment, to.RawFragment = nil, "", ""
	return to, nil
}

// isAllowed reports whether a redirect may lead to an address: a public address, or the configured address and port of
// the source itself. Other servers in this network, including this server, do not belong to the upstream.
func (w *originPolicy) isAllowed(ctx context.Context, to netip.AddrPort) bool {
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

// reservedBlocks are address blocks that are not public, in addition to those that netip knows (IANA's special-purpose
// registries). The last four contain IPv4 addresses.
var reservedBlocks = func() []netip.Prefix {
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
	return !slices.ContainsFunc(reservedBlocks, func(block netip.Prefix) bool { return block.Contains(at) })
}

// ask sends a request. If it is a GET request, ask follows redirects within the source's own paths. The credential must
// not be sent anywhere else, and other places do not belong to this API. astray says why a redirect was not followed to
// its end.
func (c *Client) ask(req *http.Request, e httpRequest, quiet *throttle.Deadline) (resp *http.Response, astray, err error) {
	seen := []string{req.URL.String()}
	for {
		c.counts.AddRequest(e.purpose.reason, e.purpose.flow, c.o.Now())
		if resp, err = checkFinal(c.connections.transport().RoundTrip(req)); err != nil {
			return nil, nil, err
		}
		if !isRedirect(resp.StatusCode) || e.method != http.MethodGet {
			return resp, nil, nil
		}
		to, err := c.media.resolveRedirect(req.URL, resp.Header.Get("Location"))
		switch {
		case err != nil:
			return resp, err, nil
		case !c.media.isHome(to):
			return resp, describeRedirect(resp.Header), nil
		case slices.Contains(seen, to.String()):
			return resp, errors.New("redirects that go in a circle"), nil
		case len(seen) > maxRedirects:
			return resp, fmt.Errorf("more than %d redirects", maxRedirects), nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // a short rest is read, so that the connection can be reused
		_ = resp.Body.Close()
		seen = append(seen, to.String())
		quiet.Reset(e.limits.first)
		req = req.Clone(req.Context())
		req.URL, req.Host = to, ""
		e.by.sign(req) // signed again, because a redirect drops a credential in the query
	}
}

// describeRedirect returns an error with the host of a redirect. The rest of the address may be a signed link.
func describeRedirect(h http.Header) error {
	to, err := url.Parse(h.Get("Location"))
	if err != nil || to.Host == "" {
		return errors.New("a redirect is not followed")
	}
	return fmt.Errorf("a redirect to %s is not followed", understudy.Clip(to.Host))
}
