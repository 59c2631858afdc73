// Header: the person whom a proxy in front names.

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

// Header says who asks by headers that a proxy sets. It is never changed after it is
// made. Safe for concurrent use.
type Header struct {
	Name  string         // of the header with the person's name
	Roles string         // of the one with the groups: the first that is a role counts
	From  header.Proxies // others are not believed
	// Has reports whether there is a role of that name, Taken whether a person may
	// not have that name.
	Has, Taken func(string) bool
	Now        func() time.Time
}

// headerEnd is how long a request that stays open is that of the person it began with.
const headerEnd = time.Hour

// Caller is the person whom the proxy names. Errors: ErrUnauthorized: no proxy of ours
// sent the request, or it named nobody; ErrForbidden: the person has no role.
func (h *Header) Caller(r *http.Request) (c understudy.Caller, err error) {
	peer, err := netip.ParseAddrPort(header.Peer(r))
	if err != nil || !h.From.Contains(peer.Addr()) {
		return c, fmt.Errorf("signin: %w: come by the proxy that knows who you are, whose address viewer.header.from lists",
			understudy.ErrUnauthorized)
	}
	names := r.Header.Values(h.Name)
	if len(names) != 1 || names[0] == "" {
		return c, fmt.Errorf("signin: %w: the proxy named nobody in %s", understudy.ErrUnauthorized, h.Name)
	}
	if err := CheckName(names[0]); err != nil || h.Taken(names[0]) {
		return c, fmt.Errorf("signin: %w: %q is no name of a person", understudy.ErrForbidden, understudy.Clip(names[0]))
	}
	role := h.role(r.Header.Values(h.Roles))
	if role == "" {
		return c, fmt.Errorf("signin: %w: none of the groups of %s is a role", understudy.ErrForbidden, names[0])
	}
	return understudy.Caller{Name: names[0], Flow: flowOf(names[0]),
		Grant: &understudy.Grant{Role: role, By: "header", Expires: h.Now().Add(headerEnd)}}, nil
}

// role is the first group that is one.
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

// Again is such a person with the role of before, as long as there is one of that name:
// what the proxy says now, the next request tells.
func (h *Header) Again(c understudy.Caller) (now understudy.Caller, ok bool) {
	return c, c.Grant.By == "header" && h.Has(c.Role()) && !h.Taken(c.Name) && c.Grant.Live(h.Now())
}

// Owner is a caller of Caller as it is kept beside work.
func (h *Header) Owner(c understudy.Caller) understudy.Owner {
	return understudy.Owner{Name: c.Name, Role: c.Role(), Seen: h.Now()}
}

// Resolve is the person that an owner is now: the role of the last request counts, for
// understudy.OwnerLasts, while there is one of that name.
func (h *Header) Resolve(o understudy.Owner) (now understudy.Caller, ok bool) {
	return withoutSession(o.Name, o.Role), h.Has(o.Role) && !h.Taken(o.Name) && h.Now().Sub(o.Seen) < understudy.OwnerLasts
}
