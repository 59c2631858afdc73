// Facets: for each value of a field, the number of records with it, and a link to these records.

package list

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// maxFacetValues is the number of values that a facet shows before a click on "more".
const maxFacetValues = 6

// facet shows the values of one field with the number of records of each value.
type facet struct {
	Title      string
	Values     []facetValue
	MoreValues []facetValue // further values, which the page shows after a click
	HasMore    bool         // whether there are still more values, which the search did not count
}

type facetValue struct {
	Text     string
	Href     string
	Count    string
	AtLeast  bool
	Selected bool // whether the page shows only records with this value; Href then leads back to all values
}

// makeFacets returns the facets of a search result. pick reports whether a value is selected. It also returns the
// address that selects the value, or that removes the selection.
func makeFacets(q *page.Exchange, r *query.SearchResult, k *plan.Kind,
	pick func(f query.SearchFacet, v query.SearchValue) (href string, set bool)) []facet {
	var all []facet
	months := 0 // the facet of months stands before the facet of days in the result
	for _, f := range r.Facets {
		if len(f.Values) == 0 || f.Name == "kind" && k != nil || f.Name == "day" && months > 1 {
			continue // if there is more than one month, days are too many to be useful
		}
		if f.Name == "month" {
			months = len(f.Values)
		}
		out := facet{Title: plan.UpperFirst(q.V.FieldTitle(f.Name, k)), HasMore: f.More}
		for _, v := range f.Values {
			href, set := pick(f, v)
			shown := facetValue{Text: q.V.FormatValue(f.Name, v.Value, k), Href: href, Count: page.Thousands(v.N),
				AtLeast: v.AtLeast, Selected: set}
			if len(out.Values) < maxFacetValues || set {
				out.Values = append(out.Values, shown)
			} else {
				out.MoreValues = append(out.MoreValues, shown)
			}
		}
		all = append(all, out)
	}
	return all
}

// facetConditionPattern matches the condition that a click on a facet adds: the name of a field and one value.
var facetConditionPattern = regexp.MustCompile(`^([\pL\pN_.]+)[=:](?:([\pL\pN_.+-]+)|"([^"\\]*)")$`)

// showCondition returns the condition that a facet added in words: the title of the field, and the value.
func showCondition(q *page.Exchange, term string, k *plan.Kind) (label, text string) {
	m := facetConditionPattern.FindStringSubmatch(term)
	if m == nil {
		return "Only", term
	}
	name, value := m[1], m[2]+m[3]
	if name == "date" {
		name = map[int]string{len("2006-01"): "month", len(time.DateOnly): "day"}[len(value)]
	}
	return plan.UpperFirst(q.V.FieldTitle(cmp.Or(name, m[1]), k)), q.V.FormatValue(name, value, k)
}

// listFacets returns the facets of a list. A click on a value uses upstream's own filter if there is one, so that
// upstream's list stays in use. Otherwise it adds a search condition.
func (lv listing) listFacets(r *query.SearchResult) []facet {
	return makeFacets(lv.q, r, lv.q.Kind, func(f query.SearchFacet, v query.SearchValue) (string, bool) {
		at := *lv.ask
		at.arrangement.cursor, at.back = "", nil
		if flt := findFilter(lv.q, lv.ask.list, f.Name); flt != nil && v.Value != "" {
			rest := lv.ask.filters().Remove(func(p understudy.Param) bool { return p.Name == flt.Name })
			if was, set := lv.ask.query.Get(flt.Name); set && was == v.Value {
				return at.address("", rest, nil), true
			}
			return at.address("", append(rest, understudy.Param{Name: flt.Name, Value: v.Value}), nil), false
		}
		var set bool
		at.arrangement.narrow, set = toggleTerm(lv.ask.arrangement.narrow, v.Term)
		return at.address("", lv.ask.filters(), nil), set
	})
}

// toggleTerm adds a term to the terms, or removes it if they already contain it. set is true if it was added.
func toggleTerm(terms []string, term string) (changed []string, set bool) {
	if i := slices.Index(terms, term); i >= 0 {
		return slices.Delete(slices.Clone(terms), i, i+1), true
	}
	return append(slices.Clone(terms), term), false
}

// findFilter returns upstream's filter that accepts one value of a field. It returns nil if there is none that the
// caller may use.
func findFilter(q *page.Exchange, l *plan.List, field string) *spec.Filter {
	for i, f := range l.Spec.Filters {
		if f.Field == field && (f.Op == "" || f.Op == "is") && q.Rights.CanFilter(l, i) {
			return f
		}
	}
	return nil
}

// filters returns the parameters of the address without the position of the page in the list.
func (ask *listQuery) filters() understudy.Query {
	return ask.query.Remove(func(p understudy.Param) bool { return plan.IsPosition(ask.list.PagingStyle, p.Name) })
}

// counts are the facets of a page and the number of its records, as far as they are known.
type counts struct {
	Facets  []facet
	Total   string // the number of records in words; empty if they were not counted
	Late    bool   // whether the facets are sent later than the head of the page, which would otherwise show the total
	Problem string // a sentence that says why the records were not counted; empty if they were
}

// counter counts the records that a search finds, in the background of a page.
type counter struct {
	Future *page.Future
	result *query.SearchResult // the counted result, set before Future ends; nil if counting failed
}

// startCount starts to count the records that a search finds. rows, which may be nil, receives the number of rows on
// the page. If that is more than were counted, records were stored in between, and startCount counts again.
func startCount(q *page.Exchange, search query.SearchRequest, rows <-chan int) *counter {
	search.Facets, search.CountOnly, search.Limit, search.Cursor, search.Sort = true, true, 0, "", ""
	c := &counter{}
	c.Future = q.Tasks.Begin("counts by value", q.V.PartTimeout, func(ctx context.Context) (err error) {
		if c.result, err = q.V.Options.Search.Find(ctx, q.Rights.Caller, search); err != nil || rows == nil {
			return err
		}
		select {
		case n := <-rows:
			if c.result.Total != nil && c.result.Total.N < int64(n) {
				c.result, err = q.V.Options.Search.Find(ctx, q.Rights.Caller, search)
			}
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return c
}

// startListCount starts to count the records of a list. It returns nil if the conditions of the list cannot be searched for.
func (lv listing) startListCount(rows <-chan int) *counter {
	if lv.q.V.Options.Search == nil || lv.q.DataFormat != "" || !lv.q.Clock.AsOf.At.IsZero() {
		return nil
	}
	search, err := lv.makeSearch()
	if err != nil {
		return nil
	}
	return startCount(lv.q, search, rows)
}

// makeCounts returns the number of records if it is already known, and the part of the page that shows the facets. The HTML of
// the facets is cached by the counted values. total is a format string for the number of records. c may be nil.
func makeCounts(q *page.Exchange, name string, c *counter, total string, facets func(*query.SearchResult) []facet,
) (held counts, p *page.Parts) {
	if c == nil {
		return counts{}, nil
	}
	late := false
	said := func() string {
		// the page of an empty list says so elsewhere
		if n := totalText(c.result); n != "" && (name != "list" || c.result.Total.N > 0) {
			return fmt.Sprintf(total, n)
		}
		return ""
	}
	drawn := func() counts {
		switch err := c.Future.Err; {
		case err == nil, page.FindSyntaxError(err) != nil, errors.Is(err, understudy.ErrIndexing), errors.Is(err, understudy.ErrUnavailable):
			return counts{} // the page shows this error above its rows
		case errors.Is(err, context.DeadlineExceeded):
			return counts{Problem: "Counting took too long. Use narrower filters."}
		}
		return counts{Problem: "The counts failed. The server's log has the reason."}
	}
	p = q.Parts(name, &page.Part{Title: "Counts by value", Needs: []*page.Future{c.Future}, Draw: func() (string, any) {
		if c.Future.Err != nil || c.result == nil {
			return "facets", drawn()
		}
		return "facets", counts{Facets: facets(c.result), Total: said(), Late: late}
	}, Inputs: func() []any {
		if c.Future.Err != nil || c.result == nil {
			return nil
		}
		return []any{late, c.result.Total, c.result.Facets}
	}})
	if late = p.PendingParts > 0; !late && c.Future.Err == nil && c.result != nil {
		held.Total = said()
	}
	return held, p
}

// totalText returns the number of records that a search found in words. It returns "" if they were not counted.
func totalText(r *query.SearchResult) string {
	switch {
	case r == nil || r.Total == nil:
		return ""
	case r.Total.AtLeast:
		return "at least " + page.Thousands(r.Total.N)
	}
	return page.Thousands(r.Total.N)
}

// noteFound returns remarks about a search result, such as that not all records are stored and so were not searched.
func noteFound(q *page.Exchange, r *query.SearchResult, s *plan.Source, k *plan.Kind) []string {
	notes := slices.Clone(r.Notes)
	if k == nil || !q.Rights.Gate.CanCount(q.Rights.Caller, s.Name, k.Spec.Name) {
		return notes
	}
	if held := q.V.Snapshots.Get(q, s).Kinds[k.Spec.Name]; !held.Complete {
		note := k.Spec.Title + " are not all stored here; only stored records were searched"
		if held.Why != "" {
			note += " (" + strings.TrimSuffix(held.Why, ".") + ")"
		}
		notes = append(notes, note+".")
	}
	return notes
}
