// This file decides which actions of which roles are listed one by one.

package audit

import (
	"slices"

	"understudy"
)

// Policy says which actions are listed. A nil slice means the default; an empty slice means that no action is listed.
type Policy struct {
	People   []understudy.Action // the listed actions of people, whatever their role; default: all but lists
	Programs []understudy.Action // the listed actions of programs; default: actions that change something or export rows
	// the listed actions by role, for people and programs; they replace People and Programs for the role
	Roles map[string][]understudy.Action
}

// The actions that are listed by default.
var (
	defaultPeople   = slices.DeleteFunc(slices.Clone(understudy.Actions), func(a understudy.Action) bool { return a == understudy.ActionList })
	defaultPrograms = []understudy.Action{understudy.ActionExport, understudy.ActionSend, understudy.ActionDelete, understudy.ActionNote,
		understudy.ActionSignIn, understudy.ActionAdminister}
)

// MustListPeople reports whether an action of people with this role is listed.
func (p *Policy) MustListPeople(role string, a understudy.Action) bool {
	return p.mustList(understudy.Caller{Grant: &understudy.Grant{Role: role}}, a, false)
}

// mustList reports whether an action of a caller is listed. program is true if the caller is a program.
func (p *Policy) mustList(c understudy.Caller, a understudy.Action, program bool) bool {
	role := c.Role()
	if c.Grant != nil && c.Grant.IssuedBy == understudy.IssuedByViewAs {
		role = understudy.RoleAll // only a caller with the role all can view as another role
	}
	if of, ok := p.Roles[role]; ok {
		return slices.Contains(of, a)
	}
	of, otherwise := p.People, defaultPeople
	if program {
		of, otherwise = p.Programs, defaultPrograms
	}
	if of == nil {
		of = otherwise
	}
	return slices.Contains(of, a)
}
