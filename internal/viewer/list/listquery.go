// List query: what the address of a list page asks, checked and made canonical.

package list

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// listQuery is a list page's address, read.
type listQuery struct {
	list   *plan.List
	vars   understudy.Query // path variables given, as the address names them
	back   []string         // queries of the newer pages, "" for the newest
	query  understudy.Query // upstream's parameters, dates in UTC, no empty ones
	lacks  []string         // path variables that are missing; target then is nil
	target *spec.Target
	since  string // which of lastRanges the list is shown by; "": none
	asOf   page.AsOf
	tidy   bool // the address was already in the form address gives
	layout arrangement
}

// readListQuery reads the request's address; an unknown parameter is a problem that
// names it.
func readListQuery(q *page.Exchange) (*listQuery, error) {
	params, err := understudy.ParseQuery(q.R.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	if err := q.Clock.ReadAsOf(params); err != nil {
		return nil, err
	}
	slug, named := params.Get(plan.OwnList)
	ask := &listQuery{list: q.Kind.Pick(slug, params), asOf: q.Clock.AsOf}
	if ask.list == nil {
		return nil, refuseList(q, slug)
	}
	ask.tidy = q.Clock.AsOf.Tidy && (!named || q.Kind.Pick("", params) != ask.list)
	for _, p := range params {
		if err := readParam(q, ask, p); err != nil {
			return nil, err
		}
	}
	if q.Data == "" {
		turnDay(q, ask)
	}
	ask.layout.everywhere = isEverywhere(q, ask)
	for _, name := range ask.list.Needs {
		if !plan.Has(ask.vars, name) && !(ask.layout.everywhere && isRoot(q, name)) {
			ask.lacks = append(ask.lacks, name)
		}
	}
	if len(ask.lacks) > 0 {
		return ask, nil
	}
	path, ok := ask.list.Spec.Template().FillEscaped(ask.value(q.Source))
	if !ok {
		return nil, page.BadRequest("A path variable of this address is empty", "Start again from the list.", nil)
	}
	ask.target, err = q.Source.Spec.Target(q.Source.Name, path, ask.query.String())
	if err != nil {
		return nil, err
	}
	if ask.target.List != ask.list.Spec {
		return nil, page.BadRequest("A path variable of this address names another list", "Start again from the list.", nil)
	}
	return ask, nil
}

// value gives the path variables of a query.
func (ask *listQuery) value(s *plan.Source) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if v, ok := s.PathVar(ask.vars, name); ok || !ask.layout.everywhere {
			return v, ok
		}
		return anyRoot, slices.Contains(s.Spec.Roots.Vars, name)
	}
}

// anyRoot stands in a path for the roots of the source.
const anyRoot = "any"

// isEverywhere reports whether a list that names no root is that of all the source has.
func isEverywhere(q *page.Exchange, ask *listQuery) bool {
	return ask.list.Everywhere() && q.V.Options.Search != nil && ask.asOf.At.IsZero() &&
		!slices.ContainsFunc(ask.vars, func(p understudy.Param) bool { return isRoot(q, strings.TrimPrefix(p.Name, understudy.OwnPrefix)) })
}

// isRoot reports whether a path variable names a root.
func isRoot(q *page.Exchange, name string) bool {
	return slices.Contains(q.Source.Spec.Roots.Vars, name)
}

func refuseList(q *page.Exchange, slug string) error {
	var known []string
	for _, l := range q.Kind.PlannedLists {
		if l.Slug != "" {
			known = append(known, l.Slug)
		}
	}
	return page.UnknownWord("list of "+q.Kind.Spec.Title, slug, known, func(s string) string {
		return q.Kind.Href + "?" + plan.OwnList +
			"=" + s
	})
}

// readParam sorts one parameter of the address into the query.
func readParam(q *page.Exchange, ask *listQuery, p understudy.Param) error {
	paging := ask.list.PagingStyle
	f := ask.list.Spec.Filter(p.Name)
	if taken, err := arrange(q, ask, p); taken {
		return err
	}
	switch {
	case p.Name == plan.OwnList, p.Name == understudy.OwnAsOf:
		return nil
	case p.Name == page.OwnBack:
		ask.back = append(ask.back, p.Value)
		return checkBack(q, ask)
	case ask.list.IsVar(p.Name):
		if p.Value == "" {
			ask.tidy = false
		} else if !plan.Has(ask.vars, p.Name) {
			ask.vars = append(ask.vars, understudy.Param{Name: p.Name, Value: p.Value})
		}
		return nil
	case f == nil && p.Name != paging.Size && !plan.IsPosition(paging, p.Name) || p.Name == "":
		return refuseParam(q, ask, p.Name)
	case p.Value == "": // an input of the form left empty
		ask.tidy = false
		return nil
	case p.Name == paging.Size && p.Value == strconv.Itoa(paging.Default):
		ask.tidy = false
		return nil
	}
	if f != nil && spec.IsTime(f.Type) {
		if at, ok := readAgo(q, f, p.Value); ok {
			p.Value, ask.tidy = at, false
		} else if t, ok := page.ParseLocal(p.Value, q.Clock.Zone); ok {
			p.Value, ask.tidy = page.WriteDate(f.Type, t), false
		}
	}
	for _, r := range lastRanges {
		if f != nil && f.Op == "since" && f.Field == q.Kind.Spec.Clock {
			if at, ok := readAgo(q, f, r.since); ok && at == p.Value {
				ask.since = r.since
			}
		}
	}
	ask.query = append(ask.query, understudy.Param{Name: p.Name, Value: p.Value})
	return nil
}

// readAgo reads a moment before now as page.ParseAgo does, and returns it as a filter takes it.
func readAgo(q *page.Exchange, f *spec.Filter, text string) (at string, ok bool) {
	t, ok := page.ParseAgo(text, q.Clock.Start, q.Clock.Zone)
	if f.Type == spec.TypeDate {
		return t.Format(time.DateOnly), ok
	}
	return page.WriteDate(f.Type, t), ok
}

// checkBack makes sure a remembered position holds nothing but a position: it
// becomes part of a link.
func checkBack(q *page.Exchange, ask *listQuery) error {
	params, err := understudy.ParseQuery(ask.back[len(ask.back)-1])
	if err != nil {
		return err
	}
	for _, p := range params {
		if !plan.IsPosition(ask.list.PagingStyle, p.Name) && p.Name != ownCursor {
			return page.BadRequest(page.OwnBack+" holds "+understudy.Clip(p.Name)+", which is no position in a list",
				"Start again from the newest page.", nil)
		}
	}
	if len(ask.back) > page.MaxBack {
		ask.back = ask.back[1:]
	}
	return nil
}

func refuseParam(q *page.Exchange, ask *listQuery, name string) error {
	known := slices.Clone(ask.list.Needs)
	for i, f := range ask.list.Spec.Filters {
		if q.Rights.Offers(ask.list, i) {
			known = append(known, f.Name)
		}
	}
	paging := ask.list.PagingStyle
	for _, n := range append([]string{paging.Size, paging.Page}, paging.Tokens...) {
		if n != "" && !slices.Contains(known, n) {
			known = append(known, n)
		}
	}
	return page.UnknownWord("parameter", name, append(known, understudy.OwnAsOf, ownColumns, ownText, ownNarrow, ownSort), nil)
}

// turnDay makes a day of the reader's calendar out of a day filter: upstream
// takes a plain date as a day in UTC, so elsewhere the day becomes the moments
// it begins and ends at, under the filters for those.
func turnDay(q *page.Exchange, ask *listQuery) {
	for i, p := range ask.query {
		f := ask.list.Spec.Filter(p.Name)
		if f == nil || f.Op != "day" || !spec.IsTime(f.Type) || f.Type == spec.TypeDate {
			continue
		}
		day, err := understudy.ParseTime(p.Value, q.Clock.Zone, time.DateOnly)
		if err != nil {
			continue
		}
		end := day.AddDate(0, 0, 1)
		if _, a := day.Zone(); a == 0 {
			if _, b := end.Zone(); b == 0 {
				continue // the reader's day is the day in UTC
			}
		}
		since, until := sibling(ask.list, f, "since"), sibling(ask.list, f, "until")
		if since == nil || until == nil || plan.Has(ask.query, since.Name) || plan.Has(ask.query, until.Name) {
			continue
		}
		ask.tidy = false
		ask.query = slices.Replace(slices.Clone(ask.query), i, i+1,
			understudy.Param{Name: since.Name, Value: page.WriteDate(f.Type, day)},
			understudy.Param{Name: until.Name, Value: page.WriteDate(f.Type, end.Add(-time.Second))})
		return
	}
}

// address is the viewer's address of a query with another position: query
// holds upstream's parameters, back the newer pages.
func (ask *listQuery) address(suffix string, query understudy.Query, back []string) string {
	own := append(ask.layout.params(), ask.asOf.Param()...)
	for _, b := range back[max(0, len(back)-page.MaxBack):] {
		own = append(own, understudy.Param{Name: page.OwnBack, Value: b})
	}
	return ask.list.Address(suffix, slices.Concat(ask.vars, query), own)
}

// sibling is the filter of a list on the same field with another meaning.
func sibling(l *plan.List, f *spec.Filter, op string) *spec.Filter {
	for _, other := range l.Spec.Filters {
		if other.Op == op && other.Field == f.Field && other.Field != "" {
			return other
		}
	}
	return nil
}
