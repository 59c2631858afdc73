// Compare: two versions of a record, field by field.

package viewer

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"understudy/internal/viewer/plan"

	"understudy"
)

// compareTo stands between the two moments of an address that compares.
const compareTo = ".."

// comparePage is what compare.html shows.
type comparePage struct {
	Kind          *plan.Kind
	Heading, ID   string
	Record        string // the record's page
	ListHref      string
	Before, After comparedVersion
	Swapped       string // the same the other way round
	Changed, Same []fieldChange
}

// comparedVersion is one of the two.
type comparedVersion struct {
	Asked when  // the moment that was named
	Since *when // when the version began that stood then
	Then  string
}

// Short is the id as the breadcrumb shows it.
func (p *comparePage) Short() string { return shortID(p.ID) }

// comparison is the two moments an address names; none when it compares
// nothing.
type comparison struct {
	moments []time.Time
	tidy    bool // the address was already written as ours are
}

// readCompare reads the moments to compare: A..B, or twice one moment, as a
// form gives them.
func (q past) readCompare(params understudy.Query) (c comparison, err error) {
	var given []string
	for _, p := range params {
		if p.Name == paramCompare {
			given = append(given, strings.Split(p.Value, compareTo)...)
		}
	}
	for _, text := range given {
		at, ok := parseMoment(text, q.zone)
		if !ok {
			return comparison{}, badRequest("“"+clip(text)+"” is no moment", "Give "+paramCompare+" as two moments, such as 2026-06-01T12:00:00Z"+compareTo+"2026-06-02T12:00:00Z.", nil)
		}
		c.moments = append(c.moments, at)
	}
	if len(c.moments) != 0 && len(c.moments) != 2 {
		return comparison{}, badRequest("Two moments are compared", "Give "+paramCompare+" as 2026-06-01T12:00:00Z"+compareTo+"2026-06-02T12:00:00Z.", nil)
	}
	if len(c.moments) == 2 {
		value, _ := params.Get(paramCompare)
		c.tidy = value == compareParam(c.moments[0], c.moments[1]).Value
	}
	return c, nil
}

// compare shows two versions of the record an address names.
func (q past) compare(t *understudy.Target, c comparison) error {
	moments := c.moments
	q.asOf = asOf{}
	here := q.kind.Href + "/" + url.PathEscape(t.ID)
	vars := q.source.Given(t, t.Instance.ID)
	link := func(p ...understudy.Param) string { return here + plan.WithQuery(slices.Concat(vars, p)) }
	if !c.tidy {
		q.w.Header().Set("Cache-Control", "no-store")
		http.Redirect(q.w, q.r, link(compareParam(moments[0], moments[1])), http.StatusSeeOther)
		return nil
	}
	if err := q.gate.Read(q.caller, t); err != nil {
		return err
	}
	switch err := q.gate.Find(q.ctx, q.caller, t, q.v.Mirror.Page); {
	case errors.Is(err, understudy.ErrNotFound):
		return noSuch(q.exchange)
	case err != nil:
		return err
	}
	past, err := q.readPast(q.ctx, t.ID, mostVersions)
	if err != nil {
		return err
	}
	before, after, err := q.pick(past, t, moments)
	if err != nil {
		return err
	}
	own := q.v.numbers.begin(q.exchange)
	s := q.cellContext(q.kind, vars, own.wait(q.exchange))
	s.seconds = true
	p := &comparePage{Kind: q.kind, Heading: "Two versions of this " + q.kind.One, ID: t.ID, Record: link()}
	if q.kind.Browsable() {
		p.ListHref = q.kind.Href + plan.WithQuery(plan.OwnVars(vars))
	}
	p.Swapped = link(compareParam(moments[1], moments[0]))
	p.Before = comparedVersion{say(moments[0], q.start, q.zone, true), q.moment(before.From), link(asOf{at: moments[0]}.param()...)}
	p.After = comparedVersion{say(moments[1], q.start, q.zone, true), q.moment(after.From), link(asOf{at: moments[1]}.param()...)}
	for _, d := range differences(before, after) {
		pair := *after
		pair.before = before
		if f := q.fieldChange(s, &pair, d); f.Changed {
			p.Changed = append(p.Changed, f)
		} else {
			p.Same = append(p.Same, f)
		}
	}
	return q.render(http.StatusOK, "compare", "Compare "+q.kind.One+" "+shortID(t.ID), p)
}

// pick finds the versions that stood at both moments, in a shape that was seen
// by then: one in which they differ, the page's own before any other.
func (q past) pick(p recordPast, t *understudy.Target, moments []time.Time) (before, after *seenVersion, err error) {
	missing := moments[0]
	why := "It had not been seen yet, or the text of that time is not kept."
	for _, shape := range p.shapes(t.Shape()) {
		a, goneA := p.at(moments[0], shape)
		b, goneB := p.at(moments[1], shape)
		switch {
		case a != nil && a.Kept && b != nil && b.Kept:
			if len(changed(a, b)) > 0 {
				return a, b, nil
			}
			if before == nil {
				before, after = a, b
			}
		case goneA || goneB:
			why = "It was gone then."
		}
		if a != nil && a.Kept {
			missing = moments[1]
		}
	}
	if before != nil {
		return before, after, nil
	}
	return nil, nil, &problem{
		Title: "There is no version of " + say(missing, q.start, q.zone, true).Text, Hint: why,
		Href: q.kind.Href + "/" + url.PathEscape(t.ID) + "#timeline", Link: "See what is known of it", kind: understudy.ErrNotFound,
	}
}
