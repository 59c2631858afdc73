// Client: finds the address of the client behind trusted reverse proxies.

package header

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the IP address ranges of the trusted reverse proxies. By default no proxy is trusted.
type Proxies []netip.Prefix

type peerKey struct{}

// Handler returns a handler that calls next with the client's address as RemoteAddr, if a trusted proxy forwarded the
// request. The client's address is the last address in X-Forwarded-For that is not a trusted proxy. A client cannot
// forge it, because each proxy appends the address of its own peer. Peer still returns the address of the connection.
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

// client returns the address of the client behind the proxies. ok is false if the connection is not from a
// trusted proxy, or if the proxy names no client or an invalid one. ok is also false for a loopback address,
// which would mean the proxy's own machine.
func (p Proxies) client(r *http.Request) (client netip.Addr, ok bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !p.Contains(peer.Addr()) {
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
		if client = client.Unmap().WithZone(""); !p.Contains(client) {
			return client, !client.IsLoopback() && !client.IsUnspecified()
		}
	}
	return client, false
}

// Contains reports whether an address belongs to a trusted proxy.
func (p Proxies) Contains(at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	return slices.ContainsFunc(p, func(block netip.Prefix) bool { return block.Contains(at) })
}

// Peer returns the address and port of the connection that a request was received on.
func Peer(r *http.Request) string {
	if peer, ok := r.Context().Value(peerKey{}).(string); ok {
		return peer
	}
	return r.RemoteAddr
}
