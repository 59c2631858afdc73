// Timeline: every version of a record that was seen, on the record's page.

package viewer

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/access/seen"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// The bounds of a timeline.
const (
	fewVersions = 20 // shown at first
	fewFields   = 8  // changed fields shown of one version
)

// ownVersions is how many versions the timeline of a page shows.
const ownVersions = understudy.OwnPrefix + "versions"

// paramCompare names two moments whose versions are compared.
const paramCompare = "compare"

// timeline is what the template "timeline" shows.
type timeline struct {
	Entries []entry
	Older   string // the page with more of them
	Bound   int64  // how many are shown at most, when that cut some off
	Problem string
	Action  string // of the form that compares two
	Hidden  []understudy.Param
	Picks   []page.Option // the moments it offers
	Former  []page.Option // the same, the one before chosen
}

// entry is one version.
type entry struct {
	When    page.When
	Word    string
	Tone    string
	Form    string // how upstream showed it, when that is not as on this page
	Number  string // the store's number, for those who may see everything
	Fields  []fieldChange
	Beyond  int64  // changed fields that are not shown
	Then    string // the page as of this version
	ThenIs  string // what that link says
	Compare string // with the one before
	Shown   bool   // it is the one the page shows
	Lost    bool   // its text is not kept
}

// fieldChange is one field before and after.
type fieldChange struct {
	Label         string
	Before, After page.Cell
	Changed       bool
}

// readVersions reads how many versions are to be shown, 0 when the address does
// not say.
func readVersions(params understudy.Query) (int, error) {
	text, ok := params.Get(ownVersions)
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > seen.Most {
		return 0, page.BadRequest("“"+understudy.Clip(text)+"” is no number of versions", "Give "+ownVersions+" from 1 to "+
			strconv.Itoa(seen.Most)+".", nil)
	}
	return n, nil
}

// readTimeline begins to read a record's past; the part shows nothing when nothing
// is kept of it.
func readTimeline(q *page.Exchange, t *spec.Target, id string, limit int, s *page.CellContext) *page.Part {
	var p seen.Past
	read := q.Tasks.Begin("timeline", q.V.Glance, func(ctx context.Context) (err error) {
		p, err = readPast(ctx, q, id, limit)
		return err
	})
	of := func() []any { return drawTimeline(q, t, p, s, read.Err) }
	return &page.Part{Title: "Timeline", Needs: []*page.Future{read}, Of: of, Draw: func() (string, any) {
		if read.Err != nil {
			return "timeline", &timeline{Problem: "The past of this " + q.Kind.Spec.One +
				" could not be read; the log of the server says why."}
		}
		if out := makeTimeline(q, t, p, limit, s); out != nil {
			return "timeline", out
		}
		return "", nil
	}}
}

// drawTimeline returns what a timeline is made of.
func drawTimeline(q *page.Exchange, t *spec.Target, p seen.Past, s *page.CellContext, err error) []any {
	all := []any{err != nil, s.Own, p.More, p.Bound}
	if sg := findShown(q, p, t.Shape()); sg != nil {
		all = append(all, sg.Version.From)
	}
	body := func(sg *seen.Version) any {
		if sg == nil || !sg.Kept {
			return nil
		}
		return sg.Row.Raw()
	}
	for _, sg := range p.Versions {
		v := &sg.Version
		all = append(all, v.From, v.Shape, v.Number, v.Gone, sg.Kept, sg.First, sg.Back, sg.Before != nil, body(sg), body(sg.Before))
		if sg.Before != nil {
			all = append(all, sg.Before.Version.From)
		}
	}
	return all
}

// makeTimeline returns nil when nothing is kept of the record's past.
func makeTimeline(q *page.Exchange, t *spec.Target, p seen.Past, limit int, s *page.CellContext) *timeline {
	if len(p.Versions) == 0 {
		return nil
	}
	here := q.Kind.Href + "/" + url.PathEscape(t.ID)
	vars := q.Source.Given(t, t.Instance.ID)
	out := &timeline{}
	shown := findShown(q, p, t.Shape())
	for i, sg := range p.Versions {
		e := makeEntry(q, s, sg, t.Shape())
		e.Shown = sg == shown
		switch {
		case !sg.Kept || e.Shown || sg.Version.Shape != t.Shape():
		case i == 0:
			e.Then, e.ThenIs = here+plan.WithQuery(vars), "As it is"
		default:
			e.Then, e.ThenIs = here+plan.WithQuery(append(slices.Clone(vars), page.AsOf{At: sg.Version.From}.Param()...)), "As it was"
		}
		if sg.Kept && sg.Before != nil && sg.Before.Kept {
			e.Compare = here + plan.WithQuery(append(slices.Clone(vars), compareParam(sg.Before.Version.From, sg.Version.From)))
		}
		out.Entries = append(out.Entries, e)
	}
	switch {
	case p.Bound:
		out.Bound = seen.Most
	case p.More:
		next := understudy.Param{Name: ownVersions, Value: strconv.Itoa(min(limit*5, seen.Most))}
		out.Older = q.Clock.AsOf.Keep(here+plan.WithQuery(append(slices.Clone(vars), next))) + "#timeline"
	}
	out.Action, out.Hidden = here, vars
	out.picks(q, p, t.Shape())
	return out
}

// findShown returns the version the page is about.
func findShown(q *page.Exchange, p seen.Past, shape string) *seen.Version {
	at := q.Clock.AsOf.At
	if at.IsZero() {
		at = q.Clock.Start
	}
	s, _ := p.At(at, shape)
	return s
}

func compareParam(a, b time.Time) understudy.Param {
	return understudy.Param{Name: paramCompare, Value: page.WriteMoment(a) + compareTo + page.WriteMoment(b)}
}

// makeEntry says what happened at a version.
func makeEntry(q *page.Exchange, s *page.CellContext, sg *seen.Version, shape string) entry {
	e := entry{When: q.Clock.Say(sg.Version.From, true), Lost: !sg.Version.Gone && !sg.Kept}
	if !sg.Version.Gone && sg.Version.Shape != shape {
		e.Form = q.Kind.FormOf(sg.Version.Shape)
	}
	if sg.Version.Number != 0 && q.Rights.Caller.Role() == understudy.RoleAll {
		e.Number = strconv.FormatInt(sg.Version.Number, 10)
	}
	switch {
	case sg.Version.Gone:
		e.Word, e.Tone = "Gone", "bad"
	case sg.Back:
		e.Word, e.Tone = "Came back", "good"
	case sg.First:
		e.Word, e.Tone = "First seen", "good"
	case sg.Before == nil:
		e.Word = "Seen"
	default:
		e.Word = "Changed"
	}
	if sg.Before == nil || !sg.Before.Kept || !sg.Kept {
		return e
	}
	all := seen.Changed(sg.Before, sg)
	for _, d := range all[:min(len(all), fewFields)] {
		e.Fields = append(e.Fields, makeFieldChange(q, s, sg, d))
	}
	e.Beyond = int64(len(all) - len(e.Fields))
	return e
}

// makeFieldChange draws one field of a version and the one before.
func makeFieldChange(q *page.Exchange, s *page.CellContext, after *seen.Version, d seen.Difference) fieldChange {
	label, before := drawValue(q, s, after.Before, d.Before, d.Name)
	_, later := drawValue(q, s, after, d.After, d.Name)
	return fieldChange{Label: label, Before: before, After: later, Changed: !d.Same()}
}

// drawValue draws a value of a version: as its column does, else as text.
func drawValue(q *page.Exchange, s *page.CellContext, of *seen.Version, v access.Value, name string) (label string, c page.Cell) {
	if col := q.Kind.ByField[name]; col != nil && of != nil && of.Kept {
		c = s.Cell(col, of.Row, false)
		c.Text = understudy.ClipTo(c.Text, page.Clipped)
		return col.Heading, c
	}
	c = page.Cell{Text: understudy.ClipTo(v.Text, page.Clipped), Prose: true}
	if v.State == access.Null || v.State == access.Absent || v.Text == "" {
		c = page.Cell{Text: "—", Tone: "none"}
	}
	return plan.UpperFirst(plan.Spell(name)), c
}

// picks are the versions of the page's shape that can be compared: the page's
// own with the one before at first.
func (t *timeline) picks(q *page.Exchange, p seen.Past, shape string) {
	for _, s := range p.Versions {
		if s.Kept && s.Version.Shape == shape {
			from := s.Version.From
			t.Picks = append(t.Picks, page.Option{Value: page.WriteMoment(from), Text: q.Clock.Say(from, true).Text})
		}
	}
	if len(t.Picks) < 3 { // two are compared by their own link
		t.Picks = nil
		return
	}
	t.Former = slices.Clone(t.Picks)
	t.Picks[0].Selected, t.Former[1].Selected = true, true
}
