// ViewAs: a caller of the role all looks through another role.

package callers

import (
	"net/http"

	"understudy"
)

// ViewAs says through which role a caller wants to look; signin.ViewAs implements it.
type ViewAs interface {
	// Role is that of a request of the caller of that name; "": none.
	Role(r *http.Request, name string) string
}

// through is a caller as it looks through the role that its request asks for. Only a caller
// of the role all becomes another, so that rights are taken away and never given.
func (b *Book) through(r *http.Request, c understudy.Caller) understudy.Caller {
	if b.viewAs == nil || c.Role() != understudy.RoleAll {
		return c
	}
	if role := b.viewAs.Role(r, c.Name); role != "" {
		return narrowed(c, role)
	}
	return c
}

// stillThrough is what a caller who looks through a role is now, by what the caller is
// without it. ok is false if that caller does not have the role all any more.
func stillThrough(c, without understudy.Caller) (now understudy.Caller, ok bool) {
	if without.Role() != understudy.RoleAll {
		return understudy.Caller{}, false
	}
	return narrowed(without, c.Role()), true
}

// narrowed is a caller with another role and without a right to write.
func narrowed(c understudy.Caller, role string) understudy.Caller {
	grant := *c.Grant
	grant.Role, grant.By, grant.Allow = role, understudy.ByViewAs, nil
	c.Grant = &grant
	return c
}
