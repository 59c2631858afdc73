// The timeline on a record's page: every version of the record that was seen.

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

// The limits of the timeline on a record's page.
const (
	defaultVersions  = 20 // the number of versions that a timeline shows at first
	maxChangedFields = 8  // the maximum number of changed fields that a version in the timeline shows
)

// paramVersions is the parameter that says how many versions the timeline shows.
const paramVersions = understudy.OwnPrefix + "versions"

// paramCompare is the parameter with the two moments whose versions the page compares.
const paramCompare = "compare"

// timeline is the data of the template "timeline".
type timeline struct {
	Entries       []timelineEntry
	Older         string // the address of the same page with more versions in its timeline
	MaxVersions   int64  // the limit for the number of versions, if older versions are left out because of it; else 0
	Problem       string
	Action        string // the address of the form that compares two versions
	Hidden        []understudy.Param
	LaterOptions  []page.Option // the moments that the form offers for the later version
	FormerOptions []page.Option // the same moments for the earlier version; the second newest is selected
}

// timelineEntry is one version in the timeline.
type timelineEntry struct {
	When        page.When
	Word        string
	Tone        string
	ShapeName   string // the name of the version's shape, if it differs from the shape of the page
	StoreNumber string // the version's number in the store; empty unless the caller may see everything
	Fields      []fieldChange
	MoreFields  int64  // the number of changed fields that the timeline leaves out
	AsOfHref    string // the address of the page that shows this version
	AsOfText    string // the text of the link to the page that shows this version
	CompareHref string // the address of the page that compares this version with the one before
	IsShown     bool   // whether the page currently shows this version
	TextLost    bool   // whether the content of the version is not stored
}

// fieldChange is one field before and after a change.
type fieldChange struct {
	Label         string
	Before, After page.Cell
	Changed       bool
}

// readVersions parses the number of versions that the timeline shows. It returns 0 if the address has no such parameter.
func readVersions(params understudy.Query) (int, error) {
	text, ok := params.Get(paramVersions)
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > seen.MaxVersions {
		return 0, page.NewBadRequest("“"+understudy.Clip(text)+"” is not a number of versions", "Give "+paramVersions+" from 1 to "+
			strconv.Itoa(seen.MaxVersions)+".", nil)
	}
	return n, nil
}

// readTimeline starts to read the versions of a record for its timeline. The returned part of the page is empty if no
// version is stored.
func readTimeline(q *page.Exchange, t *spec.Target, id string, limit int, s *page.CellContext) *page.Part {
	var p seen.Past
	read := q.Tasks.Begin("timeline", q.V.PartTimeout, func(ctx context.Context) (err error) {
		p, err = readPast(ctx, q, id, limit)
		return err
	})
	of := func() []any { return timelineInputs(q, t, p, s, read.Err) }
	return &page.Part{Title: "Timeline", Needs: []*page.Future{read}, Inputs: of, Draw: func() (string, any) {
		if read.Err != nil {
			return "timeline", &timeline{Problem: "The history of this " + q.Kind.Spec.Singular +
				" could not be read. The server's log has the reason."}
		}
		if out := newTimeline(q, t, p, limit, s); out != nil {
			return "timeline", out
		}
		return "", nil
	}}
}

// timelineInputs returns the values that a timeline is drawn from, as the key of its cache.
func timelineInputs(q *page.Exchange, t *spec.Target, p seen.Past, s *page.CellContext, err error) []any {
	all := []any{err != nil, s.Own, p.More, p.AtLimit}
	if sg := findShownVersion(q, p, t.Shape()); sg != nil {
		all = append(all, sg.Version.From)
	}
	body := func(sg *seen.Version) any {
		if sg == nil || !sg.Kept {
			return nil
		}
		return sg.Row.JSON()
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

// newTimeline returns the timeline of a record, or nil if no version is stored.
func newTimeline(q *page.Exchange, t *spec.Target, p seen.Past, limit int, s *page.CellContext) *timeline {
	if len(p.Versions) == 0 {
		return nil
	}
	here := q.Kind.Href + "/" + url.PathEscape(t.ID)
	vars := q.Source.AddressVars(t, t.Instance.ID)
	out := &timeline{}
	shown := findShownVersion(q, p, t.Shape())
	for i, sg := range p.Versions {
		e := newTimelineEntry(q, s, sg, t.Shape())
		e.IsShown = sg == shown
		switch {
		case !sg.Kept || e.IsShown || sg.Version.Shape != t.Shape():
		case i == 0:
			e.AsOfHref, e.AsOfText = here+plan.WithQuery(vars), "Current version"
		default:
			e.AsOfHref, e.AsOfText = here+plan.WithQuery(append(slices.Clone(vars), page.AsOf{At: sg.Version.From}.Param()...)), "This version"
		}
		if sg.Kept && sg.Before != nil && sg.Before.Kept {
			e.CompareHref = here + plan.WithQuery(append(slices.Clone(vars), newCompareParam(sg.Before.Version.From, sg.Version.From)))
		}
		out.Entries = append(out.Entries, e)
	}
	switch {
	case p.AtLimit:
		out.MaxVersions = seen.MaxVersions
	case p.More:
		next := understudy.Param{Name: paramVersions, Value: strconv.Itoa(min(limit*5, seen.MaxVersions))}
		out.Older = q.Clock.AsOf.AddTo(here+plan.WithQuery(append(slices.Clone(vars), next))) + "#timeline"
	}
	out.Action, out.Hidden = here, vars
	out.setComparisonOptions(q, p, t.Shape())
	return out
}

func findShownVersion(q *page.Exchange, p seen.Past, shape string) *seen.Version {
	at := q.Clock.AsOf.At
	if at.IsZero() {
		at = q.Clock.Start
	}
	s, _ := p.VersionAt(at, shape)
	return s
}

func newCompareParam(a, b time.Time) understudy.Param {
	return understudy.Param{Name: paramCompare, Value: page.WriteMoment(a) + momentSeparator + page.WriteMoment(b)}
}

// newTimelineEntry returns the timeline's entry for a version.
func newTimelineEntry(q *page.Exchange, s *page.CellContext, sg *seen.Version, shape string) timelineEntry {
	e := timelineEntry{When: q.Clock.FormatMoment(sg.Version.From, true), TextLost: !sg.Version.Gone && !sg.Kept}
	if !sg.Version.Gone && sg.Version.Shape != shape {
		e.ShapeName = q.Kind.ShapeText(sg.Version.Shape)
	}
	if sg.Version.Number != 0 && q.Rights.Caller.Role() == understudy.RoleAll {
		e.StoreNumber = strconv.FormatInt(sg.Version.Number, 10)
	}
	switch {
	case sg.Version.Gone:
		e.Word, e.Tone = "Deleted", "bad"
	case sg.Back:
		e.Word, e.Tone = "Restored", "good"
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
	all := seen.ChangedFields(sg.Before, sg)
	for _, d := range all[:min(len(all), maxChangedFields)] {
		e.Fields = append(e.Fields, newFieldChange(q, s, sg, d))
	}
	e.MoreFields = int64(len(all) - len(e.Fields))
	return e
}

// newFieldChange returns a field with its values before and after a change.
func newFieldChange(q *page.Exchange, s *page.CellContext, after *seen.Version, d seen.Difference) fieldChange {
	label, before := drawValue(q, s, after.Before, d.Before, d.Name)
	_, later := drawValue(q, s, after, d.After, d.Name)
	return fieldChange{Label: label, Before: before, After: later, Changed: !d.IsSame()}
}

// drawValue returns a value of a version with its label. A value that has a column is shown as in a table, any other
// value as text.
func drawValue(q *page.Exchange, s *page.CellContext, of *seen.Version, v access.Value, name string) (label string, c page.Cell) {
	if col := q.Kind.ByField[name]; col != nil && of != nil && of.Kept {
		c = s.Cell(col, of.Row, false)
		c.Text = understudy.ClipTo(c.Text, page.MaxCellRunes)
		return col.Heading, c
	}
	c = page.Cell{Text: understudy.ClipTo(v.Text, page.MaxCellRunes), Prose: true}
	if v.State == access.Null || v.State == access.Absent || v.Text == "" {
		c = page.Cell{Text: "—", Tone: "none"}
	}
	return plan.UpperFirst(plan.Spell(name)), c
}

// setComparisonOptions sets the versions that the comparison form offers: those whose shape is the page's. The form
// first has the newest version and the version before it selected.
func (t *timeline) setComparisonOptions(q *page.Exchange, p seen.Past, shape string) {
	for _, s := range p.Versions {
		if s.Kept && s.Version.Shape == shape {
			from := s.Version.From
			t.LaterOptions = append(t.LaterOptions, page.Option{Value: page.WriteMoment(from), Text: q.Clock.FormatMoment(from, true).Text})
		}
	}
	if len(t.LaterOptions) < 3 { // two versions need no form, because a link compares them
		t.LaterOptions = nil
		return
	}
	t.FormerOptions = slices.Clone(t.LaterOptions)
	t.LaterOptions[0].Selected, t.FormerOptions[1].Selected = true, true
}
