// What a caller may see, according to the gate.

package page

import (
	"slices"
	"strings"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// Rights are what one caller may see.
type Rights struct {
	Gate      *access.Gate
	Caller    understudy.Caller
	HasCaller bool // whether the caller of the request is known
	v         *Visitor
}

// IsViewingAs reports whether the caller is viewing the pages as another role.
func (r *Rights) IsViewingAs() bool {
	return r.HasCaller && r.Caller.Grant != nil && r.Caller.Grant.IssuedBy == understudy.IssuedByViewAs
}

// CanSee reports whether the caller may see anything of a source.
func (r *Rights) CanSee(s *plan.Source) bool {
	return r.Caller.Source == "" || r.Caller.Source == s.Name
}

// CanSeeKind reports whether the caller may see anything of a kind.
func (r *Rights) CanSeeKind(k *plan.Kind) bool {
	return r.Gate.CanSee(r.Caller, k.Source.Name, k.Spec.Name)
}

// ReadableKinds returns the kinds of a source whose lists the caller may open without naming a parent record.
func (r *Rights) ReadableKinds(s *plan.Source) []*plan.Kind {
	if !r.HasCaller || s == nil || !r.CanSee(s) {
		return nil
	}
	var kinds []*plan.Kind
	for _, k := range s.Kinds {
		if (k.IsBrowsable() || k.IsSingle() || k.IsOrphaned() || k.IsAcrossRoots()) && r.CanSeeKind(k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// CanCount reports whether the caller may know how many records of a kind there are.
func (r *Rights) CanCount(k *plan.Kind) bool {
	return r.Gate.CanCount(r.Caller, k.Source.Name, k.Spec.Name)
}

// CanFilter reports whether the caller may use a list's filter.
func (r *Rights) CanFilter(l *plan.List, filter int) bool {
	return filter < len(l.Probes) && r.Gate.CheckRead(r.Caller, l.Probes[filter]) == nil
}

// ContactKinds returns the kinds of a source with a list that the caller may filter by a phone number, as the sender
// or the recipient.
func (r *Rights) ContactKinds(s *plan.Source) []*plan.Contact {
	var all []*plan.Contact
	for _, t := range s.Contacts {
		if r.CanFilter(t.List, t.Ends[0].Filter) || r.CanFilter(t.List, t.Ends[1].Filter) {
			all = append(all, t)
		}
	}
	return all
}

// CanFilterBoth reports whether the caller may filter the list by sender and recipient at the same time.
func (r *Rights) CanFilterBoth(t *plan.Contact) bool {
	return r.CanFilter(t.List, t.Ends[0].Filter) && r.CanFilter(t.List, t.Ends[1].Filter)
}

// CanSeeOwnNumbers reports whether the caller may see which phone numbers of a kind are our own.
func (r *Rights) CanSeeOwnNumbers(k *plan.Kind) bool {
	return r.Gate.CheckRead(r.Caller, k.PlannedLists[0].Newest) == nil && r.Level(k, k.Spec.OwnNumber) == access.See
}

// PhoneFilters returns the filters by which the caller may search for a phone number. The keys are names of fields,
// and the values are names of filters.
func (r *Rights) PhoneFilters(l *plan.List) map[string]string {
	names := map[string]string{}
	for i, f := range l.Spec.Filters {
		if field := l.Kind.Spec.Field(f.Field); field != nil && field.Class == spec.ClassPhone && names[f.Field] == "" && r.CanFilter(l, i) {
			names[f.Field] = f.Name
		}
	}
	return names
}

// ColumnsOf returns the kind's default columns that the caller's role may see.
func (r *Rights) ColumnsOf(k *plan.Kind) []*plan.Column { return r.VisibleColumns(k, k.DefaultColumns) }

// Level returns how much of a field's value the caller may see.
func (r *Rights) Level(k *plan.Kind, field string) access.Level {
	return r.Gate.Level(r.Caller, k.Source.Name, k.Spec.Name, field)
}

// VisibleColumns returns the columns that the caller's role may see.
func (r *Rights) VisibleColumns(k *plan.Kind, columns []*plan.Column) []*plan.Column {
	var shown []*plan.Column
	for _, c := range columns {
		if r.Level(k, c.Spec.Name) != access.Hide {
			shown = append(shown, c)
		}
	}
	return shown
}

// RemedyOf returns the line of settings that shows some fields of a kind to the caller's role. A rule for a field overrides the
// rules for its class and its kind. If a field is derived from another field, the line has a rule for that field too.
func (r *Rights) RemedyOf(k *plan.Kind, fields ...string) string {
	var rules []string
	for _, name := range fields {
		for f := k.Spec.Field(name); f != nil && len(rules) < maxRules; f = k.Spec.Field(f.DerivedFrom) {
			if f.Class == spec.ClassSecret {
				return "" // no setting can show a secret field
			}
			rules = append(rules, k.Spec.Name+"."+f.Name+": see")
		}
	}
	return r.rule(k.Source, strings.Join(rules, ", "))
}

// maxRules is the maximum number of rules in a line of settings that an error message suggests.
const maxRules = 8

func (r *Rights) rule(s *plan.Source, rules string) string {
	return " An administrator can allow it in the settings, like roles: {" + r.Caller.Role() + ": {" + s.Name + ": {" + rules + "}}}."
}

// CanSeeNotes reports whether the caller may see the notes on records of a source, which it may if it can write
// notes. Pages of an earlier moment show no notes.
func (r *Rights) CanSeeNotes(s *plan.Source, then AsOf) bool {
	return r.v.Options.Annotations != nil && then.At.IsZero() && r.Gate.CheckPermission(r.Caller, s.Name, access.PermitNote) == nil
}

// CanSeeAnyNotes reports whether the caller may see the notes of at least one source.
func (r *Rights) CanSeeAnyNotes(then AsOf) bool {
	return slices.ContainsFunc(r.v.Planned, func(s *plan.Source) bool { return r.CanSeeNotes(s, then) })
}

// CanLookUp reports whether the caller may look up a phone number that its role hides, in at least one source. Nobody
// may without an audit log.
func (r *Rights) CanLookUp() bool {
	return r.HasCaller && r.v.Options.Audit != nil && r.v.Options.Search != nil && !r.IsViewingAs() && len(r.LookupSources()) > 0
}

// LookupSources returns the sources in which the caller may look up a phone number.
func (r *Rights) LookupSources() (all []*plan.Source) {
	for _, s := range r.v.Planned {
		if r.Gate.CheckPermission(r.Caller, s.Name, access.PermitLookup) == nil {
			all = append(all, s)
		}
	}
	return all
}

// IsSignedIn reports whether the caller is a person who has signed in.
func (r *Rights) IsSignedIn() bool {
	return r.v.Options.People != nil && r.HasCaller && r.Caller.Source == ""
}

// canSeeAll reports whether the caller may see everything of a source, or of every source if s is nil.
func (r *Rights) canSeeAll(s *plan.Source) bool {
	if s != nil {
		return r.Gate.CanSeeAll(r.Caller, s.Name)
	}
	return !slices.ContainsFunc(r.v.Options.Sources, func(s *spec.Source) bool { return !r.Gate.CanSeeAll(r.Caller, s.Name) })
}
