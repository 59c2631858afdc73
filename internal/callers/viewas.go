// This file lets a caller of the role all view as another role.

package callers

import (
	"net/http"

	"understudy"
)

// ViewAs returns the role as which a caller wants to view; signin.ViewAs implements it.
type ViewAs interface {
	// Role returns the role that a request of the named caller asks for, or "" for the caller's own role.
	Role(r *http.Request, name string) string
}

// applyViewAs returns the caller with the role that the request asks for. Only a caller of the role all can change
// its role, so that rights are only taken away.
func (b *Book) applyViewAs(r *http.Request, c understudy.Caller) understudy.Caller {
	if b.viewAs == nil || c.Role() != understudy.RoleAll {
		return c
	}
	if role := b.viewAs.Role(r, c.Name); role != "" {
		return withRole(c, role)
	}
	return c
}

// withRole returns the caller with another role and without write access.
func withRole(c understudy.Caller, role string) understudy.Caller {
	grant := *c.Grant
	grant.Role, grant.IssuedBy, grant.Allow = role, understudy.IssuedByViewAs, nil
	c.Grant = &grant
	return c
}
