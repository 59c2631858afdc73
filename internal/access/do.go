// This file decides which actions the people of a role may perform, beyond reading.

package access

import (
	"fmt"
	"maps"
	"slices"

	"understudy"
	"understudy/kit/suggest"
	"understudy/spec"
)

// The permissions that the setting do of a role can name, in addition to the actions of the spec (KIND.ACTION).
const (
	PermitSync  = "sync"  // permits to start a sync of a kind
	PermitPurge = "purge" // permits to remove the stored copy of a record, so that the next read fetches it from upstream
	PermitErase = "erase" // permits to erase a record or a person from every file
	PermitNote  = "note"  // permits to read and write notes on records, and to mark records as handled
	// PermitLookup is the permission to find records by a complete phone number that the role is not shown.
	PermitLookup = "lookup"
)

// Permissions are the actions that roles may perform, by role and source.
type Permissions map[string]map[string][]string

// addPermissions adds to a role's plans the actions that its people may perform.
func addPermissions(specs map[string]*spec.Spec, role string, plans map[string]*grants, does map[string][]string) error {
	for _, source := range slices.Sorted(maps.Keys(does)) {
		r := plans[source]
		if r == nil {
			return fmt.Errorf("access: roles.%s.%s: it may do something and may see nothing", role, understudy.Clip(source))
		}
		known := []string{PermitSync, PermitPurge, PermitErase, PermitNote, PermitLookup}
		for _, k := range specs[source].Kinds {
			for _, a := range k.Actions {
				known = append(known, k.Name+"."+a.Name)
			}
		}
		r.permitted = map[string]bool{}
		for _, word := range does[source] {
			if !slices.Contains(known, word) {
				return fmt.Errorf("access: roles.%s.%s.do: there is no action %q%s", role, source, understudy.Clip(word),
					suggest.Hint(understudy.Clip(word), known))
			}
			if why := lookupObstacle(specs[source], r); word == PermitLookup && why != "" {
				return fmt.Errorf("access: roles.%s.%s.do: lookup: %s; take it out", role, source, why)
			}
			r.permitted[word] = true
		}
	}
	return nil
}

// lookupObstacle returns why PermitLookup is useless for a role, or "". It is useless if the role sees every phone
// number anyway, or sees no kind with phone numbers.
func lookupObstacle(s *spec.Spec, r *grants) string {
	numbers := false
	for _, k := range s.Kinds {
		if p := r.kinds[k.Name]; p.isVisible() {
			for _, field := range phoneFields(k) {
				if numbers = true; p.level(field) < See {
					return ""
				}
			}
		}
	}
	if numbers {
		return "the role can see every phone number, and can search for it"
	}
	return "the role can't see any phone numbers of " + s.Name
}

// CheckPermission returns nil if a caller has a permission in a source, else ErrForbidden with a reason. The role all
// has every permission but PermitLookup: it sees every number, so it has nothing to look up. A credential has only
// PermitLookup, if its role has it; its actions are decided by its allow list (see CheckAction).
func (g *Gate) CheckPermission(c understudy.Caller, source, word string) error {
	switch {
	case word == PermitLookup && c.Role() == understudy.RoleAll:
		return refuse("the role %s can see phone numbers, and can search for them", c.Role())
	case word != PermitLookup && c.Source != "":
		return refuse("%s is a credential: it can do what its allow list names, and not %s", c.Name, understudy.Clip(word))
	}
	return checkRolePermission(g, c, source, word)
}

// checkRolePermission returns nil if the role of a caller has a permission in a source.
func checkRolePermission(g *Gate, c understudy.Caller, source, word string) error {
	_, all, err := g.plan(c, source, "")
	switch {
	case err != nil:
		return err
	case all || g.roles[c.Grant.Role][source].permitted[word]:
		return nil
	}
	return refuse("your role (%s) can't do %s. An administrator can allow it: add %[2]s to the role's do list", c.Grant.Role,
		understudy.Clip(word))
}

// CheckAction returns nil if a caller may perform an action of the spec on a target, else ErrForbidden with a
// reason. A person's role must have the permission; a credential's allow list must name the method and path.
// The caller must see the kind. CheckFind decides whether it may find the record.
func (g *Gate) CheckAction(c understudy.Caller, t *spec.Target, a *spec.Action) error {
	switch {
	case t.Kind == nil:
		return refuse("Understudy doesn't know the records of this path")
	case c.Source != "":
		if err := g.CheckWrite(c, t, a.Method); err != nil {
			return err
		}
	default:
		if err := checkRolePermission(g, c, t.Key.Source, t.Kind.Name+"."+a.Name); err != nil {
			return err
		}
	}
	_, _, err := g.plan(c, t.Key.Source, t.Kind.Name)
	return err
}
