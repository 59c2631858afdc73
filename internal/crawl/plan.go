// Plan: what of a kind can be walked, and how its pages are asked for.

package crawl

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// plan is how the records of one kind are found. It does not change.
type plan struct {
	source *spec.Source
	kind   *spec.Kind
	lists  []*spec.List
	// root is the root its lists lie under, "" for that of the source's user. bare: they
	// lie under roots alone, and none is given.
	root string
	bare bool
	// under is the kind its records lie under, when no list of its own can be
	// asked for; by is the path variable that names one of them.
	parentKind *spec.Kind
	by         []string // of each list
	// since and until are the filters on the kind's clock, of each list; nil
	// when not every list has both.
	since, until []*spec.Filter
}

// planOf says how a kind is walked in a root ("": that of the source's user); the error
// says, to a person, why it cannot be.
func planOf(src *spec.Source, k *spec.Kind, root string) (*plan, error) {
	p := &plan{source: src, kind: k, root: root}
	if len(k.ID) == 0 {
		return nil, fmt.Errorf("%s have no ids; they are kept as whole pages and cannot be synced", k.Title)
	}
	for _, l := range k.Lists {
		if free := p.free(l.Template()); len(free) == 0 && !l.Demands() && (root == "" || p.hasRoot(l)) {
			p.lists = append(p.lists, l)
		}
	}
	if len(p.lists) == 0 {
		if err := p.underRoots(); err != nil {
			return p, err
		}
		if len(p.lists) == 0 {
			return p, p.nest()
		}
	}
	for _, l := range p.lists {
		s, u := filterOn(l, k.Clock, "since"), filterOn(l, k.Clock, "until")
		if s == nil || u == nil {
			p.since, p.until = nil, nil
			break
		}
		p.since, p.until = append(p.since, s), append(p.until, u)
	}
	return p, nil
}

// underRoots finds the lists that lie under roots alone.
func (p *plan) underRoots() error {
	roots := &p.source.Spec.Roots
	for _, l := range p.kind.Lists {
		outside := slices.DeleteFunc(p.free(l.Template()), func(name string) bool { return slices.Contains(roots.Vars, name) })
		if len(outside) == 0 && !l.Demands() {
			p.lists, p.bare = append(p.lists, l), true
		}
	}
	switch {
	case !p.bare:
		return nil
	case !p.rooted():
		return fmt.Errorf("the spec does not say which of the %s %s lie under (root)", roots.Kind, p.kind.Title)
	case len(p.source.Roots) == 0:
		return fmt.Errorf("%s lie under %s, and the source names none: set its roots", p.kind.Title, p.source.Spec.Kind(roots.Kind).Title)
	}
	return nil
}

// hasRoot reports whether a list lies under a root.
func (p *plan) hasRoot(l *spec.List) bool {
	return slices.ContainsFunc(p.source.Spec.Roots.Vars, l.Template().Has)
}

// rooted reports whether the kind's records tell which root they lie under, so that those
// of each root can be walked.
func (p *plan) rooted() bool {
	return p.parentKind == nil && p.source.Spec.RootField(p.kind) != "" && slices.ContainsFunc(p.lists, p.hasRoot)
}

// parentOf is the root that the records of the walk lie under, by which what is held of them
// is found; "" = there is one alone.
func (p *plan) parentOf() string {
	switch {
	case p.kind.Root != "":
		return p.root
	case p.kind.Parent == "" && p.kind.ParentRule() != "":
		return cmp.Or(p.root, p.source.User)
	}
	return ""
}

// scan reads the held records of the walk in one shape.
func (p *plan) scan(shape string, limit int) query.RangeScan {
	return query.RangeScan{Source: p.source.Name, Kind: p.kind.Name, Shape: shape, Parent: p.parentOf(), Limit: limit}
}

// under is the plan in the root of a record of the kind above.
func (p *plan) under(root string) *plan {
	in := *p
	in.root = root
	return &in
}

// value fills a path variable: with a part of the root, or with the source's setting.
func (p *plan) value(name string) (string, bool) {
	if i := slices.Index(p.source.Spec.Roots.Vars, name); i >= 0 && p.root != "" {
		return strings.Split(p.root, spec.IDSeparator)[i], true
	}
	return p.source.PathVar(name)
}

// nest finds the kind that the lists lie under.
func (p *plan) nest() error {
	k := p.kind
	if f := k.Field(k.Parent); f != nil && f.Link != "" {
		p.parentKind = p.source.Spec.Kind(f.Link)
	}
	for _, l := range k.Lists {
		if free := p.free(l.Template()); p.parentKind != nil && len(free) == 1 && !l.Demands() {
			p.lists, p.by = append(p.lists, l), append(p.by, free[0])
		}
	}
	if len(p.lists) == 0 {
		return fmt.Errorf("no list of %s can be asked for: the spec does not say under which records they lie", k.Title)
	}
	if above, err := planOf(p.source, p.parentKind, ""); err != nil || above.parentKind != nil {
		return fmt.Errorf("%s lie under %s, which cannot be synced", k.Title, p.parentKind.Title)
	}
	return nil
}

// free are the variables of a path that the source's settings do not fill.
func (p *plan) free(path spec.Template) []string {
	var names []string
	for _, name := range path.Vars() {
		if _, ok := p.value(name); !ok {
			names = append(names, name)
		}
	}
	return names
}

func filterOn(l *spec.List, field, op string) *spec.Filter {
	for _, f := range l.Filters {
		if field != "" && f.Field == field && f.Op == op {
			return f
		}
	}
	return nil
}

// name is the source and kind, as commands write them, and the root.
func (p *plan) name() string {
	name := p.source.Name + "/" + p.kind.Name
	if p.root != "" {
		name += " of " + spelled(p.root)
	}
	return name
}

// sliced reports whether every list can be asked for a stretch of time.
func (p *plan) sliced() bool { return p.since != nil }

// fill puts values into a path's variables, the user where none is given. A value
// that would not be one segment as it is, is refused.
func (p *plan) fill(path spec.Template, values map[string]string) (string, bool) {
	return path.Fill(func(name string) (string, bool) {
		value, given := values[name]
		if !given {
			value, _ = p.value(name)
		}
		return value, value != "" && !strings.ContainsAny(value, "{}/%?#")
	})
}

// page is the first page of a list: under a record when parent is not empty,
// with pages of a size (0: the largest there is), of the clocks in s.
func (p *plan) page(list int, parent string, s interval, size int) (*spec.Target, error) {
	l := p.lists[list]
	values := map[string]string{}
	if p.by != nil {
		values[p.by[list]] = parent
	}
	path, ok := p.fill(l.Template(), values)
	if !ok {
		return nil, fmt.Errorf("walk: %s: %w: path %s of %q", p.name(), understudy.ErrInvalid, l.Path, parent)
	}
	paging := p.source.Spec.PagingOf(l)
	q, _ := l.Everything()
	if s.From != early && p.since != nil {
		q = append(q, understudy.Param{Name: p.since[list].Name, Value: bound(p.since[list], s.From, false)})
	}
	if s.To != late && p.until != nil {
		q = append(q, understudy.Param{Name: p.until[list].Name, Value: bound(p.until[list], s.To, true)})
	}
	if size == 0 || paging.Max > 0 && size > paging.Max {
		size = paging.Max
	}
	if paging.Size != "" && size > 0 {
		q = append(q, understudy.Param{Name: paging.Size, Value: strconv.Itoa(size)})
	}
	return p.source.Spec.Target(p.source.Name, path, q.String())
}

// bound is a clock as a filter takes it. Of a filter that takes days the last
// one is the day after: what "until" a day means differs between APIs.
func bound(f *spec.Filter, clock int64, last bool) string {
	t := time.Unix(clock, 0).UTC()
	switch f.Type {
	case spec.TypeDate:
		if last {
			t = t.AddDate(0, 0, 1)
		}
		return t.Format(time.DateOnly)
	case spec.TypeEpoch, spec.TypeInt:
		return strconv.FormatInt(clock, 10)
	case spec.TypeMillis:
		return strconv.FormatInt(clock*1000, 10)
	}
	return t.Format("2006-01-02T15:04:05Z")
}

// newest is the newest page as the mirror polls it: of the first list, in the
// usual size.
func (p *plan) newest() (*spec.Target, error) {
	path, ok := p.fill(p.lists[0].Template(), nil)
	if !ok || p.parentKind != nil || p.bare || p.lists[0].Unordered {
		return nil, fmt.Errorf("walk: %s: %w: no newest page", p.name(), understudy.ErrInvalid)
	}
	everything, _ := p.lists[0].Everything()
	return p.source.Spec.Target(p.source.Name, path, everything.String())
}

// instance is the path that shows a record in one shape ("": in any); nil when
// the spec has none.
func (p *plan) instance(id, parent, shape string) *spec.Target {
	parts := strings.Split(id, spec.IDSeparator)
	for _, in := range p.kind.Instances {
		if shape != "" && in.Shape != shape || len(in.ID) != len(parts) {
			continue
		}
		values := map[string]string{}
		for i, name := range in.ID {
			values[name] = parts[i]
		}
		for _, name := range p.free(in.Template()) {
			if !slices.Contains(in.ID, name) {
				values[name] = parent
			}
		}
		if path, ok := p.fill(in.Template(), values); ok {
			if t, err := p.source.Spec.Target(p.source.Name, path, ""); err == nil && t.ID == id {
				return t
			}
		}
	}
	return nil
}

// another reports whether a record belongs to a different user or root than the one
// whose lists are walked. A caller read it under the path of the walked user, or another
// walk did. In this walk it does not count as missing and is not fetched.
func (p *plan) another(body []byte) bool {
	if p.parentKind != nil && len(p.source.Roots) > 0 {
		return false // it is walked in all roots
	}
	for name, from := range p.source.Spec.Vars {
		field := p.source.Spec.Shown[name]
		if from != "user" || p.kind.Field(field) == nil || !p.lists[0].Template().Has(name) {
			continue
		}
		v, ok := jsonspan.Find(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)}, field)
		if ok && v.Kind == jsonspan.String && jsonspan.Text(body, v) != cmp.Or(p.root, p.source.User) {
			return true
		}
	}
	return false
}

// shapes are those the lists show, each once.
func (p *plan) shapes() []string {
	var out []string
	for _, l := range p.lists {
		if !slices.Contains(out, l.Shape) {
			out = append(out, l.Shape)
		}
	}
	return out
}

// print says in a few characters how a kind is walked: of whom, by which lists
// and filters, from page to page, and by which clock.
func (p *plan) print() string {
	h := fnv.New64a()
	k := p.kind
	fmt.Fprintf(h, "%q %q %q", k.Clock, k.ID, k.Parent)
	if p.parentKind != nil {
		fmt.Fprintf(h, " under %q by %q", p.parentKind.Name, p.by)
	}
	for i, l := range p.lists {
		fmt.Fprintf(h, " list %q %q %q", l.Path, l.Key, l.Shape)
		way := p.source.Spec.PagingOf(l) // one that led nowhere ended every walk after a page
		fmt.Fprintf(h, " on by %q %q %q %q %q", way.Style, way.Next, way.Cursor, way.Page, way.Tokens)
		if everything, _ := l.Everything(); len(everything) > 0 {
			fmt.Fprintf(h, " with %q", everything.String())
		}
		if way.More+way.Total != "" {
			fmt.Fprintf(h, " %q %q", way.More, way.Total)
		}
		if p.root == "" && slices.ContainsFunc(l.Template().Vars(), func(name string) bool { return p.source.Spec.Vars[name] == "user" }) {
			fmt.Fprintf(h, " of %q", p.source.User)
		}
		if p.sliced() {
			for _, f := range []*spec.Filter{p.since[i], p.until[i]} {
				fmt.Fprintf(h, " %q %q %v %v", f.Name, f.Type, f.Whole, f.Open)
			}
		}
	}
	return strconv.FormatUint(h.Sum64(), 36)
}
