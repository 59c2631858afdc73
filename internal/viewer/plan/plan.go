// Plans: what the viewer computes once, at the start, for each source, kind and list.

// Package plan computes once, at the start, what the viewer needs from the spec of a source.
package plan

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"understudy"
	"understudy/spec"
)

// Source is a source with the kinds of its spec, as the viewer shows them.
type Source struct {
	Config    *spec.Source // the source as the settings define it
	Name      string
	Spec      *spec.Spec
	Kinds     []*Kind
	ByName    map[string]*Kind
	OwnKinds  []*Kind    // the kinds that list our own numbers
	ErrorDocs string     // the address of upstream's documentation of error codes, with {code} in place of the code; empty if there is none
	Contacts  []*Contact // the kinds whose records connect two phone numbers
}

// Kind is a kind with its lists, its columns, and the paths of its records.
type Kind struct {
	Spec             *spec.Kind
	Source           *Source
	PlannedLists     []*List // the lists of the kind; those that need no parent record come first
	PlannedInstances []*Instance
	DefaultColumns   []*Column // the columns that a table of records has if the reader has chosen none
	AllColumns       []*Column // all columns that a table of records can have
	ByField          map[string]*Column
	Groups           []Group
	Href             string           // the viewer's address of the kind's list, such as "/twilio/calls"
	CountedIn        map[string]*List // the lists below a record, by the field that has their number of rows
}

// Instance is a path that upstream has for a record of the kind.
type Instance struct {
	Spec  *spec.Instance
	Needs map[string]string // for each path variable that is not part of the id, the field with its value; "" if no field has it
}

// List is one of a kind's lists, as the viewer shows it.
type List struct {
	Spec        *spec.List
	Kind        *Kind
	PagingStyle *spec.Paging
	Slug        string       // the value of the parameter OwnList that chooses the list
	TabTitle    string       // the text of the tab that links to the list
	Needs       []string     // the path variables to which the source gives no value
	Parent      Parent       // the parent record of the list, whose id contains the values of Needs
	Newest      *spec.Target // the newest page of the list; nil if a path variable needs a value
	Sample      *spec.Target // an example of a page, with which the viewer asks the gate about the list; it is never requested
	Probes      []*spec.Target
}

// Column is a field as the viewer shows it in tables and on records' pages.
type Column struct {
	Spec      *spec.Field
	Words     string // the title of the field in lower case, for use within a sentence
	Heading   string // the title of the field beginning with an upper case letter
	CellClass string // the CSS class of the column's cells
	Shape     Shape
	IsID      bool
	isState   bool   // whether the field says that a record is final or has failed
	Unit      string // the name of the field with the unit of the value; empty if there is none
	IsNumeric bool   // whether the value is a number, which tables align to the right
}

// Group is a group of a record's fields with a heading.
type Group struct {
	Title   string
	Columns []*Column
}

// New computes how the viewer shows each kind of a source.
func New(src *spec.Source) (*Source, error) {
	if src.Name == "" || strings.ContainsAny(src.Name, "/.?#% ") || src.Name == "-" || src.Name == "search" || src.Name == JobsWord {
		return nil, fmt.Errorf("viewer: source name %q cannot be part of an address", src.Name)
	}
	p := &Source{Config: src, Name: src.Name, Spec: src.Spec, ByName: map[string]*Kind{}, ErrorDocs: src.Spec.Errors.Link}
	p.ErrorDocs = cmp.Or(p.ErrorDocs, errorDocs.FindString(src.Spec.Errors.Template))
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

// rank returns a key for sorting the lists of a kind. It is 0 for a list that can be shown without more values, 1 for
// a list below a record, and 2 for a list that upstream refuses without a filter.
func (l *List) rank() int {
	if l.Spec.HasRequiredFilter() {
		return 2
	}
	return min(len(l.Needs), 1)
}

// planLists computes the lists of a kind and sorts them by rank.
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

// listTitle returns the title that distinguishes a list from the other lists of its kind.
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

// planTargets sets the targets of a list: its newest page, and for questions to the gate an example of a page with
// each filter. In the examples, a placeholder stands for the id of the parent record.
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

// planInstances finds for each path of a record the fields that have the values of its variables. It sorts the paths
// so that those without such variables come first.
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

// FieldOf returns the name of the field that contains the id of a record's parent. It returns "" if there is none.
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

// IsAcrossRoots reports whether the viewer can show the records of all roots (such as accounts) in one list. The path
// of the list must contain a root, and the source must cover more roots than the default one.
func (l *List) IsAcrossRoots() bool {
	k, roots := l.Kind, l.Kind.Source.Spec.Roots.Vars
	return len(k.Source.Config.Roots) > 0 && k.Source.Spec.RootField(k.Spec) != "" && slices.ContainsFunc(roots, l.Spec.Template().Has)
}

// IsAcrossRoots reports whether the kind has a list that can show the records of all roots.
func (k *Kind) IsAcrossRoots() bool {
	return slices.ContainsFunc(k.PlannedLists, (*List).IsAcrossRoots)
}

// IsBrowsable reports whether the kind has a list that can be opened without more values, such as the id of a parent record.
func (k *Kind) IsBrowsable() bool { return len(k.PlannedLists) > 0 && k.PlannedLists[0].Newest != nil }

// HasRecords reports whether the kind has records with ids, whose versions are stored.
func (k *Kind) HasRecords() bool { return len(k.Spec.ID) > 0 }

// IsSingle reports whether the kind has just one record, such as a balance. Such a kind has no list, and the path of
// its record needs no id.
func (k *Kind) IsSingle() bool {
	return len(k.PlannedLists) == 0 && len(k.Spec.ID) == 0 && len(k.PlannedInstances) > 0 && len(k.PlannedInstances[0].Needs) == 0
}

// IsOrphaned reports whether the kind's first list needs a value that is not the id of any record, so that people must type it.
func (k *Kind) IsOrphaned() bool {
	return len(k.PlannedLists) > 0 && len(k.PlannedLists[0].Needs) > 0 && k.PlannedLists[0].Parent.Kind == nil
}

// errorDocs matches the address of upstream's documentation of error codes in the spec's template of error responses.
var errorDocs = regexp.MustCompile(`https://[^"' ]*\{code\}[^"' ]*`)

// JobsWord is the first part of the paths of jobs. No source may have this name.
const JobsWord = "jobs"

// Params returns the names that the path variables of a record have in the viewer's addresses, without those that are
// part of the id. A name has the viewer's prefix if the source gives the variable a value.
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
