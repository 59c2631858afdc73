// Facet: how many records there are of each value, and the way to those alone.

package viewer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy"
)

// mostValues is how many values of a facet are shown at first.
const mostValues = 6

// facet is the values of one field with their counts.
type facet struct {
	Title  string
	Values []facetValue
	Rest   []facetValue // folded away
	More   bool         // there are others, which were not counted
}

type facetValue struct {
	Text    string
	Href    string
	Count   string
	AtLeast bool
	Set     bool // the page shows these alone; Href leads to all
}

// facets are a result's, in words. set says whether a value is picked already,
// and where picking it, or letting go of it, leads.
func (q *visit) facets(r *understudy.SearchResult, k *kindPlan, pick func(f understudy.SearchFacet, v understudy.SearchValue) (href string, set bool)) []facet {
	var all []facet
	months := 0 // they come before the days
	for _, f := range r.Facets {
		if len(f.Values) == 0 || f.Name == "kind" && k != nil || f.Name == "day" && months > 1 {
			continue // days are of use within a month
		}
		if f.Name == "month" {
			months = len(f.Values)
		}
		out := facet{Title: q.facetTitle(f.Name, k), More: f.More}
		for _, v := range f.Values {
			href, set := pick(f, v)
			shown := facetValue{Text: q.facetText(f.Name, v.Value), Href: href, Count: thousands(v.Count.N), AtLeast: v.Count.AtLeast, Set: set}
			if len(out.Values) < mostValues || set {
				out.Values = append(out.Values, shown)
			} else {
				out.Rest = append(out.Rest, shown)
			}
		}
		all = append(all, out)
	}
	return all
}

func (q *visit) facetTitle(name string, k *kindPlan) string {
	for _, s := range q.v.sources {
		for _, other := range s.kinds {
			if c := other.byField[name]; c != nil && (k == nil || other == k) {
				return c.heading
			}
		}
	}
	return upperFirst(spell(name))
}

func (q *visit) facetText(name, value string) string {
	switch name {
	case "kind":
		for _, s := range q.v.sources {
			if k := s.byName[value]; k != nil {
				return upperFirst(k.Title)
			}
		}
	case "day":
		if t, err := time.Parse(time.DateOnly, value); err == nil {
			return t.Format("2 Jan 2006")
		}
	case "month":
		if t, err := time.Parse("2006-01", value); err == nil {
			return t.Format("Jan 2006")
		}
	}
	if value == "" {
		return "none"
	}
	return clip(value)
}

// listFacets are those of a list. A value is picked by upstream's own filter
// where it has one, so that the list stays upstream's; else by a condition.
func (q *visit) listFacets(ask *question, r *understudy.SearchResult) []facet {
	return q.facets(r, q.kind, func(f understudy.SearchFacet, v understudy.SearchValue) (string, bool) {
		at := *ask
		at.cursor, at.back = "", nil
		if flt := q.filterBy(ask.list, f.Name); flt != nil && v.Value != "" {
			rest := ask.filters().Without(func(p understudy.Param) bool { return p.Name == flt.Name })
			if was, set := ask.query.Get(flt.Name); set && was == v.Value {
				return at.address(q.kind, "", rest, nil), true
			}
			return at.address(q.kind, "", append(rest, understudy.Param{Name: flt.Name, Value: v.Value}), nil), false
		}
		var set bool
		at.narrow, set = toggled(ask.narrow, v.Term)
		return at.address(q.kind, "", ask.filters(), nil), set
	})
}

// toggled adds a term, or takes it away when it is there.
func toggled(terms []string, term string) (changed []string, set bool) {
	if i := slices.Index(terms, term); i >= 0 {
		return slices.Delete(slices.Clone(terms), i, i+1), true
	}
	return append(slices.Clone(terms), term), false
}

// filterBy is upstream's filter for one value of a field, if the caller may use it.
func (q *visit) filterBy(l *listPlan, field string) *understudy.Filter {
	for i, f := range l.Filters {
		if f.Field == field && (f.Op == "" || f.Op == "is") && q.offers(l, i) {
			return f
		}
	}
	return nil
}

// filters are a question's parameters less its place in the list.
func (ask *question) filters() understudy.Query {
	return ask.query.Without(func(p understudy.Param) bool { return isPosition(ask.list.paging, p.Name) })
}

// counts are a page's facets: there at once, or where to have them.
type counts struct {
	Facets []facet
	Total  string
	Late   string              // the page that waits for them
	few    func(rows int) bool // whether they are fewer than the rows of a page; nil: not counted
}

// counting counts the matches of a search beside the reading of a page. wait has
// what is there when the page is otherwise ready; patient waits for all of it. end
// stops it and waits for its end.
func (q *visit) counting(search understudy.SearchAsk, patient bool) (wait func() *understudy.SearchResult, end func()) {
	search.Facets, search.Limit, search.Cursor, search.Sort = true, 1, "", ""
	ctx, cancel := context.WithTimeout(q.ctx, glance)
	came := make(chan *understudy.SearchResult, 1)
	go func() {
		var r *understudy.SearchResult
		if err := contain(func() (err error) { r, err = q.v.Search.Find(ctx, q.caller, search); return err }); err != nil && ctx.Err() == nil && syntaxOf(err) == nil && !errors.Is(err, understudy.ErrIndexing) && !errors.Is(err, understudy.ErrUnavailable) { // without them the page says how to ask again
			q.v.Logger.WarnContext(ctx, "viewer: counts beside a page", "error", err)
		}
		came <- r
	}()
	over := false
	wait = func() (r *understudy.SearchResult) {
		late := time.NewTimer(patience)
		defer late.Stop()
		if patient {
			late.Stop() // the search's own time bounds it, and ctx
		}
		select {
		case r = <-came:
			over = true
		case <-late.C:
		}
		return r
	}
	return wait, func() {
		cancel()
		if !over {
			<-came
		}
	}
}

// listCounting is counting for a list; of one that cannot be searched nothing is
// counted.
func (q *visit) listCounting(ask *question) (wait func() counts, end func()) {
	if !q.findable() || q.data != "" || !q.asOf.at.IsZero() {
		return func() counts { return counts{} }, func() {}
	}
	search, err := q.searchAsk(ask)
	if err != nil {
		return func() counts { return counts{} }, func() {}
	}
	result, end := q.counting(search, ask.counted)
	return func() counts {
		r := result()
		if r == nil {
			return counts{Late: q.addressAnd(ownFacets)}
		}
		c := counts{Facets: q.listFacets(ask, r), Total: totalOf(r)}
		if r.Total.N == 0 {
			c.Total = "" // the page says that there is nothing
		}
		c.few = func(rows int) bool { return r.Total.N < int64(rows) }
		return c
	}, end
}

// beside is c beside a page of so many rows: what was counted before they came is
// counted again, once.
func (c counts) beside(rows int, q *visit, ask *question) counts {
	switch {
	case c.few == nil || !c.few(rows):
		return c
	case ask.counted:
		return counts{}
	}
	return counts{Late: q.addressAnd(ownFacets)}
}

// partHeader asks for a part of a page: what came late is fetched without the
// rows that are there already.
const (
	partHeader = "Understudy-Part"
	partCounts = "counts"
)

// Totals, as a list and a search say them.
const (
	listTotal   = " of %s held"
	searchTotal = "%s found"
)

// partial reports whether the counts alone are asked for.
func (q *visit) partial() bool { return q.r.Header.Get(partHeader) == partCounts }

// sendCounts answers with the counts of a page alone.
func (q *visit) sendCounts(c counts, total string) error {
	if c.Total != "" {
		c.Total = fmt.Sprintf(total, c.Total)
	}
	return q.renderPart("list", "counts", c)
}

// addressAnd is the address at hand with one more parameter set.
func (q *visit) addressAnd(name string) string {
	params, err := understudy.ParseQuery(q.r.URL.RawQuery)
	if err != nil {
		return ""
	}
	return q.r.URL.EscapedPath() + withQuery(append(params.Without(func(p understudy.Param) bool { return p.Name == name }), understudy.Param{Name: name, Value: "1"}))
}

// totalOf is how many matches there are, in words; "" when nobody counted.
func totalOf(r *understudy.SearchResult) string {
	switch {
	case r == nil || r.Total == nil:
		return ""
	case r.Total.AtLeast:
		return "at least " + thousands(r.Total.N)
	}
	return thousands(r.Total.N)
}

// foundNotes say how a result came about, for whoever reads it.
func (q *visit) foundNotes(r *understudy.SearchResult, s *sourcePlan, k *kindPlan) []string {
	notes := slices.Clone(r.Notes)
	if k == nil || !q.v.Gate.Counts(q.caller, s.Name, k.Name) {
		return notes
	}
	if held := q.v.snapshots.of(q, s).Kinds[k.Name]; !held.Complete {
		note := k.Title + " are not all held here; those that are were looked at"
		if held.Why != "" {
			note += " (" + strings.TrimSuffix(held.Why, ".") + ")"
		}
		notes = append(notes, note+".")
	}
	return notes
}
