// The address of a list: how it is parsed, checked, and rewritten to the viewer's own form.

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

// listQuery is the parsed address of a list.
type listQuery struct {
	list        *plan.List
	vars        understudy.Query // the values of the path variables in the address
	back        []string         // the parameters of the newer pages that the reader has visited; "" stands for the newest page
	query       understudy.Query // upstream's parameters without empty values; times are converted to UTC
	missing     []string         // the names of path variables that the address lacks; if there are any, target is nil
	target      *spec.Target
	since       string // the item of lastRanges that the address selects, such as "-7d"; else empty
	asOf        page.AsOf
	isCanonical bool // whether the address is written in the viewer's own form, so that no redirect is needed
	arrangement arrangement
}

// readListQuery parses the address of a request. An unknown parameter causes an error that names it.
func readListQuery(q *page.Exchange) (*listQuery, error) {
	params, err := understudy.ParseQuery(q.R.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	if err := q.Clock.ReadAsOf(params); err != nil {
		return nil, err
	}
	slug, named := params.Get(plan.OwnList)
	ask := &listQuery{list: q.Kind.FindList(slug, params), asOf: q.Clock.AsOf}
	if ask.list == nil {
		return nil, refuseList(q, slug)
	}
	ask.isCanonical = q.Clock.AsOf.IsCanonical && (!named || q.Kind.FindList("", params) != ask.list)
	for _, p := range params {
		if err := readParam(q, ask, p); err != nil {
			return nil, err
		}
	}
	if q.DataFormat == "" {
		replaceDayFilter(q, ask)
	}
	ask.arrangement.everywhere = isEverywhere(q, ask)
	for _, name := range ask.list.Needs {
		if !plan.HasParam(ask.vars, name) && !(ask.arrangement.everywhere && isRoot(q, name)) {
			ask.missing = append(ask.missing, name)
		}
	}
	if len(ask.missing) > 0 {
		return ask, nil
	}
	path, ok := ask.list.Spec.Template().FillEscaped(ask.value(q.Source))
	if !ok {
		return nil, page.NewBadRequest("This address is incomplete", "Start again from the list.", nil)
	}
	ask.target, err = q.Source.Spec.Resolve(q.Source.Name, path, ask.query.String())
	if err != nil {
		return nil, err
	}
	if ask.target.List != ask.list.Spec {
		return nil, page.NewBadRequest("This address belongs to another list", "Start again from the list.", nil)
	}
	return ask, nil
}

// value returns a function that returns the value of a path variable.
func (ask *listQuery) value(s *plan.Source) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if v, ok := s.PathVar(ask.vars, name); ok || !ask.arrangement.everywhere {
			return v, ok
		}
		return anyRootSegment, slices.Contains(s.Spec.Roots.Vars, name)
	}
}

// anyRootSegment stands in a path for the root, such as the account, if the list is of all roots.
const anyRootSegment = "any"

// isEverywhere reports whether the list shows the records of all roots, such as all accounts, because its address names none.
func isEverywhere(q *page.Exchange, ask *listQuery) bool {
	return ask.list.IsAcrossRoots() && q.V.Options.Search != nil && ask.asOf.At.IsZero() &&
		!slices.ContainsFunc(ask.vars, func(p understudy.Param) bool { return isRoot(q, strings.TrimPrefix(p.Name, understudy.OwnPrefix)) })
}

// isRoot reports whether the value of a path variable is a root of the source, such as an account.
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
	return page.NewUnknownWord("list of "+q.Kind.Spec.Title, slug, known, func(s string) string {
		return q.Kind.Href + "?" + plan.OwnList +
			"=" + s
	})
}

// readParam adds one parameter of the address to the parsed query.
func readParam(q *page.Exchange, ask *listQuery, p understudy.Param) error {
	paging := ask.list.PagingStyle
	f := ask.list.Spec.Filter(p.Name)
	if taken, err := readArrangement(q, ask, p); taken {
		return err
	}
	switch {
	case p.Name == plan.OwnList, p.Name == understudy.OwnAsOf:
		return nil
	case p.Name == page.ParamBack:
		ask.back = append(ask.back, p.Value)
		return checkBack(ask)
	case ask.list.IsVar(p.Name):
		if p.Value == "" {
			ask.isCanonical = false
		} else if !plan.HasParam(ask.vars, p.Name) {
			ask.vars = append(ask.vars, understudy.Param{Name: p.Name, Value: p.Value})
		}
		return nil
	case f == nil && p.Name != paging.Size && !plan.IsPosition(paging, p.Name) || p.Name == "":
		return refuseParam(q, ask, p.Name)
	case p.Value == "": // the parameter comes from an empty input of the form
		ask.isCanonical = false
		return nil
	case p.Name == paging.Size && p.Value == strconv.Itoa(paging.Default):
		ask.isCanonical = false
		return nil
	}
	if f != nil && spec.IsTimeType(f.Type) {
		if at, ok := readAgo(q, f, p.Value); ok {
			p.Value, ask.isCanonical = at, false
		} else if t, ok := page.ParseLocal(p.Value, q.Clock.Zone); ok {
			p.Value, ask.isCanonical = page.WriteDate(f.Type, t), false
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

// readAgo parses a relative moment such as "-7d" (see page.ParseRelative) and returns it as the value of a filter.
func readAgo(q *page.Exchange, f *spec.Filter, text string) (at string, ok bool) {
	t, ok := page.ParseRelative(text, q.Clock.Start, q.Clock.Zone)
	if f.Type == spec.TypeDate {
		return t.Format(time.DateOnly), ok
	}
	return page.WriteDate(f.Type, t), ok
}

// checkBack returns an error if the last parameter ParamBack contains anything but a position. It becomes part of a link.
func checkBack(ask *listQuery) error {
	params, err := understudy.ParseQuery(ask.back[len(ask.back)-1])
	if err != nil {
		return err
	}
	for _, p := range params {
		if !plan.IsPosition(ask.list.PagingStyle, p.Name) && p.Name != paramCursor {
			return page.NewBadRequest(page.ParamBack+" contains "+understudy.Clip(p.Name)+", which is not a position in a list",
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
		if q.Rights.CanFilter(ask.list, i) {
			known = append(known, f.Name)
		}
	}
	paging := ask.list.PagingStyle
	for _, n := range append([]string{paging.Size, paging.Page}, paging.Tokens...) {
		if n != "" && !slices.Contains(known, n) {
			known = append(known, n)
		}
	}
	return page.NewUnknownWord("parameter", name, append(known, understudy.OwnAsOf, paramColumns, paramText, paramNarrow, paramSort), nil)
}

// replaceDayFilter replaces a filter for a day by filters for the start and the end of that day in the reader's zone.
// Upstream would take a date as a day in UTC.
func replaceDayFilter(q *page.Exchange, ask *listQuery) {
	for i, p := range ask.query {
		f := ask.list.Spec.Filter(p.Name)
		if f == nil || f.Op != "day" || !spec.IsTimeType(f.Type) || f.Type == spec.TypeDate {
			continue
		}
		day, err := understudy.ParseTime(p.Value, q.Clock.Zone, time.DateOnly)
		if err != nil {
			continue
		}
		end := day.AddDate(0, 0, 1)
		if _, a := day.Zone(); a == 0 {
			if _, b := end.Zone(); b == 0 {
				continue // the reader's zone is UTC on this day, so upstream's filter means the same day
			}
		}
		since, until := findSiblingFilter(ask.list, f, "since"), findSiblingFilter(ask.list, f, "until")
		if since == nil || until == nil || plan.HasParam(ask.query, since.Name) || plan.HasParam(ask.query, until.Name) {
			continue
		}
		ask.isCanonical = false
		ask.query = slices.Replace(slices.Clone(ask.query), i, i+1,
			understudy.Param{Name: since.Name, Value: page.WriteDate(f.Type, day)},
			understudy.Param{Name: until.Name, Value: page.WriteDate(f.Type, end.Add(-time.Second))})
		return
	}
}

// address returns the address of this list with upstream's parameters in query. back has the positions of the newer
// pages. suffix may be that of a data format.
func (ask *listQuery) address(suffix string, query understudy.Query, back []string) string {
	own := append(ask.arrangement.params(), ask.asOf.Param()...)
	for _, b := range back[max(0, len(back)-page.MaxBack):] {
		own = append(own, understudy.Param{Name: page.ParamBack, Value: b})
	}
	return ask.list.Address(suffix, slices.Concat(ask.vars, query), own)
}

// findSiblingFilter returns the list's filter for the same field with another comparison. It returns nil if there is none.
func findSiblingFilter(l *plan.List, f *spec.Filter, op string) *spec.Filter {
	for _, other := range l.Spec.Filters {
		if other.Op == op && other.Field == f.Field && other.Field != "" {
			return other
		}
	}
	return nil
}
