// Rights: what one caller may see, asked of the gate.

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
	Gate   *access.Gate
	Caller understudy.Caller
	Known  bool // caller has been named
	v      *Visitor
}

// ViewsAs reports whether the caller looks through another role than its own.
func (r *Rights) ViewsAs() bool {
	return r.Known && r.Caller.Grant != nil && r.Caller.Grant.By == understudy.ByViewAs
}

// Sees reports whether the caller may ask a source at all.
func (r *Rights) Sees(s *plan.Source) bool {
	return r.Caller.Source == "" || r.Caller.Source == s.Name
}

// SeesKind reports whether the caller sees anything of a kind.
func (r *Rights) SeesKind(k *plan.Kind) bool {
	return r.Gate.CanSee(r.Caller, k.Source.Name, k.Spec.Name)
}

// Readable are the kinds of a source the caller may open without naming a
// record.
func (r *Rights) Readable(s *plan.Source) []*plan.Kind {
	if !r.Known || s == nil || !r.Sees(s) {
		return nil
	}
	var kinds []*plan.Kind
	for _, k := range s.Kinds {
		if (k.Browsable() || k.Single() || k.Orphaned() || k.Everywhere()) && r.SeesKind(k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// Counts reports whether the caller may know how many records of a kind there
// are.
func (r *Rights) Counts(k *plan.Kind) bool {
	return r.Gate.Counts(r.Caller, k.Source.Name, k.Spec.Name)
}

// Offers reports whether the caller may use a list's filter.
func (r *Rights) Offers(l *plan.List, filter int) bool {
	return filter < len(l.Probes) && r.Gate.Read(r.Caller, l.Probes[filter]) == nil
}

// ContactKinds are those of the source at hand the caller may ask for a number, at
// one end or more.
func (r *Rights) ContactKinds(s *plan.Source) []*plan.Contact {
	var all []*plan.Contact
	for _, t := range s.Contacts {
		if r.Offers(t.List, t.Ends[0].Filter) || r.Offers(t.List, t.Ends[1].Filter) {
			all = append(all, t)
		}
	}
	return all
}

// OffersBoth reports whether the caller may ask for both ends at once.
func (r *Rights) OffersBoth(t *plan.Contact) bool {
	return r.Offers(t.List, t.Ends[0].Filter) && r.Offers(t.List, t.Ends[1].Filter)
}

// OwnVisible reports whether the caller may know our own numbers by a kind.
func (r *Rights) OwnVisible(k *plan.Kind) bool {
	return r.Gate.Read(r.Caller, k.PlannedLists[0].Newest) == nil && r.Level(k, k.Spec.Own) == access.See
}

// PhoneFilters are the filters by field that a number can be put in.
func (r *Rights) PhoneFilters(l *plan.List) map[string]string {
	names := map[string]string{}
	for i, f := range l.Spec.Filters {
		if field := l.Kind.Spec.Field(f.Field); field != nil && field.Class == spec.ClassPhone && names[f.Field] == "" && r.Offers(l, i) {
			names[f.Field] = f.Name
		}
	}
	return names
}

// ColumnsOf are those of a kind's own columns that the caller's role shows.
func (r *Rights) ColumnsOf(k *plan.Kind) []*plan.Column { return r.Visible(k, k.Shown) }

// Level is how much of a field the caller sees.
func (r *Rights) Level(k *plan.Kind, field string) access.Level {
	return r.Gate.Level(r.Caller, k.Source.Name, k.Spec.Name, field)
}

// Visible are those of some columns that the caller's role shows.
func (r *Rights) Visible(k *plan.Kind, columns []*plan.Column) []*plan.Column {
	var shown []*plan.Column
	for _, c := range columns {
		if r.Level(k, c.Spec.Name) != access.Hide {
			shown = append(shown, c)
		}
	}
	return shown
}

// RemedyOf is the line that shows fields of a kind: a rule that names a field
// decides, whatever is said of its class and its kind. What the spec derives from
// another field is shown with that one.
func (r *Rights) RemedyOf(k *plan.Kind, fields ...string) string {
	var rules []string
	for _, name := range fields {
		for f := k.Spec.Field(name); f != nil && len(rules) < maxRules; f = k.Spec.Field(f.From) {
			if f.Class == spec.ClassSecret {
				return "" // it is never shown
			}
			rules = append(rules, k.Spec.Name+"."+f.Name+": see")
		}
	}
	return r.rule(k.Source, strings.Join(rules, ", "))
}

// maxRules bounds a line.
const maxRules = 8

func (r *Rights) rule(s *plan.Source, rules string) string {
	return " Whoever runs this server can allow it with a line such as roles: {" + r.Caller.Role() + ": {" + s.Name + ": {" + rules + "}}}."
}

// SeesNotes reports whether the caller sees what people wrote on records of a source: who
// may write it does, but for earlier moments, which have none.
func (r *Rights) SeesNotes(s *plan.Source, then AsOf) bool {
	return r.v.Options.Annotations != nil && then.At.IsZero() && r.Gate.Do(r.Caller, s.Name, access.DoNote) == nil
}

// SeesAnyNotes reports whether the caller sees what people wrote on records of some source.
func (r *Rights) SeesAnyNotes(then AsOf) bool {
	return slices.ContainsFunc(r.v.Planned, func(s *plan.Source) bool { return r.SeesNotes(s, then) })
}

// Looks reports whether the caller may look up a number in some source that it is not shown. Without
// an audit log nobody may.
func (r *Rights) Looks() bool {
	return r.Known && r.v.Options.Audit != nil && r.v.Options.Search != nil && !r.ViewsAs() && len(r.LooksIn()) > 0
}

// LooksIn returns the sources in which the caller may look up a number.
func (r *Rights) LooksIn() (all []*plan.Source) {
	for _, s := range r.v.Planned {
		if r.Gate.Do(r.Caller, s.Name, access.DoLookup) == nil {
			all = append(all, s)
		}
	}
	return all
}

// SignedIn reports whether the caller is a person who has signed in.
func (r *Rights) SignedIn() bool {
	return r.v.Options.People != nil && r.Known && r.Caller.Source == ""
}

// seesWhole reports whether the caller sees everything of a source; of all sources where s is nil.
func (r *Rights) seesWhole(s *plan.Source) bool {
	if s != nil {
		return r.Gate.Whole(r.Caller, s.Name)
	}
	return !slices.ContainsFunc(r.v.Options.Sources, func(s *spec.Source) bool { return !r.Gate.Whole(r.Caller, s.Name) })
}
