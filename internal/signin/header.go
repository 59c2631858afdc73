// This file identifies the person whom a reverse proxy names in a header.

package signin

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"understudy"
	"understudy/kit/header"
)

// Header identifies people by headers that a reverse proxy sets. It is immutable and safe for concurrent use.
type Header struct {
	Name  string         // the name of the header with the person's name
	Roles string         // the name of the header with the person's groups; the first group that is a role counts
	From  header.Proxies // the proxies that are trusted to set these headers
	// Has reports whether a role of a name exists. Taken reports whether a person may not have a name.
	Has, Taken func(string) bool
	Now        func() time.Time
}

// headerLifetime is how long the identity is valid that a reverse proxy has stated. It matters for requests that stay open.
const headerLifetime = time.Hour

// Identify returns the person whom the proxy names. Errors: ErrUnauthorized if no trusted proxy sent the
// request, or if it named nobody; ErrForbidden if the person has no role.
func (h *Header) Identify(r *http.Request) (c understudy.Caller, err error) {
	peer, err := netip.ParseAddrPort(header.Peer(r))
	if err != nil || !h.From.Contains(peer.Addr()) {
		return c, fmt.Errorf("signin: %w: open this page through the proxy that signs you in; viewer.header.from lists its address",
			understudy.ErrUnauthorized)
	}
	names := r.Header.Values(h.Name)
	if len(names) != 1 || names[0] == "" {
		return c, fmt.Errorf("signin: %w: the proxy did not say who you are, in the header %s", understudy.ErrUnauthorized, h.Name)
	}
	if err := CheckName(names[0]); err != nil || h.Taken(names[0]) {
		return c, fmt.Errorf("signin: %w: %q is not a valid name of a person", understudy.ErrForbidden, understudy.Clip(names[0]))
	}
	role := h.role(r.Header.Values(h.Roles))
	if role == "" {
		return c, fmt.Errorf("signin: %w: no group of %s has a role here", understudy.ErrForbidden, names[0])
	}
	return understudy.Caller{Name: names[0], Flow: flowOf(names[0]),
		Grant: &understudy.Grant{Role: role, IssuedBy: "header", Expires: h.Now().Add(headerLifetime)}}, nil
}

// role returns the first group that is a role, or "".
func (h *Header) role(lines []string) string {
	for _, line := range lines {
		for group := range strings.SplitSeq(line, ",") {
			if group = strings.TrimSpace(group); group != "" && h.Has(group) {
				return group
			}
		}
	}
	return ""
}

// Recheck returns the person with the same role, as long as the role exists. If the proxy states another role, this
// has an effect only in the next request.
func (h *Header) Recheck(c understudy.Caller) (now understudy.Caller, ok bool) {
	return c, c.Grant.IssuedBy == "header" && h.Has(c.Role()) && !h.Taken(c.Name) && c.Grant.IsActive(h.Now())
}

// Owner returns a caller that Identify returned, in the form that is stored with work.
func (h *Header) Owner(c understudy.Caller) understudy.Owner {
	return understudy.Owner{Name: c.Name, Role: c.Role(), LastSeen: h.Now()}
}

// Resolve returns the current person for a stored owner. The role of the owner's last request counts for
// understudy.OwnerLifetime, as long as the role exists.
func (h *Header) Resolve(o understudy.Owner) (now understudy.Caller, ok bool) {
	return callerWithoutSession(o.Name, o.Role), h.Has(o.Role) && !h.Taken(o.Name) && h.Now().Sub(o.LastSeen) < understudy.OwnerLifetime
}
