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
	kinds  []*kindPlan
	byName map[string]*kindPlan
	own    []*kindPlan // kinds that list numbers of our own
	docs   string      // upstream's page about an error, {code} in it; "" when unknown
}

// kindPlan is a kind with its lists and columns planned.
type kindPlan struct {
	*understudy.Kind
	source  *sourcePlan
	lists   []*listPlan // those whose path variables the source can fill come first
	columns []*column
	parts   []group
	href    string // "/twilio/calls"
}

// listPlan is one list of a kind.
type listPlan struct {
	*understudy.List
	slug   string             // names it in understudy.list
	title  string             // names it in its tab
	needs  []string           // path variables the source cannot fill
	newest *understudy.Target // its newest page as the viewer asks for it; nil when it needs a variable
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
	if src.Name == "" || strings.ContainsAny(src.Name, "/.?#% ") || src.Name == "-" || src.Name == "search" {
		return nil, fmt.Errorf("viewer: source name %q cannot be part of an address", src.Name)
	}
	p := &sourcePlan{Source: src, byName: map[string]*kindPlan{}, docs: errorDocs(src.Spec.Errors.Template)}
	for _, k := range src.Spec.Kinds {
		kp := &kindPlan{Kind: k, source: p, href: "/" + url.PathEscape(src.Name) + "/" + url.PathEscape(k.Name)}
		if err := kp.planLists(); err != nil {
			return nil, fmt.Errorf("viewer: %s/%s: %w", src.Name, k.Name, err)
		}
		kp.planColumns()
		p.kinds = append(p.kinds, kp)
		p.byName[k.Name] = kp
		if k.Own != "" && len(kp.lists) > 0 && kp.lists[0].newest != nil {
			p.own = append(p.own, kp)
		}
	}
	return p, nil
}

func (k *kindPlan) planLists() error {
	for i, l := range k.Lists {
		lp := &listPlan{List: l, title: l.Title, slug: slug(l.Title)}
		if l.Title == "" && i > 0 {
			lp.title = fmt.Sprintf("List %d", i+1)
			lp.slug = fmt.Sprint(i + 1)
		}
		if i == 0 && l.Title == "" {
			lp.title = "All"
		}
		for name := range pathVars(l.Path) {
			if _, ok := k.source.fill(name); !ok {
				lp.needs = append(lp.needs, name)
			}
		}
		k.lists = append(k.lists, lp)
	}
	slices.SortStableFunc(k.lists, func(a, b *listPlan) int { return min(len(a.needs), 1) - min(len(b.needs), 1) })
	for _, lp := range k.lists {
		if len(lp.needs) > 0 {
			continue
		}
		path, _ := expand(lp.Path, k.source.fill)
		var err error
		if lp.newest, err = k.source.Spec.Target(k.source.Name, path, ""); err != nil {
			return err
		}
		if lp.newest.List != lp.List {
			return fmt.Errorf("path %s belongs to another list", lp.Path)
		}
		for _, f := range lp.Filters {
			probe, err := k.source.Spec.Target(k.source.Name, path, understudy.Query{{Name: f.Name, Value: "0"}}.String())
			if err != nil {
				return err
			}
			lp.probes = append(lp.probes, probe)
		}
	}
	return nil
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

// Href is the address of the kind's page.
func (k *kindPlan) Href() string { return k.href }

// Look is the class of the column's cells.
func (c *column) Look() string { return c.class }

// Heading is the column's title as it begins a line.
func (c *column) Heading() string { return c.heading }
