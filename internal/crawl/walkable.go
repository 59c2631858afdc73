// This file decides which lists of a kind can be walked, and how their pages are requested.

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

// plan says how the records of one kind are found. It never changes.
type plan struct {
	source *spec.Source
	kind   *spec.Kind
	lists  []*spec.List
	// root is the root of the kind's lists, "" for the root of the source's user. rootsOnly is true if the lists
	// lie only under roots and no root is given.
	root      string
	rootsOnly bool
	// parentKind is the kind under whose records the lists lie, if no list can be requested without a parent record.
	parentKind *spec.Kind
	parentVars []string // the variable of each list that names the parent
	// since and until are the filters on the kind's clock, by list. They are nil if not every list has both.
	since, until []*spec.Filter
}

// newPlan returns how a kind is walked in a root; "" is the root of the source's user. The error tells a person why
// the kind cannot be walked.
func newPlan(src *spec.Source, k *spec.Kind, root string) (*plan, error) {
	p := &plan{source: src, kind: k, root: root}
	if len(k.ID) == 0 {
		return nil, fmt.Errorf("%s have no ids, so they are stored only as whole pages", k.Title)
	}
	for _, l := range k.Lists {
		if free := p.freeVars(l.Template()); len(free) == 0 && !l.HasRequiredFilter() && (root == "" || p.hasRoot(l)) {
			p.lists = append(p.lists, l)
		}
	}
	if len(p.lists) == 0 {
		if err := p.findRootLists(); err != nil {
			return p, err
		}
		if len(p.lists) == 0 {
			return p, p.findParent()
		}
	}
	for _, l := range p.lists {
		s, u := findFilter(l, k.Clock, "since"), findFilter(l, k.Clock, "until")
		if s == nil || u == nil {
			p.since, p.until = nil, nil
			break
		}
		p.since, p.until = append(p.since, s), append(p.until, u)
	}
	return p, nil
}

// findRootLists finds the lists of the kind that lie only under roots.
func (p *plan) findRootLists() error {
	roots := &p.source.Spec.Roots
	for _, l := range p.kind.Lists {
		outside := slices.DeleteFunc(p.freeVars(l.Template()), func(name string) bool { return slices.Contains(roots.Vars, name) })
		if len(outside) == 0 && !l.HasRequiredFilter() {
			p.lists, p.rootsOnly = append(p.lists, l), true
		}
	}
	switch {
	case !p.rootsOnly:
		return nil
	case !p.isRooted():
		return fmt.Errorf("the spec does not say to which of the %s the %s belong (root)", roots.Kind, p.kind.Title)
	case len(p.source.Roots) == 0:
		return fmt.Errorf("%s belong to %s, and the source names none: set its covers", p.kind.Title, p.source.Spec.Kind(roots.Kind).Title)
	}
	return nil
}

// hasRoot reports whether the path of a list lies under a root.
func (p *plan) hasRoot(l *spec.List) bool {
	return slices.ContainsFunc(p.source.Spec.Roots.Vars, l.Template().Has)
}

// isRooted reports whether the kind's records say which root they belong to, so that each root can be walked separately.
func (p *plan) isRooted() bool {
	return p.parentKind == nil && p.source.Spec.RootField(p.kind) != "" && slices.ContainsFunc(p.lists, p.hasRoot)
}

// storedParent returns the parent under which the walk's records are stored, or "" if there is only one.
func (p *plan) storedParent() string {
	switch {
	case p.kind.Root != "":
		return p.root
	case p.kind.Parent == "" && p.kind.ParentRule() != "":
		return cmp.Or(p.root, p.source.User)
	}
	return ""
}

// scan returns the query for the stored records of the walk in one shape.
func (p *plan) scan(shape string, limit int) query.RangeScan {
	return query.RangeScan{Source: p.source.Name, Kind: p.kind.Name, Shape: shape, Parent: p.storedParent(), Limit: limit}
}

// varValue returns the value of a path variable: a part of the root, or the source's setting.
func (p *plan) varValue(name string) (string, bool) {
	if i := slices.Index(p.source.Spec.Roots.Vars, name); i >= 0 && p.root != "" {
		return strings.Split(p.root, spec.IDSeparator)[i], true
	}
	return p.source.PathVar(name)
}

// findParent finds the kind that the lists lie under.
func (p *plan) findParent() error {
	k := p.kind
	if f := k.Field(k.Parent); f != nil && f.Link != "" {
		p.parentKind = p.source.Spec.Kind(f.Link)
	}
	for _, l := range k.Lists {
		if free := p.freeVars(l.Template()); p.parentKind != nil && len(free) == 1 && !l.HasRequiredFilter() {
			p.lists, p.parentVars = append(p.lists, l), append(p.parentVars, free[0])
		}
	}
	if len(p.lists) == 0 {
		return fmt.Errorf("no list of %s can be requested: the spec does not say which records they belong to", k.Title)
	}
	if above, err := newPlan(p.source, p.parentKind, ""); err != nil || above.parentKind != nil {
		return fmt.Errorf("%s belong to %s, which cannot be synced", k.Title, p.parentKind.Title)
	}
	return nil
}

// freeVars returns the variables of a path that the source's settings do not set.
func (p *plan) freeVars(path spec.Template) []string {
	var names []string
	for _, name := range path.Vars() {
		if _, ok := p.varValue(name); !ok {
			names = append(names, name)
		}
	}
	return names
}

func findFilter(l *spec.List, field, op string) *spec.Filter {
	for _, f := range l.Filters {
		if field != "" && f.Field == field && f.Op == op {
			return f
		}
	}
	return nil
}

// name returns the source, the kind and the root, as commands write them.
func (p *plan) name() string {
	name := p.source.Name + "/" + p.kind.Name
	if p.root != "" {
		name += " of " + rootText(p.root)
	}
	return name
}

// isSliced reports whether every list can be requested for a time range.
func (p *plan) isSliced() bool { return p.since != nil }

// fill fills the variables of a path with values. A variable without a value gets the source's setting. fill
// refuses values that would change the path's segments.
func (p *plan) fill(path spec.Template, values map[string]string) (string, bool) {
	return path.Fill(func(name string) (string, bool) {
		value, given := values[name]
		if !given {
			value, _ = p.varValue(name)
		}
		return value, value != "" && !strings.ContainsAny(value, "{}/%?#")
	})
}

// buildTarget returns the first page of a list, for the clocks in s. The list lies under a parent record if parent
// is not empty. size is the page size; 0 means the largest.
func (p *plan) buildTarget(list int, parent string, s interval, size int) (*spec.Target, error) {
	l := p.lists[list]
	values := map[string]string{}
	if p.parentVars != nil {
		values[p.parentVars[list]] = parent
	}
	path, ok := p.fill(l.Template(), values)
	if !ok {
		return nil, fmt.Errorf("walk: %s: %w: path %s of %q", p.name(), understudy.ErrInvalid, l.Path, parent)
	}
	paging := p.source.Spec.PagingOf(l)
	q, _ := l.UnfilteredQuery()
	if s.From != minClock && p.since != nil {
		q = append(q, understudy.Param{Name: p.since[list].Name, Value: filterValue(p.since[list], s.From, false)})
	}
	if s.To != maxClock && p.until != nil {
		q = append(q, understudy.Param{Name: p.until[list].Name, Value: filterValue(p.until[list], s.To, true)})
	}
	if size == 0 || paging.Max > 0 && size > paging.Max {
		size = paging.Max
	}
	if paging.Size != "" && size > 0 {
		q = append(q, understudy.Param{Name: paging.Size, Value: strconv.Itoa(size)})
	}
	return p.source.Spec.Resolve(p.source.Name, path, q.String())
}

// filterValue returns a clock in the format of a filter. For a filter on days, the last day is the day after,
// because APIs differ on whether "until" includes the day.
func filterValue(f *spec.Filter, clock int64, last bool) string {
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

// buildNewestTarget returns the newest page as the mirror polls it: the first page of the first list, with the
// default size.
func (p *plan) buildNewestTarget() (*spec.Target, error) {
	path, ok := p.fill(p.lists[0].Template(), nil)
	if !ok || p.parentKind != nil || p.rootsOnly || p.lists[0].Unordered {
		return nil, fmt.Errorf("walk: %s: %w: no newest page", p.name(), understudy.ErrInvalid)
	}
	everything, _ := p.lists[0].UnfilteredQuery()
	return p.source.Spec.Resolve(p.source.Name, path, everything.String())
}

// instanceTarget returns the path of a record in one shape ("" means any), or nil if the spec has none.
func (p *plan) instanceTarget(id, parent, shape string) *spec.Target {
	parts := strings.Split(id, spec.IDSeparator)
	for _, in := range p.kind.Instances {
		if shape != "" && in.Shape != shape || len(in.ID) != len(parts) {
			continue
		}
		values := map[string]string{}
		for i, name := range in.ID {
			values[name] = parts[i]
		}
		for _, name := range p.freeVars(in.Template()) {
			if !slices.Contains(in.ID, name) {
				values[name] = parent
			}
		}
		if path, ok := p.fill(in.Template(), values); ok {
			if t, err := p.source.Spec.Resolve(p.source.Name, path, ""); err == nil && t.ID == id {
				return t
			}
		}
	}
	return nil
}

// isForeign reports whether a record belongs to a user or root other than the walked one. A caller or another walk
// has fetched the record. This walk neither misses nor fetches it.
func (p *plan) isForeign(body []byte) bool {
	if p.parentKind != nil && len(p.source.Roots) > 0 {
		return false // the kind is walked in all roots, so no record is foreign
	}
	for name, from := range p.source.Spec.Vars {
		field := p.source.Spec.VarFields[name]
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

// shapes returns the distinct shapes of records that the lists show.
func (p *plan) shapes() []string {
	var out []string
	for _, l := range p.lists {
		if !slices.Contains(out, l.Shape) {
			out = append(out, l.Shape)
		}
	}
	return out
}

// fingerprint returns a hash of how a kind is walked: the user, the lists, their filters and paging, and the clock.
func (p *plan) fingerprint() string {
	h := fnv.New64a()
	k := p.kind
	fmt.Fprintf(h, "%q %q %q", k.Clock, k.ID, k.Parent)
	if p.parentKind != nil {
		fmt.Fprintf(h, " under %q by %q", p.parentKind.Name, p.parentVars)
	}
	for i, l := range p.lists {
		fmt.Fprintf(h, " list %q %q %q", l.Path, l.Key, l.Shape)
		way := p.source.Spec.PagingOf(l) // the paging counts, because a list with wrong paging ended after one page
		fmt.Fprintf(h, " on by %q %q %q %q %q", way.Style, way.Next, way.Cursor, way.Page, way.Tokens)
		if everything, _ := l.UnfilteredQuery(); len(everything) > 0 {
			fmt.Fprintf(h, " with %q", everything.String())
		}
		if way.More+way.Total != "" {
			fmt.Fprintf(h, " %q %q", way.More, way.Total)
		}
		if p.root == "" && slices.ContainsFunc(l.Template().Vars(), func(name string) bool { return p.source.Spec.Vars[name] == "user" }) {
			fmt.Fprintf(h, " of %q", p.source.User)
		}
		if p.isSliced() {
			for _, f := range []*spec.Filter{p.since[i], p.until[i]} {
				fmt.Fprintf(h, " %q %q %v %v", f.Name, f.Type, f.WholePeriod, f.Exclusive)
			}
		}
	}
	return strconv.FormatUint(h.Sum64(), 36)
}
