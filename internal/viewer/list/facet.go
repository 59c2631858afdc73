// Facet: how many records there are of each value, and the way to those alone.

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

// makeFacets returns the facets of a result, in words. set says whether a value is picked already,
// and where picking it, or letting go of it, leads.
func makeFacets(q *page.Exchange, r *query.SearchResult, k *plan.Kind,
	pick func(f query.SearchFacet, v query.SearchValue) (href string, set bool)) []facet {
	var all []facet
	months := 0 // they come before the days
	for _, f := range r.Facets {
		if len(f.Values) == 0 || f.Name == "kind" && k != nil || f.Name == "day" && months > 1 {
			continue // days are of use within a month
		}
		if f.Name == "month" {
			months = len(f.Values)
		}
		out := facet{Title: plan.UpperFirst(q.V.WordsOf(f.Name, k)), More: f.More}
		for _, v := range f.Values {
			href, set := pick(f, v)
			shown := facetValue{Text: q.V.ShowValue(f.Name, v.Value, k), Href: href, Count: page.Thousands(v.N),
				AtLeast: v.AtLeast, Set: set}
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

// oneValue matches a condition that a facet adds: a field has one value.
var oneValue = regexp.MustCompile(`^([\pL\pN_.]+)[=:](?:([\pL\pN_.+-]+)|"([^"\\]*)")$`)

// showCondition returns a condition that a facet added in words: the field and its value.
func showCondition(q *page.Exchange, term string, k *plan.Kind) (label, text string) {
	m := oneValue.FindStringSubmatch(term)
	if m == nil {
		return "Only", term
	}
	name, value := m[1], m[2]+m[3]
	if name == "date" {
		name = map[int]string{len("2006-01"): "month", len(time.DateOnly): "day"}[len(value)]
	}
	return plan.UpperFirst(q.V.WordsOf(cmp.Or(name, m[1]), k)), q.V.ShowValue(name, value, k)
}

// listFacets are those of a list. A value is picked by upstream's own filter
// where it has one, so that the list stays upstream's; else by a condition.
func (lv listing) listFacets(r *query.SearchResult) []facet {
	return makeFacets(lv.q, r, lv.q.Kind, func(f query.SearchFacet, v query.SearchValue) (string, bool) {
		at := *lv.ask
		at.layout.cursor, at.back = "", nil
		if flt := findFilter(lv.q, lv.ask.list, f.Name); flt != nil && v.Value != "" {
			rest := lv.ask.filters().Without(func(p understudy.Param) bool { return p.Name == flt.Name })
			if was, set := lv.ask.query.Get(flt.Name); set && was == v.Value {
				return at.address("", rest, nil), true
			}
			return at.address("", append(rest, understudy.Param{Name: flt.Name, Value: v.Value}), nil), false
		}
		var set bool
		at.layout.narrow, set = toggled(lv.ask.layout.narrow, v.Term)
		return at.address("", lv.ask.filters(), nil), set
	})
}

// toggled adds a term, or takes it away when it is there.
func toggled(terms []string, term string) (changed []string, set bool) {
	if i := slices.Index(terms, term); i >= 0 {
		return slices.Delete(slices.Clone(terms), i, i+1), true
	}
	return append(slices.Clone(terms), term), false
}

// findFilter returns upstream's filter for one value of a field, if the caller may use it.
func findFilter(q *page.Exchange, l *plan.List, field string) *spec.Filter {
	for i, f := range l.Spec.Filters {
		if f.Field == field && (f.Op == "" || f.Op == "is") && q.Rights.Offers(l, i) {
			return f
		}
	}
	return nil
}

// filters are a query's parameters less its place in the list.
func (ask *listQuery) filters() understudy.Query {
	return ask.query.Without(func(p understudy.Param) bool { return plan.IsPosition(ask.list.PagingStyle, p.Name) })
}

// counts are a page's facets, and how many records it is of.
type counts struct {
	Facets  []facet
	Total   string // in words; "" when nothing was counted
	Late    bool   // they come after the head of the page, which would say the total
	Problem string // why there are none
}

// counter counts the matches of a search behind a page.
type counter struct {
	Future *page.Future
	result *query.SearchResult // once that is over; nil: it is not known
}

// startCount begins to count. rows, if any, is told how many rows the page has when
// they have come: what was counted before they were held is counted once more.
func startCount(q *page.Exchange, search query.SearchRequest, rows <-chan int) *counter {
	search.Facets, search.CountOnly, search.Limit, search.Cursor, search.Sort = true, true, 0, "", ""
	c := &counter{}
	c.Future = q.Tasks.Begin("counts by value", q.V.Glance, func(ctx context.Context) (err error) {
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

// listCounting is counting for a list; nil when it cannot be searched.
func (lv listing) listCounting(rows <-chan int) *counter {
	if lv.q.V.Options.Search == nil || lv.q.Data != "" || !lv.q.Clock.AsOf.At.IsZero() {
		return nil
	}
	search, err := lv.searchAsk()
	if err != nil {
		return nil
	}
	return startCount(lv.q, search, rows)
}

// makeCounts returns the page's counts, as far as they are there, and the part of the page they
// are: facets of what was counted, drawn once as long as it is the same. total is a
// sentence for how many there are. c may be nil.
func makeCounts(q *page.Exchange, name string, c *counter, total string, facets func(*query.SearchResult) []facet,
) (held counts, p *page.Parts) {
	if c == nil {
		return counts{}, nil
	}
	late := false
	said := func() string {
		if n := totalOf(c.result); n != "" && (name != "list" || c.result.Total.N > 0) { // of nothing a list says so
			return fmt.Sprintf(total, n)
		}
		return ""
	}
	drawn := func() counts {
		switch err := c.Future.Err; {
		case err == nil, page.SyntaxOf(err) != nil, errors.Is(err, understudy.ErrIndexing), errors.Is(err, understudy.ErrUnavailable):
			return counts{} // the rows say so, too
		case errors.Is(err, context.DeadlineExceeded):
			return counts{Problem: "Counting by value took too long; narrower filters take less."}
		}
		return counts{Problem: "The counts by value could not be made; the log of the server says why."}
	}
	p = q.Parts(name, &page.Part{Title: "Counts by value", Needs: []*page.Future{c.Future}, Draw: func() (string, any) {
		if c.Future.Err != nil || c.result == nil {
			return "facets", drawn()
		}
		return "facets", counts{Facets: facets(c.result), Total: said(), Late: late}
	}, Of: func() []any {
		if c.Future.Err != nil || c.result == nil {
			return nil
		}
		return []any{late, c.result.Total, c.result.Facets}
	}})
	if late = p.Late > 0; !late && c.Future.Err == nil && c.result != nil {
		held.Total = said()
	}
	return held, p
}

// totalOf is how many matches there are, in words; "" when nothing was counted.
func totalOf(r *query.SearchResult) string {
	switch {
	case r == nil || r.Total == nil:
		return ""
	case r.Total.AtLeast:
		return "at least " + page.Thousands(r.Total.N)
	}
	return page.Thousands(r.Total.N)
}

// noteFound tells to the reader how a result came about.
func noteFound(q *page.Exchange, r *query.SearchResult, s *plan.Source, k *plan.Kind) []string {
	notes := slices.Clone(r.Notes)
	if k == nil || !q.Rights.Gate.Counts(q.Rights.Caller, s.Name, k.Spec.Name) {
		return notes
	}
	if held := q.V.Snapshots.Of(q, s).Kinds[k.Spec.Name]; !held.Complete {
		note := k.Spec.Title + " are not all held here; only held records were searched"
		if held.Why != "" {
			note += " (" + strings.TrimSuffix(held.Why, ".") + ")"
		}
		notes = append(notes, note+".")
	}
	return notes
}
