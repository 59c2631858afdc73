// Plans: what is worked out once, at start, about every source, kind and list.

package viewer

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"understudy"
)

// Source is a source with its kinds planned.
type Source struct {
	*understudy.Source
	kinds     []*Kind
	byName    map[string]*Kind
	OwnKinds  []*Kind    // kinds that list numbers of our own
	ErrorDocs string     // upstream's page about an error, {code} in it; "" when unknown
	Contacts  []*Contact // kinds of contact between two numbers
}

// Kind is a kind with its lists and columns planned.
type Kind struct {
	*understudy.Kind
	source           *Source
	PlannedLists     []*List // those whose path variables the source can fill come first
	PlannedInstances []*Instance
	Shown            []*Column // those a table shows when nobody chose
	every            []*Column // those it can show
	byField          map[string]*Column
	Groups           []Group
	href             string           // "/twilio/calls"
	CountedIn        map[string]*List // by field: lists under a record of this kind whose rows it counts
}

// Instance is one path of a kind's records.
type Instance struct {
	*understudy.Instance
	needs map[string]string // path variables beside the id, and the field that gives each; "" = none does
}

// List is one list of a kind.
type List struct {
	*understudy.List
	kind        *Kind
	PagingStyle *understudy.Paging
	slug        string             // names it in understudy.list
	TabTitle    string             // names it in its tab
	needs       []string           // path variables the source cannot fill
	Under       Parent             // the record that fills them
	newest      *understudy.Target // its newest page as the viewer asks for it; nil when it needs a variable
	sample      *understudy.Target // a page of it, to ask the gate about; never asked for
	probes      []*understudy.Target
}

// Column is one field as a table or a record shows it.
type Column struct {
	*understudy.Field
	Words     string // as it stands in a sentence
	heading   string // as it begins a line
	CellClass string // of its table cells
	shape     Shape
	isID      bool
	state     bool   // final and failed states look at it
	unit      string // the field that holds its unit
	digits    bool   // a number, set to the right
}

// Group is some fields of a record under one heading.
type Group struct {
	title   string
	columns []*Column
}

func planSource(src *understudy.Source) (*Source, error) {
	if src.Name == "" || strings.ContainsAny(src.Name, "/.?#% ") || src.Name == "-" || src.Name == "search" || src.Name == jobsWord {
		return nil, fmt.Errorf("viewer: source name %q cannot be part of an address", src.Name)
	}
	p := &Source{Source: src, byName: map[string]*Kind{}, ErrorDocs: src.Spec.Errors.Link}
	if p.ErrorDocs == "" {
		p.ErrorDocs = errorDocs(src.Spec.Errors.Template)
	}
	for _, k := range src.Spec.Kinds {
		if k.Name == numberWord {
			return nil, fmt.Errorf("viewer: %s/%s: this address belongs to the pages of numbers", src.Name, k.Name)
		}
		kp := &Kind{Kind: k, source: p, href: "/" + url.PathEscape(src.Name) + "/" + url.PathEscape(k.Name), CountedIn: map[string]*List{}}
		p.kinds = append(p.kinds, kp)
		p.byName[k.Name] = kp
	}
	for _, k := range p.kinds {
		if err := k.planLists(); err != nil {
			return nil, fmt.Errorf("viewer: %s/%s: %w", src.Name, k.Name, err)
		}
		k.planInstances()
		k.planColumns()
		if k.Own != "" && k.browsable() {
			p.OwnKinds = append(p.OwnKinds, k)
		}
	}
	p.planContactKinds()
	return p, nil
}

func (k *Kind) planLists() error {
	for _, l := range k.Lists {
		lp := &List{List: l, kind: k, PagingStyle: k.source.Spec.PagingOf(l)}
		for name := range pathVars(l.Path) {
			if _, ok := k.source.fill(name); !ok {
				lp.needs = append(lp.needs, name)
			}
		}
		if len(lp.needs) > 0 {
			lp.Under = k.source.parentOf(l.Path, lp.needs)
		}
		if p := lp.Under.kind; p != nil && l.Count != "" && p.Field(l.Count) != nil {
			p.CountedIn[l.Count] = lp
		}
		k.PlannedLists = append(k.PlannedLists, lp)
	}
	slices.SortStableFunc(k.PlannedLists, func(a, b *List) int { return min(len(a.needs), 1) - min(len(b.needs), 1) })
	for i, lp := range k.PlannedLists {
		lp.TabTitle = listTitle(lp, i)
		lp.slug = slug(lp.TabTitle)
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
	case l.Under.kind != nil:
		return "Of " + article(l.Under.kind.One)
	case i == 0:
		return "All"
	}
	return fmt.Sprintf("List %d", i+1)
}

// planTargets makes what is asked about a list: its newest page, and for the
// gate a page under each filter, a made-up value in what a record would fill.
func (k *Kind) planTargets(lp *List) error {
	path, _ := expand(lp.Path, func(name string) (string, bool) {
		if v, ok := k.source.fill(name); ok {
			return v, true
		}
		return "0", true
	})
	var err error
	if lp.sample, err = k.source.Spec.Target(k.source.Name, path, ""); err != nil {
		return err
	}
	if lp.sample.List != lp.List {
		return fmt.Errorf("path %s belongs to another list", lp.Path)
	}
	if len(lp.needs) == 0 {
		lp.newest = lp.sample
	}
	for _, f := range lp.Filters {
		probe, err := k.source.Spec.Target(k.source.Name, path, understudy.Query{{Name: f.Name, Value: "0"}}.String())
		if err != nil {
			return err
		}
		lp.probes = append(lp.probes, probe)
	}
	return nil
}

// planInstances puts first the paths that need nothing but the id, and finds
// the fields that give what the others need.
func (k *Kind) planInstances() {
	for _, in := range k.Instances {
		ip := &Instance{Instance: in, needs: map[string]string{}}
		for name := range pathVars(in.Path) {
			if _, ok := k.source.fill(name); ok || slices.Contains(in.ID, name) {
				continue
			}
			ip.needs[name] = k.fieldOf(k.source.parentOf(in.Path, []string{name}))
		}
		k.PlannedInstances = append(k.PlannedInstances, ip)
	}
	slices.SortStableFunc(k.PlannedInstances, func(a, b *Instance) int { return min(len(a.needs), 1) - min(len(b.needs), 1) })
}

// fieldOf is the field that names a record's parent, "" when none does.
func (k *Kind) fieldOf(p Parent) string {
	if p.kind == nil || len(p.kind.ID) != 1 {
		return ""
	}
	for _, f := range k.Fields {
		if f.Link == p.kind.Name {
			return f.Name
		}
	}
	return ""
}

// list finds one by its slug; "" is the first.
func (k *Kind) list(slug string) *List {
	for i, l := range k.PlannedLists {
		if l.slug == slug || i == 0 && slug == "" {
			return l
		}
	}
	return nil
}

// browsable reports whether the kind has a page of its own: a list that needs
// nothing but the source.
func (k *Kind) browsable() bool { return len(k.PlannedLists) > 0 && k.PlannedLists[0].newest != nil }

// remembered reports whether there are records of the kind, with a past.
func (k *Kind) remembered() bool { return len(k.ID) > 0 }

// single reports whether the kind is one thing of the source, such as a balance:
// no list, and an instance that needs nothing but the source.
func (k *Kind) single() bool {
	return len(k.PlannedLists) == 0 && len(k.ID) == 0 && len(k.PlannedInstances) > 0 && len(k.PlannedInstances[0].needs) == 0
}

// orphaned reports whether the kind's lists need a value no record has: people
// must give it themselves.
func (k *Kind) orphaned() bool {
	return len(k.PlannedLists) > 0 && len(k.PlannedLists[0].needs) > 0 && k.PlannedLists[0].Under.kind == nil
}

// fill gives what the source puts in a path variable nobody gave.
func (p *Source) fill(name string) (string, bool) {
	if p.Spec.Vars[name] == "user" {
		return p.User, p.User != ""
	}
	return "", false
}

// pathVars yields the variables of a path template in order.
func pathVars(path string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for {
			_, rest, ok := strings.Cut(path, "{")
			if !ok {
				return
			}
			name, tail, _ := strings.Cut(rest, "}")
			if !yield(name) {
				return
			}
			path = tail
		}
	}
}

// expand puts values in a path template; ok is false when one is missing.
func expand(path string, value func(string) (string, bool)) (expanded string, ok bool) {
	var b strings.Builder
	for {
		head, rest, more := strings.Cut(path, "{")
		b.WriteString(head)
		if !more {
			return b.String(), true
		}
		name, tail, _ := strings.Cut(rest, "}")
		v, ok := value(name)
		if !ok || v == "" {
			return "", false
		}
		b.WriteString(url.PathEscape(v))
		path = tail
	}
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
const jobsWord = "jobs"

// params are the names under which an address gives the path variables that
// are not the id: those the source fills as the viewer's own.
func (in *Instance) params() []string {
	var known []string
	for name := range pathVars(in.Path) {
		_, needed := in.needs[name]
		switch {
		case needed:
			known = append(known, name)
		case !slices.Contains(in.ID, name):
			known = append(known, understudy.OwnPrefix+name)
		}
	}
	return known
}

// codeDocs is upstream's page about an error code, "" when the text is none or
// nobody says where it is explained.
func (s *Source) codeDocs(text string) string {
	if text == "" || len(text) > 12 || strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) || !strings.HasPrefix(s.ErrorDocs, "https://") {
		return ""
	}
	return strings.ReplaceAll(s.ErrorDocs, "{code}", text)
}
