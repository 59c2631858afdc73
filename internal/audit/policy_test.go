package audit

import (
	"testing"

	"understudy"
)

// Whoever looks through a role that is not listed is listed as the role all is.
func TestViewThroughAQuietRoleIsListed(t *testing.T) {
	p := &Policy{Roles: map[string][]understudy.Action{"quiet": {}}}
	c := understudy.Caller{Name: "ada", Grant: &understudy.Grant{Role: "quiet", IssuedBy: understudy.IssuedByViewAs}}
	if !p.mustList(c, understudy.ActionRecord, false) {
		t.Error("a record that is seen through a quiet role is not listed")
	}
	c.Grant = &understudy.Grant{Role: "quiet"}
	if p.mustList(c, understudy.ActionRecord, false) {
		t.Error("the quiet role is listed")
	}
}
