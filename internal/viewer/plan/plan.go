// Plans: what is worked out once, at start, about every source, kind and list.

// Package plan works out once, at start, what the spec makes of the pages of a source.
package plan

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"understudy"
	"understudy/spec"
)

// Source is a source with its kinds planned.
type Source struct {
	*spec.Source
	Kinds     []*Kind
	ByName    map[string]*Kind
	OwnKinds  []*Kind    // kinds that list numbers of our own
	ErrorDocs string     // upstream's page about an error, {code} in it; "" when unknown
	Contacts  []*Contact // kinds of contact between two numbers
}

// Kind is a kind with its lists and columns planned.
type Kind struct {
	*spec.Kind
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
	*spec.Instance
	Needs map[string]string // path variables beside the id, and the field that gives each; "" = none does
}

// List is one list of a kind.
type List struct {
	*spec.List
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
	*spec.Field
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
	p := &Source{Source: src, ByName: map[string]*Kind{}, ErrorDocs: src.Spec.Errors.Link}
	if p.ErrorDocs == "" {
		p.ErrorDocs = errorDocs(src.Spec.Errors.Template)
	}
	for _, k := range src.Spec.Kinds {
		if k.Name == NumberWord {
			return nil, fmt.Errorf("viewer: %s/%s: this address belongs to the pages of numbers", src.Name, k.Name)
		}
		kp := &Kind{Kind: k, Source: p, Href: "/" + url.PathEscape(src.Name) + "/" + url.PathEscape(k.Name), CountedIn: map[string]*List{}}
		p.Kinds = append(p.Kinds, kp)
		p.ByName[k.Name] = kp
	}
	for _, k := range p.Kinds {
		if err := k.planLists(); err != nil {
			return nil, fmt.Errorf("viewer: %s/%s: %w", src.Name, k.Name, err)
		}
		k.planInstances()
		k.planColumns()
		if k.Own != "" && k.Browsable() {
			p.OwnKinds = append(p.OwnKinds, k)
		}
	}
	p.planContactKinds()
	return p, nil
}

// wants is 0 for a list that can be shown by itself, 1 for one that lies under a record,
// 2 for one that upstream refuses without a filter.
func (l *List) wants() int {
	if l.Demands() {
		return 2
	}
	return min(len(l.Needs), 1)
}

func (k *Kind) planLists() error {
	for _, l := range k.Lists {
		lp := &List{List: l, Kind: k, PagingStyle: k.Source.Spec.PagingOf(l)}
		for _, name := range l.Template().Vars() {
			if _, ok := k.Source.PathVar(name); !ok {
				lp.Needs = append(lp.Needs, name)
			}
		}
		if len(lp.Needs) > 0 {
			lp.Under = k.Source.ParentOf(l.Template(), lp.Needs)
		}
		if p := lp.Under.Kind; p != nil && l.Count != "" && p.Field(l.Count) != nil {
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
	case l.Title != "":
		return l.Title
	case l.Under.Kind != nil:
		return "Of " + Article(l.Under.Kind.One)
	case i == 0:
		return "All"
	}
	return fmt.Sprintf("List %d", i+1)
}

// planTargets makes what is asked about a list: its newest page, and for the
// gate a page under each filter, a made-up value in what a record would fill.
func (k *Kind) planTargets(lp *List) error {
	path, _ := lp.Template().FillEscaped(func(name string) (string, bool) {
		if v, ok := k.Source.PathVar(name); ok {
			return v, true
		}
		return "0", true
	})
	var err error
	if lp.Sample, err = k.Source.Spec.Target(k.Source.Name, path, ""); err != nil {
		return err
	}
	if lp.Sample.List != lp.List {
		return fmt.Errorf("path %s belongs to another list", lp.Path)
	}
	if len(lp.Needs) == 0 {
		lp.Newest = lp.Sample
	}
	for _, f := range lp.Filters {
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
	for _, in := range k.Instances {
		ip := &Instance{Instance: in, Needs: map[string]string{}}
		for _, name := range in.Template().Vars() {
			if _, ok := k.Source.PathVar(name); ok || slices.Contains(in.ID, name) {
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
	if p.Kind == nil || len(p.Kind.ID) != 1 {
		return ""
	}
	for _, f := range k.Fields {
		if f.Link == p.Kind.Name {
			return f.Name
		}
	}
	return ""
}

// list finds one by its slug; "" is the first.
func (k *Kind) list(slug string) *List {
	for i, l := range k.PlannedLists {
		if l.Slug == slug || i == 0 && slug == "" {
			return l
		}
	}
	return nil
}

// Everywhere reports whether a list lies under roots of which the source covers others than
// its user's, so that the records of all of them can be shown together.
func (l *List) Everywhere() bool {
	k, roots := l.Kind, l.Kind.Source.Spec.Roots.Vars
	return len(k.Source.Roots) > 0 && k.Source.Spec.RootField(k.Kind) != "" && slices.ContainsFunc(roots, l.Template().Has)
}

// Everywhere reports whether a list of the kind is shown of all roots together.
func (k *Kind) Everywhere() bool { return slices.ContainsFunc(k.PlannedLists, (*List).Everywhere) }

// Browsable reports whether the kind has a page of its own: a list that needs
// nothing but the source.
func (k *Kind) Browsable() bool { return len(k.PlannedLists) > 0 && k.PlannedLists[0].Newest != nil }

// Remembered reports whether there are records of the kind, with a past.
func (k *Kind) Remembered() bool { return len(k.ID) > 0 }

// Single reports whether the kind is one thing of the source, such as a balance:
// no list, and an instance that needs nothing but the source.
func (k *Kind) Single() bool {
	return len(k.PlannedLists) == 0 && len(k.ID) == 0 && len(k.PlannedInstances) > 0 && len(k.PlannedInstances[0].Needs) == 0
}

// Orphaned reports whether the kind's lists need a value no record has: people
// must give it themselves.
func (k *Kind) Orphaned() bool {
	return len(k.PlannedLists) > 0 && len(k.PlannedLists[0].Needs) > 0 && k.PlannedLists[0].Under.Kind == nil
}

// errorDocs finds the address of upstream's page about an error in the
// template of its error bodies: the first one that holds {code}.
func errorDocs(template string) string {
	for rest := template; ; {
		i := strings.Index(rest, "https://")
		if i < 0 {
			return ""
		}
		rest = rest[i:]
		end := strings.IndexAny(rest, "\"' ")
		if end < 0 {
			end = len(rest)
		}
		if link := rest[:end]; strings.Contains(link, "{code}") {
			return link
		}
		rest = rest[end:]
	}
}

// jobsWord is the first part of the jobs' addresses; no source is named so.
const JobsWord = "jobs"

// Params are the names under which an address gives the path variables that
// are not the id: those the source fills as the viewer's own.
func (in *Instance) Params() []string {
	var known []string
	for _, name := range in.Template().Vars() {
		_, needed := in.Needs[name]
		switch {
		case needed:
			known = append(known, name)
		case !slices.Contains(in.ID, name):
			known = append(known, understudy.OwnPrefix+name)
		}
	}
	return known
}
