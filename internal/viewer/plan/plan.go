// Plans: what is computed once, at the start, for every source, kind and list.

// Package plan computes once, at the start, what the viewer needs from the spec of a source.
package plan

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"understudy"
	"understudy/spec"
)

// Source is a source with its planned kinds.
type Source struct {
	Config    *spec.Source // the source in the settings
	Name      string
	Spec      *spec.Spec
	Kinds     []*Kind
	ByName    map[string]*Kind
	OwnKinds  []*Kind    // the kinds that list our own numbers
	ErrorDocs string     // the address of upstream's documentation of errors, with {code} in it; empty if it is not known
	Contacts  []*Contact // the kinds of contact between two numbers
}

// Kind is a kind with its planned lists and columns.
type Kind struct {
	Spec             *spec.Kind
	Source           *Source
	PlannedLists     []*List // lists that need no parent record come first
	PlannedInstances []*Instance
	DefaultColumns   []*Column // the default columns of a table
	AllColumns       []*Column // all possible columns of a table
	ByField          map[string]*Column
	Groups           []Group
	Href             string           // the address of the kind's list, such as "/twilio/calls"
	CountedIn        map[string]*List // by field: the child lists whose rows the field counts
}

// Instance is one path of a kind's records.
type Instance struct {
	Spec  *spec.Instance
	Needs map[string]string // the path variables other than the id, with the field that has each value; "" if none has it
}

// List is one list of a kind.
type List struct {
	Spec        *spec.List
	Kind        *Kind
	PagingStyle *spec.Paging
	Slug        string       // the list's name in the parameter OwnList
	TabTitle    string       // the text of the list's tab
	Needs       []string     // the path variables that the source cannot fill
	Parent      Parent       // the parent record, whose id fills these variables
	Newest      *spec.Target // its newest page; nil if it needs a variable
	Sample      *spec.Target // a page of the list for questions to the gate; it is never requested
	Probes      []*spec.Target
}

// Column is one field as tables and records show it.
type Column struct {
	Spec      *spec.Field
	Words     string // the title within a sentence
	Heading   string // the title at the beginning of a line
	CellClass string // the CSS class of the column's cells
	Shape     Shape
	IsID      bool
	isState   bool   // a final or failed state depends on the field
	Unit      string // the field with the unit of the value
	IsNumeric bool   // the value is a number, aligned to the right
}

// Group is a group of a record's fields with a heading.
type Group struct {
	Title   string
	Columns []*Column
}

// New plans the pages of a source.
func New(src *spec.Source) (*Source, error) {
	if src.Name == "" || strings.ContainsAny(src.Name, "/.?#% ") || src.Name == "-" || src.Name == "search" || src.Name == JobsWord {
		return nil, fmt.Errorf("viewer: source name %q cannot be part of an address", src.Name)
	}
	p := &Source{Config: src, Name: src.Name, Spec: src.Spec, ByName: map[string]*Kind{}, ErrorDocs: src.Spec.Errors.Link}
	if p.ErrorDocs == "" {
		p.ErrorDocs = errorDocs.FindString(src.Spec.Errors.Template)
	}
	for _, k := range src.Spec.Kinds {
		if k.Name == NumberWord {
			return nil, fmt.Errorf("viewer: %s/%s: this address belongs to the pages of numbers", src.Name, k.Name)
		}
		kp := &Kind{Spec: k, Source: p, Href: "/" + url.PathEscape(src.Name) + "/" + url.PathEscape(k.Name), CountedIn: map[string]*List{}}
		p.Kinds = append(p.Kinds, kp)
		p.ByName[k.Name] = kp
	}
	for _, k := range p.Kinds {
		if err := k.planLists(); err != nil {
			return nil, fmt.Errorf("viewer: %s/%s: %w", src.Name, k.Spec.Name, err)
		}
		k.planInstances()
		k.planColumns()
		if k.Spec.OwnNumber != "" && k.IsBrowsable() {
			p.OwnKinds = append(p.OwnKinds, k)
		}
	}
	p.planContactKinds()
	return p, nil
}

// rank orders lists: 0 for a list that can be shown by itself, 1 for a list under a record, 2 for a list that
// upstream refuses without a filter.
func (l *List) rank() int {
	if l.Spec.HasRequiredFilter() {
		return 2
	}
	return min(len(l.Needs), 1)
}

// planLists plans the lists of a kind and sorts them by rank.
func (k *Kind) planLists() error {
	for _, l := range k.Spec.Lists {
		lp := &List{Spec: l, Kind: k, PagingStyle: k.Source.Spec.PagingOf(l)}
		for _, name := range l.Template().Vars() {
			if _, ok := k.Source.Config.PathVar(name); !ok {
				lp.Needs = append(lp.Needs, name)
			}
		}
		if len(lp.Needs) > 0 {
			lp.Parent = k.Source.ParentOf(l.Template(), lp.Needs)
		}
		if p := lp.Parent.Kind; p != nil && l.Count != "" && p.Spec.Field(l.Count) != nil {
			p.CountedIn[l.Count] = lp
		}
		k.PlannedLists = append(k.PlannedLists, lp)
	}
	slices.SortStableFunc(k.PlannedLists, func(a, b *List) int { return a.rank() - b.rank() })
	for i, lp := range k.PlannedLists {
		lp.TabTitle = listTitle(lp, i)
		lp.Slug = slug(lp.TabTitle)
		if err := k.planTargets(lp); err != nil {
			return err
		}
	}
	return nil
}

// listTitle returns the title of a list among those of its kind.
func listTitle(l *List, i int) string {
	switch {
	case l.Spec.Title != "":
		return l.Spec.Title
	case l.Parent.Kind != nil:
		return "Of " + Article(l.Parent.Kind.Spec.Singular)
	case i == 0:
		return "All"
	}
	return fmt.Sprintf("List %d", i+1)
}

// planTargets makes the targets of a list: its newest page, and for the gate a page with each filter. A placeholder
// fills the variables of a parent record.
func (k *Kind) planTargets(lp *List) error {
	path, _ := lp.Spec.Template().FillEscaped(func(name string) (string, bool) {
		if v, ok := k.Source.Config.PathVar(name); ok {
			return v, true
		}
		return "0", true
	})
	var err error
	if lp.Sample, err = k.Source.Spec.Resolve(k.Source.Name, path, ""); err != nil {
		return err
	}
	if lp.Sample.List != lp.Spec {
		return fmt.Errorf("path %s belongs to another list", lp.Spec.Path)
	}
	if len(lp.Needs) == 0 {
		lp.Newest = lp.Sample
	}
	for _, f := range lp.Spec.Filters {
		probe, err := k.Source.Spec.Resolve(k.Source.Name, path, understudy.Query{{Name: f.Name, Value: "0"}}.String())
		if err != nil {
			return err
		}
		lp.Probes = append(lp.Probes, probe)
	}
	return nil
}

// planInstances puts the paths that need only the id first, and finds the fields that fill the other paths.
func (k *Kind) planInstances() {
	for _, in := range k.Spec.Instances {
		ip := &Instance{Spec: in, Needs: map[string]string{}}
		for _, name := range in.Template().Vars() {
			if _, ok := k.Source.Config.PathVar(name); ok || slices.Contains(in.ID, name) {
				continue
			}
			ip.Needs[name] = k.FieldOf(k.Source.ParentOf(in.Template(), []string{name}))
		}
		k.PlannedInstances = append(k.PlannedInstances, ip)
	}
	slices.SortStableFunc(k.PlannedInstances, func(a, b *Instance) int { return min(len(a.Needs), 1) - min(len(b.Needs), 1) })
}

// FieldOf returns the field with the id of a record's parent, or "" if there is none.
func (k *Kind) FieldOf(p Parent) string {
	if p.Kind == nil || len(p.Kind.Spec.ID) != 1 {
		return ""
	}
	for _, f := range k.Spec.Fields {
		if f.Link == p.Kind.Spec.Name {
			return f.Name
		}
	}
	return ""
}

// IsAcrossRoots reports whether records of several roots can be shown together. The list must be under a root, and
// the source must cover more roots than its user's own.
func (l *List) IsAcrossRoots() bool {
	k, roots := l.Kind, l.Kind.Source.Spec.Roots.Vars
	return len(k.Source.Config.Roots) > 0 && k.Source.Spec.RootField(k.Spec) != "" && slices.ContainsFunc(roots, l.Spec.Template().Has)
}

// IsAcrossRoots reports whether a list of the kind can show all roots together.
func (k *Kind) IsAcrossRoots() bool {
	return slices.ContainsFunc(k.PlannedLists, (*List).IsAcrossRoots)
}

// IsBrowsable reports whether the kind has a list that needs nothing but the source.
func (k *Kind) IsBrowsable() bool { return len(k.PlannedLists) > 0 && k.PlannedLists[0].Newest != nil }

// HasRecords reports whether the kind has records with ids, whose versions are stored.
func (k *Kind) HasRecords() bool { return len(k.Spec.ID) > 0 }

// IsSingle reports whether the kind has only one record, such as a balance. It has no list, and an instance that
// needs nothing but the source.
func (k *Kind) IsSingle() bool {
	return len(k.PlannedLists) == 0 && len(k.Spec.ID) == 0 && len(k.PlannedInstances) > 0 && len(k.PlannedInstances[0].Needs) == 0
}

// IsOrphaned reports whether the kind's lists need a value that no record has, so that people must type it.
func (k *Kind) IsOrphaned() bool {
	return len(k.PlannedLists) > 0 && len(k.PlannedLists[0].Needs) > 0 && k.PlannedLists[0].Parent.Kind == nil
}

// errorDocs matches the address of upstream's error documentation in the template of its error bodies.
var errorDocs = regexp.MustCompile(`https://[^"' ]*\{code\}[^"' ]*`)

// JobsWord is the first path element of the jobs' addresses. No source may have this name.
const JobsWord = "jobs"

// Params returns the parameter names for the path variables that are not the id. Variables that the source fills
// have the viewer's prefix.
func (in *Instance) Params() []string {
	var known []string
	for _, name := range in.Spec.Template().Vars() {
		_, needed := in.Needs[name]
		switch {
		case needed:
			known = append(known, name)
		case !slices.Contains(in.Spec.ID, name):
			known = append(known, understudy.OwnPrefix+name)
		}
	}
	return known
}
