// Sums: the page of what the matches of a search add up to.

// Package sums shows what the matches of a search add up to, as a chart and its table.
package sums

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
)

// Path is the page.
const Path = page.SumsPath

// Routes are the page.
func Routes() []page.Route {
	return []page.Route{{Pattern: "GET " + Path, Handler: serveSums, Forms: []string{"GET " + Path + "?q="}}}
}

// sumsPage is what sums.html shows.
type sumsPage struct {
	Text, Source string
	Kinds        []page.Option
	Sums         []page.Option
	First        []page.Option
	Second       []page.Option
	Wrong        *page.Pointer // a mistake in the query
	Problem      string        // why there is no sum
	Here         string        // this page again
	Back         string        // the search that is summed up
	Sum          *sumView      // nil: there is none
}

// request is the address of the page, read.
type request struct {
	text, source string
	kinds        []string
	sum          string
	by           []string
}

// byNothing is the choice of one group of all.
const byNothing = "nothing"

// most bounds the query that may be typed, in bytes.
const most = 2000

func readRequest(q *page.Exchange) (*request, error) {
	params, err := understudy.ParseQuery(q.R.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	r := &request{}
	for _, p := range params {
		switch p.Name {
		case "q":
			r.text = strings.TrimSpace(p.Value)
		case "source":
			r.source = p.Value
		case "kind":
			r.kinds = page.AppendNew(r.kinds, p.Value)
		case "sum":
			r.sum = p.Value
		case "by":
			r.by = page.AppendNew(r.by, p.Value)
		default:
			return nil, page.UnknownWord("parameter", p.Name, []string{"q", "source", "kind", "sum", "by"}, nil)
		}
	}
	if len(r.text) > most || len(r.by) > query.MostSumBy+1 || len(r.kinds) > query.MostSums {
		return nil, page.BadRequest("That is too much to add up", "Take some of it away.", nil)
	}
	r.sum = cmp.Or(r.sum, query.SumCount)
	if len(r.by) == 0 {
		r.by = []string{"day"}
	}
	if r.by = slices.DeleteFunc(r.by, func(by string) bool { return by == byNothing }); len(r.by) > query.MostSumBy {
		r.by = r.by[:query.MostSumBy]
	}
	return r, nil
}

func (r *request) search() query.SearchRequest {
	return query.SearchRequest{Text: r.text, Source: r.source, Kinds: r.kinds}
}

// params are what is summed up and what it is put in groups by.
func (r *request) params(by ...string) understudy.Query {
	all := understudy.Query{{Name: "sum", Value: r.sum}}
	for _, one := range by {
		all = append(all, understudy.Param{Name: "by", Value: one})
	}
	return all
}

// serveSums shows the page. What is wrong with the request stands where the chart would.
func serveSums(q *page.Exchange) error {
	if q.V.Options.Sums == nil {
		return page.NotFound("Nothing can be added up here", "This server keeps no index.", "/")
	}
	r, err := readRequest(q)
	if err != nil {
		return err
	}
	q.Typed = r.text
	p := sumsPage{Text: r.text, Source: r.source, Kinds: page.KindOptions(q, r.kinds), Back: page.SearchAddress("/search", r.search())}
	by := r.by
	if len(by) == 0 {
		by = []string{byNothing}
	}
	p.Here = page.SearchAddress(Path, r.search(), r.params(by...)...)
	names, groups, err := q.V.Options.Sums.SumNames(q.Rights.Caller, r.search())
	if err == nil {
		p.choices(q, r, names, groups)
		var out *query.SumResult
		ask := query.SumRequest{Search: r.search(), Sum: r.sum, By: r.by, Zone: q.Clock.Zone}
		if out, err = q.V.Options.Sums.Sum(q.Ctx, q.Rights.Caller, ask); err == nil {
			if err := audit(q, r, len(out.Rows)); err != nil {
				return err
			}
			p.Sum = newSumView(q, r, out)
		}
	}
	status := http.StatusOK
	if err != nil {
		if status, err = p.refused(r, err); err != nil {
			return err
		}
	}
	return q.Render(status, "sums", "Sums", p)
}

func audit(q *page.Exchange, r *request, rows int) error {
	e := understudy.AuditEntry{Action: understudy.ActionSearch, What: "sum", Source: r.source, Rows: rows, Values: []string{r.text}}
	if len(r.kinds) == 1 {
		e.Kind = r.kinds[0]
	}
	return page.Audit(q, e)
}

// refused says why there is no sum, when it is for the reader to mend.
func (p *sumsPage) refused(r *request, err error) (status int, rest error) {
	if wrong := page.SyntaxOf(err); wrong != nil {
		p.Wrong = page.PointAt(wrong)
		return understudy.Status(wrong.Kind), nil
	}
	if !errors.Is(err, understudy.ErrInvalid) && !errors.Is(err, understudy.ErrForbidden) {
		return 0, err
	}
	p.Problem = page.Sentence(err)
	if len(p.Sums) == 0 {
		p.Sums = []page.Option{{Value: r.sum, Text: r.sum, Selected: true}}
	}
	return understudy.Status(err), nil
}

// choices are what can be summed up, and by what.
func (p *sumsPage) choices(q *page.Exchange, r *request, names, groups []string) {
	for _, name := range names {
		p.Sums = append(p.Sums, page.Option{Value: name, Text: words(q, name), Selected: name == r.sum})
	}
	by := [query.MostSumBy]string{byNothing, byNothing}
	copy(by[:], r.by)
	p.First = []page.Option{{Value: byNothing, Text: "nothing, all in one", Selected: by[0] == byNothing}}
	p.Second = []page.Option{{Value: byNothing, Text: "nothing else", Selected: by[1] == byNothing}}
	for _, name := range groups {
		p.First = append(p.First, page.Option{Value: name, Text: words(q, name), Selected: name == by[0]})
		p.Second = append(p.Second, page.Option{Value: name, Text: words(q, name), Selected: name == by[1]})
	}
}

// words is a measure or a group as people say it.
func words(q *page.Exchange, name string) string {
	if name == query.SumCount {
		return "matches"
	}
	return q.V.WordsOf(name, nil)
}
