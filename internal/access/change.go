// This file decides what a caller may learn about a change.

package access

import (
	"strings"

	"understudy"
)

// RedactChange returns the part of a change that a caller may learn, and false if it may learn nothing. It may
// learn nothing of a kind that its role does not see, or whose ids its role does not fully see.
//
// RedactChange removes the names of fields that the caller may not see, and of fields derived from them. A
// masked field may be named. A caller that does not see every record (CanSeeAll) does not get the numbers of
// the change, the record and the version, because these numbers count hidden data. For such a caller a record
// is unchanged if only hidden or unknown fields changed. A caller with row rules gets changes only of records
// it may find by their current body. It never learns that a record was deleted.
func (g *Gate) RedactChange(c understudy.Caller, ch understudy.Change) (understudy.Change, bool) {
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
		if p.record.isRawNameVisible(name) {
			shown = append(shown, name)
		}
	}
	ch.Fields = understudy.NewNames(shown...)
	if g.CanSeeAll(c, ch.Source) {
		return ch, true
	}
	if !g.CanFind(c, ch.Source, ch.Kind, ch.ID) {
		return understudy.Change{}, false
	}
	ch.N, ch.Record, ch.Version = 0, 0, 0
	return ch, ch.Type != understudy.Changed || ch.Fields != ""
}

// isNameVisible reports whether the caller may learn a dotted field name. The field, or a field inside it, must be
// shown at least masked.
func (n *node) isNameVisible(dotted string) bool {
	return n.isPathVisible(dotted, func(n *node, name string) *node { return n.named[name] })
}

// isRawNameVisible is isNameVisible for a dotted name that still has the escapes of the JSON body.
func (n *node) isRawNameVisible(dotted string) bool {
	return n.isPathVisible(dotted, func(n *node, name string) *node { return n.member([]byte(name)) })
}

// isPathVisible reports whether the node of a dotted name is shown. The function inside returns the node of one
// name inside another node.
func (n *node) isPathVisible(dotted string, inside func(*node, string) *node) bool {
	for more := true; n != nil && more; {
		var name string
		name, dotted, more = strings.Cut(dotted, ".")
		n = inside(n, name)
	}
	return n != nil && n.open
}

// CanSeeAll reports whether a caller sees every record of a source and every field that the spec names. Such a
// caller learns nothing new from the number of changes.
func (g *Gate) CanSeeAll(c understudy.Caller, source string) bool {
	_, all, err := g.plan(c, source, "")
	if err != nil || all {
		return err == nil
	}
	return !g.HasRowRules(c, source) && g.roles[c.Role()][source].seesAll
}

// CheckChangeField returns nil if a caller may request changes of a named field of a kind, else ErrForbidden. The caller
// must be permitted to learn that the field changed. Only the role all may request fields that the spec does not name.
func (g *Gate) CheckChangeField(c understudy.Caller, source, kind, field string) error {
	p, all, err := g.plan(c, source, kind)
	switch {
	case err != nil || all:
		return err
	case field == "" || !p.record.isNameVisible(field):
		return refuse("your role (%s) can't see %s of %s", c.Grant.Role, understudy.Clip(field), kind)
	}
	return nil
}
