// Client: whose request a reverse proxy has passed on.

package header

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the addresses of the reverse proxies that are believed. None are by default.
type Proxies []netip.Prefix

type peerKey struct{}

// Handler returns a handler that calls next with the client's address as RemoteAddr where one of the proxies passed
// the request on: the last address in X-Forwarded-For that is not one of theirs. A client cannot choose it, as each
// proxy adds the address that it was asked from. Peer still returns the address of the connection.
func (p Proxies) Handler(next http.Handler) http.Handler {
	if len(p) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client, ok := p.client(r); ok {
			r = r.WithContext(context.WithValue(r.Context(), peerKey{}, r.RemoteAddr))
			r.RemoteAddr = netip.AddrPortFrom(client, 0).String()
		}
		next.ServeHTTP(w, r)
	})
}

// client returns the address of the client behind the proxies. ok is false where the connection is not from a proxy, and
// where the proxy names no client, an odd one, or one on its own machine, which is not this one.
func (p Proxies) client(r *http.Request) (client netip.Addr, ok bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !p.Contain(peer.Addr()) {
		return client, false
	}
	named := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for _, text := range slices.Backward(named) {
		text = strings.TrimSpace(text)
		if at, err := netip.ParseAddrPort(text); err == nil {
			client = at.Addr()
		} else if client, err = netip.ParseAddr(text); err != nil {
			return client, false
		}
		if client = client.Unmap().WithZone(""); !p.Contain(client) {
			return client, !client.IsLoopback() && !client.IsUnspecified()
		}
	}
	return client, false
}

// Contain reports whether an address is that of one of the proxies.
func (p Proxies) Contain(at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	return slices.ContainsFunc(p, func(block netip.Prefix) bool { return block.Contains(at) })
}

// Peer returns the address and port of the connection that a request came on.
func Peer(r *http.Request) string {
	if peer, ok := r.Context().Value(peerKey{}).(string); ok {
		return peer
	}
	return r.RemoteAddr
}
