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
)

// Doings are what people of roles may do, by role and source.
type Doings map[string]map[string][]string

// doings are the words of a spec.
func doings(s *spec.Spec) []string {
	all := []string{DoSync, DoPurge, DoErase, DoNote}
	for _, k := range s.Kinds {
		for _, a := range k.Actions {
			all = append(all, k.Name+"."+a.Name)
		}
	}
	return all
}

// addDoings adds to a role's plans what its people may do.
func (g *Gate) addDoings(role string, plans map[string]*grants, does map[string][]string) error {
	for _, source := range slices.Sorted(maps.Keys(does)) {
		r := plans[source]
		if r == nil {
			return fmt.Errorf("access: roles.%s.%s: it may do something and may see nothing", role, clip(source))
		}
		known := doings(g.specs[source])
		r.does = map[string]bool{}
		for _, word := range does[source] {
			if !slices.Contains(known, word) {
				return fmt.Errorf("access: roles.%s.%s.do: there is no action %q%s", role, source, clip(word), suggest.Hint(clip(word), known))
			}
			r.does[word] = true
		}
	}
	return nil
}

// Do returns nil if a caller may do what a word of a role's do says in a source, else
// ErrForbidden with a reason. The role all may do everything. A credential does what its
// allow list names, and nothing of this: see Act.
func (g *Gate) Do(c understudy.Caller, source, word string) error {
	if c.Source != "" {
		return refuse("%s is a credential; it does what its allow list names, and no %s", c.Name, clip(word))
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
	return refuse("role %s may not do %s; its do would have to name it", c.Grant.Role, clip(word))
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
