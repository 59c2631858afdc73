// Do: what people of a role may do beyond reading.

package access

import (
	"fmt"
	"maps"
	"slices"

	"understudy"
	"understudy/kit/suggest"
	"understudy/spec"
)

// The words that a role's do may have beside KIND.ACTION of the spec.
const (
	DoSync  = "sync"  // sync a kind
	DoPurge = "purge" // forget a record, so that the next reader asks upstream
	DoErase = "erase" // erase a record or a person from every file
	DoNote  = "note"  // read and write notes on records, and mark those that are handled
	// DoLookup is to find the records of a phone number that is typed whole and that the role
	// is not shown.
	DoLookup = "lookup"
)

// Doings are what people of roles may do, by role and source.
type Doings map[string]map[string][]string

// doings are the words of a spec.
func doings(s *spec.Spec) []string {
	all := []string{DoSync, DoPurge, DoErase, DoNote, DoLookup}
	for _, k := range s.Kinds {
		for _, a := range k.Actions {
			all = append(all, k.Name+"."+a.Name)
		}
	}
	return all
}

// addDoings adds to a role's plans what its people may do.
func addDoings(specs map[string]*spec.Spec, role string, plans map[string]*grants, does map[string][]string) error {
	for _, source := range slices.Sorted(maps.Keys(does)) {
		r := plans[source]
		if r == nil {
			return fmt.Errorf("access: roles.%s.%s: it may do something and may see nothing", role, understudy.Clip(source))
		}
		known := doings(specs[source])
		r.does = map[string]bool{}
		for _, word := range does[source] {
			if !slices.Contains(known, word) {
				return fmt.Errorf("access: roles.%s.%s.do: there is no action %q%s", role, source, understudy.Clip(word),
					suggest.Hint(understudy.Clip(word), known))
			}
			if why := noLookup(specs[source], r); word == DoLookup && why != "" {
				return fmt.Errorf("access: roles.%s.%s.do: lookup: %s; take it out", role, source, why)
			}
			r.does[word] = true
		}
	}
	return nil
}

// noLookup says why a role has no use for lookups: it is shown no numbers that it could look up.
// "" means that it has.
func noLookup(s *spec.Spec, r *grants) string {
	numbers := false
	for _, k := range s.Kinds {
		if p := r.kinds[k.Name]; p.sees() {
			for _, field := range phoneFields(k) {
				if numbers = true; p.level(field) < See {
					return ""
				}
			}
		}
	}
	if numbers {
		return "the role sees every phone number whole, and finds it by search"
	}
	return "what the role sees of " + s.Name + " has no phone numbers"
}

// Do returns nil if a caller may do what a word of a role's do says in a source, else
// ErrForbidden with a reason. The role all may do everything. A credential does what its
// allow list names, and nothing of this: see Act. DoLookup holds for credentials as well, and not
// for the role all, which sees every number and looks none up.
func (g *Gate) Do(c understudy.Caller, source, word string) error {
	switch {
	case word == DoLookup && c.Role() == understudy.RoleAll:
		return refuse("role %s sees phone numbers whole, and finds them by search", c.Role())
	case word != DoLookup && c.Source != "":
		return refuse("%s is a credential; it does what its allow list names, and no %s", c.Name, understudy.Clip(word))
	}
	return does(g, c, source, word)
}

// does is Do of a person, or the part of it that the role decides.
func does(g *Gate, c understudy.Caller, source, word string) error {
	_, all, err := g.plan(c, source, "")
	switch {
	case err != nil:
		return err
	case all || g.roles[c.Grant.Role][source].does[word]:
		return nil
	}
	return refuse("role %s may not do %s; its do would have to name it", c.Grant.Role, understudy.Clip(word))
}

// Act returns nil if a caller may do an action of the spec to a target, else ErrForbidden
// with a reason. A person's role has to name it, a credential's allow list its method and
// path. The caller must see the kind, and must find the record: that Find decides.
func (g *Gate) Act(c understudy.Caller, t *spec.Target, a *spec.Action) error {
	switch {
	case t.Kind == nil:
		return refuse("the path is that of no kind")
	case c.Source != "":
		if err := g.Write(c, t, a.Method); err != nil {
			return err
		}
	default:
		if err := does(g, c, t.Key.Source, t.Kind.Name+"."+a.Name); err != nil {
			return err
		}
	}
	_, _, err := g.plan(c, t.Key.Source, t.Kind.Name)
	return err
}
