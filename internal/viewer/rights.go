// Rights: what one caller may see, asked of the gate.

package viewer

import (
	"strings"

	"understudy"
	"understudy/internal/access"
)

// rights are what one caller may see.
type rights struct {
	gate   *access.Gate
	caller understudy.Caller
	known  bool // caller has been named
}

// sees reports whether the caller may ask a source at all.
func (r *rights) sees(s *Source) bool {
	return r.caller.Source == "" || r.caller.Source == s.Name
}

// seesKind reports whether the caller sees anything of a kind.
func (r *rights) seesKind(k *Kind) bool {
	return r.gate.Sees(r.caller, k.source.Name, k.Name)
}

// readable are the kinds of a source the caller may open without naming a
// record.
func (r *rights) readable(s *Source) []*Kind {
	if !r.known || s == nil || !r.sees(s) {
		return nil
	}
	var kinds []*Kind
	for _, k := range s.kinds {
		if (k.browsable() || k.single() || k.orphaned()) && r.seesKind(k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// counts reports whether the caller may know how many records of a kind there
// are.
func (r *rights) counts(k *Kind) bool {
	return r.gate.Counts(r.caller, k.source.Name, k.Name)
}

// offers reports whether the caller may use a list's filter.
func (r *rights) offers(l *List, filter int) bool {
	return filter < len(l.probes) && r.gate.Read(r.caller, l.probes[filter]) == nil
}

// contactKinds are those of the source at hand the caller may ask for a number, at
// one end or more.
func (r *rights) contactKinds(s *Source) []*Contact {
	var all []*Contact
	for _, t := range s.Contacts {
		if r.offers(t.list, t.ends[0].filter) || r.offers(t.list, t.ends[1].filter) {
			all = append(all, t)
		}
	}
	return all
}

// offersBoth reports whether the caller may ask for both ends at once.
func (r *rights) offersBoth(t *Contact) bool {
	return r.offers(t.list, t.ends[0].filter) && r.offers(t.list, t.ends[1].filter)
}

// ownVisible reports whether the caller may know our own numbers by a kind.
func (r *rights) ownVisible(k *Kind) bool {
	return r.gate.Read(r.caller, k.PlannedLists[0].newest) == nil && r.level(k, k.Own) == access.See
}

// phoneFilters are the filters by field that a number can be put in.
func (r *rights) phoneFilters(l *List) map[string]string {
	names := map[string]string{}
	for i, f := range l.Filters {
		if field := l.kind.Field(f.Field); field != nil && field.Class == understudy.ClassPhone && names[f.Field] == "" && r.offers(l, i) {
			names[f.Field] = f.Name
		}
	}
	return names
}

// columnsOf are those of a kind's own columns that the caller's role shows.
func (r *rights) columnsOf(k *Kind) []*Column { return r.visible(k, k.Shown) }

// level is how much of a field the caller sees.
func (r *rights) level(k *Kind, field string) access.Level {
	return r.gate.Level(r.caller, k.source.Name, k.Name, field)
}

// visible are those of some columns that the caller's role shows.
func (r *rights) visible(k *Kind, columns []*Column) []*Column {
	var shown []*Column
	for _, c := range columns {
		if r.level(k, c.Name) != access.Hide {
			shown = append(shown, c)
		}
	}
	return shown
}

// remedyOf is the line that shows fields of a kind: a rule that names a field
// decides, whatever is said of its class and its kind. What the spec derives from
// another field is shown with that one.
func (r *rights) remedyOf(k *Kind, fields ...string) string {
	var rules []string
	for _, name := range fields {
		for f := k.Field(name); f != nil && len(rules) < maxRules; f = k.Field(f.From) {
			if f.Class == understudy.ClassSecret {
				return "" // it is shown to nobody
			}
			rules = append(rules, k.Name+"."+f.Name+": see")
		}
	}
	return r.rule(k.source, strings.Join(rules, ", "))
}

// maxRules bounds a line.
const maxRules = 8

func (r *rights) rule(s *Source, rules string) string {
	return " Whoever runs this server can allow it with a line such as roles: {" + r.caller.Role() + ": {" + s.Name + ": {" + rules + "}}}."
}
