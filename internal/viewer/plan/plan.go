// Plans: what is worked out once, at start, about every source, kind and list.

// Package plan works out once, at start, what the spec makes of the pages of a source.
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

// Source is a source with its kinds planned.
type Source struct {
	Config    *spec.Source // as the settings have it, with its Name and its Spec
	Name      string
	Spec      *spec.Spec
	Kinds     []*Kind
	ByName    map[string]*Kind
	OwnKinds  []*Kind    // kinds that list numbers of our own
	ErrorDocs string     // upstream's page about an error, {code} in it; "" when unknown
	Contacts  []*Contact // kinds of contact between two numbers
}

// Kind is a kind with its lists and columns planned.
type Kind struct {
	Spec             *spec.Kind
	Source           *Source
	PlannedLists     []*List // those that can be shown by themselves come first
	PlannedInstances []*Instance
	Shown            []*Column // those a table shows by default
	Every            []*Column // those it can show
	ByField          map[string]*Column
	Groups           []Group
	Href             string           // "/twilio/calls"
	CountedIn        map[string]*List // by field: lists under a record of this kind whose rows it counts
}

// Instance is one path of a kind's records.
type Instance struct {
	Spec  *spec.Instance
	Needs map[string]string // path variables beside the id, and the field that gives each; "" = none does
}

// List is one list of a kind.
type List struct {
	Spec        *spec.List
	Kind        *Kind
	PagingStyle *spec.Paging
	Slug        string       // names it in understudy.list
	TabTitle    string       // names it in its tab
	Needs       []string     // path variables the source cannot fill
	Under       Parent       // the record that fills them
	Newest      *spec.Target // its newest page as the viewer asks for it; nil when it needs a variable
	Sample      *spec.Target // a page of it, to ask the gate about; never asked for
	Probes      []*spec.Target
}

// Column is one field as a table or a record shows it.
type Column struct {
	Spec      *spec.Field
	Words     string // as it stands in a sentence
	Heading   string // as it begins a line
	CellClass string // of its table cells
	Shape     Shape
	IsID      bool
	state     bool   // final and failed states look at it
	Unit      string // the field that holds its unit
	Digits    bool   // a number, set to the right
}

// Group is some fields of a record under one heading.
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
		if k.Spec.Own != "" && k.Browsable() {
			p.OwnKinds = append(p.OwnKinds, k)
		}
	}
	p.planContactKinds()
	return p, nil
}

// wants is 0 for a list that can be shown by itself, 1 for one that lies under a record,
// 2 for one that upstream refuses without a filter.
func (l *List) wants() int {
	if l.Spec.Demands() {
		return 2
	}
	return min(len(l.Needs), 1)
}

func (k *Kind) planLists() error {
	for _, l := range k.Spec.Lists {
		lp := &List{Spec: l, Kind: k, PagingStyle: k.Source.Spec.PagingOf(l)}
		for _, name := range l.Template().Vars() {
			if _, ok := k.Source.Config.PathVar(name); !ok {
				lp.Needs = append(lp.Needs, name)
			}
		}
		if len(lp.Needs) > 0 {
			lp.Under = k.Source.ParentOf(l.Template(), lp.Needs)
		}
		if p := lp.Under.Kind; p != nil && l.Count != "" && p.Spec.Field(l.Count) != nil {
			p.CountedIn[l.Count] = lp
		}
		k.PlannedLists = append(k.PlannedLists, lp)
	}
	slices.SortStableFunc(k.PlannedLists, func(a, b *List) int { return a.wants() - b.wants() })
	for i, lp := range k.PlannedLists {
		lp.TabTitle = listTitle(lp, i)
		lp.Slug = slug(lp.TabTitle)
		if err := k.planTargets(lp); err != nil {
			return err
		}
	}
	return nil
}

// listTitle is what names a list among those of its kind.
func listTitle(l *List, i int) string {
	switch {
	case l.Spec.Title != "":
		return l.Spec.Title
	case l.Under.Kind != nil:
		return "Of " + Article(l.Under.Kind.Spec.One)
	case i == 0:
		return "All"
	}
	return fmt.Sprintf("List %d", i+1)
}

// planTargets makes what is asked about a list: its newest page, and for the
// gate a page under each filter, a made-up value in what a record would fill.
func (k *Kind) planTargets(lp *List) error {
	path, _ := lp.Spec.Template().FillEscaped(func(name string) (string, bool) {
		if v, ok := k.Source.Config.PathVar(name); ok {
			return v, true
		}
		return "0", true
	})
	var err error
	if lp.Sample, err = k.Source.Spec.Target(k.Source.Name, path, ""); err != nil {
		return err
	}
	if lp.Sample.List != lp.Spec {
		return fmt.Errorf("path %s belongs to another list", lp.Spec.Path)
	}
	if len(lp.Needs) == 0 {
		lp.Newest = lp.Sample
	}
	for _, f := range lp.Spec.Filters {
		probe, err := k.Source.Spec.Target(k.Source.Name, path, understudy.Query{{Name: f.Name, Value: "0"}}.String())
		if err != nil {
			return err
		}
		lp.Probes = append(lp.Probes, probe)
	}
	return nil
}

// planInstances puts first the paths that need nothing but the id, and finds
// the fields that give what the others need.
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

// FieldOf is the field that names a record's parent, "" when none does.
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

// Everywhere reports whether a list lies under roots of which the source covers others than
// its user's, so that the records of all of them can be shown together.
func (l *List) Everywhere() bool {
	k, roots := l.Kind, l.Kind.Source.Spec.Roots.Vars
	return len(k.Source.Config.Roots) > 0 && k.Source.Spec.RootField(k.Spec) != "" && slices.ContainsFunc(roots, l.Spec.Template().Has)
}

// Everywhere reports whether a list of the kind is shown of all roots together.
func (k *Kind) Everywhere() bool { return slices.ContainsFunc(k.PlannedLists, (*List).Everywhere) }

// Browsable reports whether the kind has a page of its own: a list that needs
// nothing but the source.
func (k *Kind) Browsable() bool { return len(k.PlannedLists) > 0 && k.PlannedLists[0].Newest != nil }

// Remembered reports whether there are records of the kind, with a past.
func (k *Kind) Remembered() bool { return len(k.Spec.ID) > 0 }

// Single reports whether the kind is one thing of the source, such as a balance:
// no list, and an instance that needs nothing but the source.
func (k *Kind) Single() bool {
	return len(k.PlannedLists) == 0 && len(k.Spec.ID) == 0 && len(k.PlannedInstances) > 0 && len(k.PlannedInstances[0].Needs) == 0
}

// Orphaned reports whether the kind's lists need a value no record has: people
// must give it themselves.
func (k *Kind) Orphaned() bool {
	return len(k.PlannedLists) > 0 && len(k.PlannedLists[0].Needs) > 0 && k.PlannedLists[0].Under.Kind == nil
}

// errorDocs matches the address of upstream's page about an error in the template of its error bodies.
var errorDocs = regexp.MustCompile(`https://[^"' ]*\{code\}[^"' ]*`)

// jobsWord is the first part of the jobs' addresses; no source is named so.
const JobsWord = "jobs"

// Params are the names under which an address gives the path variables that
// are not the id: those the source fills as the viewer's own.
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
