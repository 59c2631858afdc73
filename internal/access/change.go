// Change: what a caller may learn of a change.

package access

import (
	"strings"

	"understudy"
)

// Change returns the part of a change that a caller may learn, and false if it
// may learn nothing. It may learn nothing of a kind that its role does not see,
// or whose ids its role does not fully see.
//
// Change removes the names of fields the caller may not see, and of fields
// derived from them. A masked field may be named. A caller that does not see
// every record (Whole) does not get the numbers of the change, the record and
// the version, because these numbers count hidden data. For such a caller a
// record is unchanged if only hidden or unknown fields changed. If row rules
// bind the caller, it gets changes of records it may find by their current
// body. It never learns that a record went.
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
		if p.level(id) < See {
			return understudy.Change{}, false
		}
	}
	var shown []string
	for name := range ch.Fields.All() {
		if p.record.spells(name) {
			shown = append(shown, name)
		}
	}
	ch.Fields = understudy.NewNames(shown...)
	if g.Whole(c, ch.Source) {
		return ch, true
	}
	if !g.Finds(c, ch.Source, ch.Kind, ch.ID) {
		return understudy.Change{}, false
	}
	ch.N, ch.Record, ch.Version = 0, 0, 0
	return ch, ch.Type != understudy.Changed || ch.Fields != ""
}

// names reports whether the caller may learn a dotted name. The field, or a field inside
// it, has to be shown at least masked.
func (n *node) names(dotted string) bool {
	return n.opens(dotted, func(n *node, name string) *node { return n.named[name] })
}

// spells is names for a dotted name that is spelled as in a body.
func (n *node) spells(dotted string) bool {
	return n.opens(dotted, func(n *node, name string) *node { return n.inside([]byte(name)) })
}

func (n *node) opens(dotted string, inside func(*node, string) *node) bool {
	for more := true; n != nil && more; {
		var name string
		name, dotted, more = strings.Cut(dotted, ".")
		n = inside(n, name)
	}
	return n != nil && n.open
}

// Whole reports whether a caller sees every record of a source and every field
// the spec names. Such a caller learns nothing from the number of changes.
func (g *Gate) Whole(c understudy.Caller, source string) bool {
	_, all, err := g.plan(c, source, "")
	if err != nil || all {
		return err == nil
	}
	return !g.Ruled(c, source) && g.roles[c.Role()][source].whole
}

// Field returns nil if a caller may ask for changes of a field of a kind by name,
// else ErrForbidden. The caller has to be permitted to learn that the field
// changed. Only the role all may ask for fields that the spec does not name.
func (g *Gate) Field(c understudy.Caller, source, kind, field string) error {
	p, all, err := g.plan(c, source, kind)
	switch {
	case err != nil || all:
		return err
	case field == "" || !p.record.names(field):
		return refuse("role %s may not see %s of %s", c.Grant.Role, understudy.Clip(field), kind)
	}
	return nil
}
