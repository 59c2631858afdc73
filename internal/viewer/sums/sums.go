// The page that shows sums over the records that a search finds.

// Package sums shows sums over the records that a search finds, as a chart and a table.
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

// Path is the path of the page.
const Path = page.SumsPath

// Routes returns the route of the page.
func Routes() []page.Route {
	return []page.Route{{Pattern: "GET " + Path, Handler: serveSums, Forms: []string{"GET " + Path + "?q="}}}
}

// sumsPage is the data of the template sums.html.
type sumsPage struct {
	Text, Source string
	Kinds        []page.Option
	Sums         []page.Option
	First        []page.Option
	Second       []page.Option
	Wrong        *page.Pointer // the position of a mistake in the search; nil if there is none
	Problem      string        // a sentence that says why there is no sum; empty if there is one
	Here         string        // the address of this page with the current choices
	Back         string        // the address of the search whose records are summed up
	Sum          *sumView      // the computed sum; nil if there is none
}

// request is the parsed address of the page.
type request struct {
	text, source string
	kinds        []string
	sum          string
	by           []string
}

// noGrouping is the value of the menu that does not group the records.
const noGrouping = "nothing"

// maxText is the maximum length in bytes of the search text.
const maxText = 2000

// readRequest parses the address of the page.
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
			r.kinds = page.AppendUnique(r.kinds, p.Value)
		case "sum":
			r.sum = p.Value
		case "by":
			r.by = page.AppendUnique(r.by, p.Value)
		default:
			return nil, page.NewUnknownWord("parameter", p.Name, []string{"q", "source", "kind", "sum", "by"}, nil)
		}
	}
	if len(r.text) > maxText || len(r.by) > query.MaxSumGroupings+1 || len(r.kinds) > query.MaxSums {
		return nil, page.NewBadRequest("This search is too long", "Remove some words or conditions.", nil)
	}
	r.sum = cmp.Or(r.sum, query.SumCount)
	if len(r.by) == 0 {
		r.by = []string{"day"}
	}
	if r.by = slices.DeleteFunc(r.by, func(by string) bool { return by == noGrouping }); len(r.by) > query.MaxSumGroupings {
		r.by = r.by[:query.MaxSumGroupings]
	}
	return r, nil
}

func (r *request) search() query.SearchRequest {
	return query.SearchRequest{Text: r.text, Source: r.source, Kinds: r.kinds}
}

// params returns the parameters that choose the sum and its groups.
func (r *request) params(by ...string) understudy.Query {
	all := understudy.Query{{Name: "sum", Value: r.sum}}
	for _, one := range by {
		all = append(all, understudy.Param{Name: "by", Value: one})
	}
	return all
}

// serveSums shows the page. If the request has a mistake, the page shows the error in place of the chart.
func serveSums(q *page.Exchange) error {
	if q.V.Options.Sums == nil {
		return page.NewNotFound("Sums are not available here", "This server has no search index.", "/")
	}
	r, err := readRequest(q)
	if err != nil {
		return err
	}
	q.SearchText = r.text
	p := sumsPage{Text: r.text, Source: r.source, Kinds: page.KindOptions(q, r.kinds), Back: page.SearchAddress("/search", r.search())}
	by := r.by
	if len(by) == 0 {
		by = []string{noGrouping}
	}
	p.Here = page.SearchAddress(Path, r.search(), r.params(by...)...)
	names, groups, err := q.V.Options.Sums.SumNames(q.Rights.Caller, r.search())
	if err == nil {
		p.setChoices(q, r, names, groups)
		var out *query.SumResult
		ask := query.SumRequest{Search: r.search(), Sum: r.sum, By: r.by, Zone: q.Clock.Zone}
		if out, err = q.V.Options.Sums.Sum(q.Ctx, q.Rights.Caller, ask); err == nil {
			e := understudy.AuditEntry{Action: understudy.ActionSearch, What: "sum", Source: r.source, Rows: len(out.Rows), Values: []string{r.text}}
			if len(r.kinds) == 1 {
				e.Kind = r.kinds[0]
			}
			if err := page.WriteAudit(q, e); err != nil {
				return err
			}
			p.Sum = newSumView(q, r, out)
		}
	}
	status := http.StatusOK
	if err != nil {
		if status, err = p.explainRefusal(r, err); err != nil {
			return err
		}
	}
	return q.Render(status, "sums", "Sums", p)
}

// explainRefusal shows an error on the page if the reader can correct it. It returns other errors in rest.
func (p *sumsPage) explainRefusal(r *request, err error) (status int, rest error) {
	if wrong := page.FindSyntaxError(err); wrong != nil {
		p.Wrong = page.NewPointer(wrong)
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

func (p *sumsPage) setChoices(q *page.Exchange, r *request, names, groups []string) {
	for _, name := range names {
		p.Sums = append(p.Sums, page.Option{Value: name, Text: words(q, name), Selected: name == r.sum})
	}
	by := [query.MaxSumGroupings]string{noGrouping, noGrouping}
	copy(by[:], r.by)
	p.First = []page.Option{{Value: noGrouping, Text: "nothing, one total", Selected: by[0] == noGrouping}}
	p.Second = []page.Option{{Value: noGrouping, Text: "nothing else", Selected: by[1] == noGrouping}}
	for _, name := range groups {
		p.First = append(p.First, page.Option{Value: name, Text: words(q, name), Selected: name == by[0]})
		p.Second = append(p.Second, page.Option{Value: name, Text: words(q, name), Selected: name == by[1]})
	}
}

func words(q *page.Exchange, name string) string {
	if name == query.SumCount {
		return "matches"
	}
	return q.V.FieldTitle(name, nil)
}
