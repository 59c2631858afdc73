// Change: what a caller may learn of a change.

package access

import (
	"strings"

	"understudy"
)

// Change is what a caller may learn of a change, and false when that is
// nothing: of a kind the role does not see, or whose ids it does not fully see,
// nobody is told anything.
//
// Names of fields the caller may not see are taken out, with the fields that
// are derived from them; a masked field may be named. Who does not see every
// record (Whole) gets neither the change's number nor the record's and the
// version's, because they count what is hidden; and a record that changed in
// hidden fields alone, or nobody knows in which, has not changed for it. Where
// row rules bind the caller, it is told of records it may find by what they are
// now: never that one went.
func (g *Gate) Change(c understudy.Caller, ch understudy.Change) (understudy.Change, bool) {
	p, all, err := g.plan(c, ch.Source, ch.Kind)
	switch {
	case err != nil:
		return understudy.Change{}, false
	case all:
		return ch, true
	case p.kind == nil:
		return understudy.Change{}, false
	}
	for _, id := range p.kind.ID {
		if n := p.record.at(id); n == nil || n.level < See {
			return understudy.Change{}, false
		}
	}
	var shown []string
	for name := range ch.Fields.All() {
		if p.record.names(name) {
			shown = append(shown, name)
		}
	}
	ch.Fields = understudy.NamesOf(shown...)
	if g.Whole(c, ch.Source) {
		return ch, true
	}
	if !g.Finds(c, ch.Source, ch.Kind, ch.ID) {
		return understudy.Change{}, false
	}
	ch.N, ch.Record, ch.Version = 0, 0, 0
	return ch, ch.Type != understudy.Changed || ch.Fields != ""
}

// names reports whether a dotted name, written as a body writes it, may be
// told: the field, or something inside it, is shown at least masked.
func (n *node) names(dotted string) bool {
	for more := true; n != nil && more; {
		var name string
		name, dotted, more = strings.Cut(dotted, ".")
		n = n.inside([]byte(name))
	}
	return n != nil && n.open
}

// Whole reports whether a caller sees every record of a source and every field
// the spec names: such a caller learns nothing from how many changes there are.
func (g *Gate) Whole(c understudy.Caller, source string) bool {
	_, all, err := g.plan(c, source, "")
	if err != nil || all {
		return err == nil
	}
	if g.Ruled(c, source) {
		return false
	}
	for _, p := range g.roles[c.Role()][source].kinds {
		if !p.sees() || !p.whole {
			return false
		}
		for _, level := range p.media {
			if level < See {
				return false
			}
		}
	}
	return true
}

// Field says whether a caller may ask for changes of a field of a kind by
// name: nil when it may be told that the field changed, else ErrForbidden. Of
// fields the spec does not name only the role all may.
func (g *Gate) Field(c understudy.Caller, source, kind, field string) error {
	p, all, err := g.plan(c, source, kind)
	switch {
	case err != nil || all:
		return err
	case field == "" || !p.record.names(field):
		return refuse("role %s may not see %s of %s", c.Grant.Role, clip(field), kind)
	}
	return nil
}
