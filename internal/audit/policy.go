// Policy: which actions of which roles are listed.

package audit

import (
	"slices"

	"understudy"
)

// Policy says which actions are listed. nil slices stand for the defaults, empty ones for
// no action.
type Policy struct {
	People   []understudy.Action            // of people, whatever their role; default: all but lists
	Programs []understudy.Action            // of programs; default: what changes something or takes rows away
	Roles    map[string][]understudy.Action // of a role, people and programs alike
}

// What is listed when the settings say nothing.
var (
	ofPeople   = slices.DeleteFunc(slices.Clone(understudy.Actions), func(a understudy.Action) bool { return a == understudy.ActionList })
	ofPrograms = []understudy.Action{understudy.ActionExport, understudy.ActionSend, understudy.ActionDelete, understudy.ActionNote,
		understudy.ActionSignIn, understudy.ActionAdminister}
)

// ListsPeople reports whether an action of people with a role is listed.
func (p *Policy) ListsPeople(role string, a understudy.Action) bool {
	return p.lists(understudy.Caller{Grant: &understudy.Grant{Role: role}}, a, false)
}

func (p *Policy) lists(c understudy.Caller, a understudy.Action, program bool) bool {
	role := c.Role()
	if c.Grant != nil && c.Grant.By == understudy.ByViewAs {
		role = understudy.RoleAll // whoever looks through another role has this one
	}
	if of, ok := p.Roles[role]; ok {
		return slices.Contains(of, a)
	}
	of, otherwise := p.People, ofPeople
	if program {
		of, otherwise = p.Programs, ofPrograms
	}
	if of == nil {
		of = otherwise
	}
	return slices.Contains(of, a)
}
