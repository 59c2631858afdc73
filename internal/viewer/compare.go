// The comparison page: two versions of a record, field by field.

package viewer

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/access/seen"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// momentSeparator separates the two moments in the value of the parameter "compare".
const momentSeparator = ".."

// comparePage is the data of the template compare.html.
type comparePage struct {
	Kind          *plan.Kind
	Heading, ID   string
	RecordHref    string // the address of the record's own page
	ListHref      string
	Before, After comparedVersion
	SwappedHref   string // the address of the same comparison with the earlier and the later version exchanged
	Changed, Same []fieldChange
}

// comparedVersion is one of the two versions that a page compares.
type comparedVersion struct {
	Moment page.When  // the requested moment; the version that was valid then is compared
	Since  *page.When // when the compared version was first seen, at or before Moment
	Href   string
}

// ShortID returns the record's id as the breadcrumb shows it.
func (p *comparePage) ShortID() string { return page.ShortID(p.ID) }

// comparison contains the two moments that an address compares. It is empty if the address compares nothing.
type comparison struct {
	moments     []time.Time
	isCanonical bool // whether the address is written in the viewer's own form, so that no redirect is needed
}

// readCompare parses the two moments to compare. A link writes them as A..B in one parameter. A form sends two
// parameters of the same name.
func readCompare(q *page.Exchange, params understudy.Query) (c comparison, err error) {
	var given []string
	for _, p := range params {
		if p.Name == paramCompare {
			given = append(given, strings.Split(p.Value, momentSeparator)...)
		}
	}
	for _, text := range given {
		at, ok := page.ParseMoment(text, q.Clock.Zone)
		if !ok {
			return comparison{}, page.NewBadRequest("“"+understudy.Clip(text)+"” is not a time", "Write "+paramCompare+
				" as two times, like 2026-06-01T12:00:00Z"+momentSeparator+"2026-06-02T12:00:00Z.", nil)
		}
		c.moments = append(c.moments, at)
	}
	if len(c.moments) != 0 && len(c.moments) != 2 {
		return comparison{}, page.NewBadRequest("Choose two times to compare", "Write "+paramCompare+" as 2026-06-01T12:00:00Z"+momentSeparator+
			"2026-06-02T12:00:00Z.", nil)
	}
	if len(c.moments) == 2 {
		value, _ := params.Get(paramCompare)
		c.isCanonical = value == newCompareParam(c.moments[0], c.moments[1]).Value
	}
	return c, nil
}

// compare shows two versions of the record that the address names.
func compare(q *page.Exchange, t *spec.Target, c comparison) error {
	moments := c.moments
	q.Clock.AsOf = page.AsOf{}
	here := q.Kind.Href + "/" + url.PathEscape(t.ID)
	vars := q.Source.AddressVars(t, t.Instance.ID)
	link := func(p ...understudy.Param) string { return here + plan.WithQuery(slices.Concat(vars, p)) }
	if !c.isCanonical {
		page.Redirect(q.Reply.W, q.R, link(newCompareParam(moments[0], moments[1])))
		return nil
	}
	if err := q.Rights.Gate.CheckRead(q.Rights.Caller, t); err != nil {
		return err
	}
	switch err := q.Rights.Gate.CheckFind(q.Ctx, q.Rights.Caller, t, q.V.Options.Mirror.Answer); {
	case errors.Is(err, understudy.ErrNotFound):
		return page.NewNoSuchRecord(q.Kind)
	case err != nil:
		return err
	}
	past, err := readPast(q.Ctx, q, t.ID, seen.MaxVersions)
	if err != nil {
		return err
	}
	before, after, err := pickVersions(q, past, t, moments)
	if err != nil {
		return err
	}
	e := understudy.AuditEntry{Action: understudy.ActionRecord, What: "compare", IDs: []string{t.ID}, Rows: 1}
	for _, v := range slices.Concat(before.Fields, after.Fields) {
		if v.State == access.Seen && plan.IsNumber(v.Text) {
			e.Values = append(e.Values, v.Text)
		}
	}
	if err := page.WriteAudit(q, e); err != nil {
		return err
	}
	own := q.V.Numbers.Begin(q)
	s := q.CellContext(q.Kind, vars, own.Wait(q))
	s.Seconds = true
	p := &comparePage{Kind: q.Kind, Heading: "Two versions of this " + q.Kind.Spec.Singular, ID: t.ID, RecordHref: link()}
	if q.Kind.IsBrowsable() {
		p.ListHref = q.Kind.Href + plan.WithQuery(plan.OwnVars(vars))
	}
	p.SwappedHref = link(newCompareParam(moments[1], moments[0]))
	compared := func(at time.Time, v *seen.Version) comparedVersion {
		return comparedVersion{q.Clock.FormatMoment(at, true), q.Clock.Moment(v.Version.From), link(page.AsOf{At: at}.Param()...)}
	}
	p.Before, p.After = compared(moments[0], before), compared(moments[1], after)
	for _, d := range seen.Differences(before, after) {
		pair := *after
		pair.Before = before
		if f := newFieldChange(q, s, &pair, d); f.Changed {
			p.Changed = append(p.Changed, f)
		} else {
			p.Same = append(p.Same, f)
		}
	}
	return q.Render(http.StatusOK, "compare", "Compare "+q.Kind.Spec.Singular+" "+page.ShortID(t.ID), p)
}

// pickVersions returns the two versions of a record that were valid at the two moments. Both results have the same
// shape: the page's own shape if its versions differ, else another shape whose versions differ.
func pickVersions(q *page.Exchange, p seen.Past, t *spec.Target, moments []time.Time) (before, after *seen.Version, err error) {
	missing := moments[0]
	why := "It was not known yet, or that version was not kept."
	for _, shape := range p.Shapes(t.Shape()) {
		a, goneA := p.VersionAt(moments[0], shape)
		b, goneB := p.VersionAt(moments[1], shape)
		switch {
		case a != nil && a.Kept && b != nil && b.Kept:
			if len(seen.ChangedFields(a, b)) > 0 {
				return a, b, nil
			}
			if before == nil {
				before, after = a, b
			}
		case goneA || goneB:
			why = "It was deleted at that time."
		}
		if a != nil && a.Kept {
			missing = moments[1]
		}
	}
	if before != nil {
		return before, after, nil
	}
	return nil, nil, &page.Problem{
		Title: "There is no version of " + q.Clock.FormatMoment(missing, true).Text, Hint: why,
		Href: q.Kind.Href + "/" + url.PathEscape(t.ID) + "#timeline", Link: "See its timeline", Kind: understudy.ErrNotFound,
	}
}
