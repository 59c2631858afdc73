// Plans: what is worked out once, at start, about every source, kind and list.

package viewer

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"understudy"
)

// sourcePlan is a source with its kinds planned.
type sourcePlan struct {
	*understudy.Source
	kinds        []*kindPlan
	byName       map[string]*kindPlan
	own          []*kindPlan    // kinds that list numbers of our own
	docs         string         // upstream's page about an error, {code} in it; "" when unknown
	contactKinds []*contactKind // kinds of contact between two numbers
}

// kindPlan is a kind with its lists and columns planned.
type kindPlan struct {
	*understudy.Kind
	source    *sourcePlan
	lists     []*listPlan // those whose path variables the source can fill come first
	instances []*instancePlan
	columns   []*column // those a table shows when nobody chose
	every     []*column // those it can show
	byField   map[string]*column
	parts     []group
	href      string               // "/twilio/calls"
	counts    map[string]*listPlan // by field: lists under a record of this kind whose rows it counts
}

// instancePlan is one path of a kind's records.
type instancePlan struct {
	*understudy.Instance
	needs map[string]string // path variables beside the id, and the field that gives each; "" = none does
}

// listPlan is one list of a kind.
type listPlan struct {
	*understudy.List
	kind   *kindPlan
	paging *understudy.Paging
	slug   string             // names it in understudy.list
	title  string             // names it in its tab
	needs  []string           // path variables the source cannot fill
	parent parent             // the record that fills them
	newest *understudy.Target // its newest page as the viewer asks for it; nil when it needs a variable
	sample *understudy.Target // a page of it, to ask the gate about; never asked for
	probes []*understudy.Target
}

// column is one field as a table or a record shows it.
type column struct {
	*understudy.Field
	title   string // as it stands in a sentence
	heading string // as it begins a line
	class   string // of its table cells
	shape   shape
	isID    bool
	state   bool   // final and failed states look at it
	unit    string // the field that holds its unit
	digits  bool   // a number, set to the right
}

// group is some fields of a record under one heading.
type group struct {
	title   string
	columns []*column
}

func planSource(src *understudy.Source) (*sourcePlan, error) {
	if src.Name == "" || strings.ContainsAny(src.Name, "/.?#% ") || src.Name == "-" || src.Name == "search" || src.Name == jobsWord {
		return nil, fmt.Errorf("viewer: source name %q cannot be part of an address", src.Name)
	}
	p := &sourcePlan{Source: src, byName: map[string]*kindPlan{}, docs: src.Spec.Errors.Link}
	if p.docs == "" {
		p.docs = errorDocs(src.Spec.Errors.Template)
	}
	for _, k := range src.Spec.Kinds {
		if k.Name == numberWord {
			return nil, fmt.Errorf("viewer: %s/%s: this address belongs to the pages of numbers", src.Name, k.Name)
		}
		kp := &kindPlan{Kind: k, source: p, href: "/" + url.PathEscape(src.Name) + "/" + url.PathEscape(k.Name), counts: map[string]*listPlan{}}
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
			p.own = append(p.own, k)
		}
	}
	p.planContactKinds()
	return p, nil
}

func (k *kindPlan) planLists() error {
	for _, l := range k.Lists {
		lp := &listPlan{List: l, kind: k, paging: k.source.Spec.PagingOf(l)}
		for name := range pathVars(l.Path) {
			if _, ok := k.source.fill(name); !ok {
				lp.needs = append(lp.needs, name)
			}
		}
		if len(lp.needs) > 0 {
			lp.parent = k.source.parentOf(l.Path, lp.needs)
		}
		if p := lp.parent.kind; p != nil && l.Count != "" && p.Field(l.Count) != nil {
			p.counts[l.Count] = lp
		}
		k.lists = append(k.lists, lp)
	}
	slices.SortStableFunc(k.lists, func(a, b *listPlan) int { return min(len(a.needs), 1) - min(len(b.needs), 1) })
	for i, lp := range k.lists {
		lp.title = listTitle(lp, i)
		lp.slug = slug(lp.title)
		if err := k.planTargets(lp); err != nil {
			return err
		}
	}
	return nil
}

// listTitle is what names a list among those of its kind.
func listTitle(l *listPlan, i int) string {
	switch {
	case l.Title != "":
		return l.Title
	case l.parent.kind != nil:
		return "Of " + article(l.parent.kind.One)
	case i == 0:
		return "All"
	}
	return fmt.Sprintf("List %d", i+1)
}

// planTargets makes what is asked about a list: its newest page, and for the
// gate a page under each filter, a made-up value in what a record would fill.
func (k *kindPlan) planTargets(lp *listPlan) error {
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
func (k *kindPlan) planInstances() {
	for _, in := range k.Instances {
		ip := &instancePlan{Instance: in, needs: map[string]string{}}
		for name := range pathVars(in.Path) {
			if _, ok := k.source.fill(name); ok || slices.Contains(in.ID, name) {
				continue
			}
			ip.needs[name] = k.fieldOf(k.source.parentOf(in.Path, []string{name}))
		}
		k.instances = append(k.instances, ip)
	}
	slices.SortStableFunc(k.instances, func(a, b *instancePlan) int { return min(len(a.needs), 1) - min(len(b.needs), 1) })
}

// fieldOf is the field that names a record's parent, "" when none does.
func (k *kindPlan) fieldOf(p parent) string {
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
func (k *kindPlan) list(slug string) *listPlan {
	for i, l := range k.lists {
		if l.slug == slug || i == 0 && slug == "" {
			return l
		}
	}
	return nil
}

// browsable reports whether the kind has a page of its own: a list that needs
// nothing but the source.
func (k *kindPlan) browsable() bool { return len(k.lists) > 0 && k.lists[0].newest != nil }

// remembered reports whether there are records of the kind, with a past.
func (k *kindPlan) remembered() bool { return len(k.ID) > 0 }

// single reports whether the kind is one thing of the source, such as a balance:
// no list, and an instance that needs nothing but the source.
func (k *kindPlan) single() bool {
	return len(k.lists) == 0 && len(k.ID) == 0 && len(k.instances) > 0 && len(k.instances[0].needs) == 0
}

// orphaned reports whether the kind's lists need a value no record has: people
// must give it themselves.
func (k *kindPlan) orphaned() bool {
	return len(k.lists) > 0 && len(k.lists[0].needs) > 0 && k.lists[0].parent.kind == nil
}

// fill gives what the source puts in a path variable nobody gave.
func (p *sourcePlan) fill(name string) (string, bool) {
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

// article is a word with "a" or "an" before it.
func article(word string) string {
	if word != "" && strings.ContainsRune("aeioAEIO", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// slug is a title as part of an address: "Toll-free" is "toll-free".
func slug(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9')
	}), "-")
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
