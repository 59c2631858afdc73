// Timeline: every version of a record that was seen, on the record's page.

package viewer

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"
	"understudy/internal/viewer/plan"

	"understudy"
	"understudy/internal/access"
)

// The bounds of a timeline.
const (
	fewVersions  = 20  // shown at first
	mostVersions = 500 // shown at most
	fewFields    = 8   // changed fields shown of one version
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
	Picks   []option // the moments it offers
	Former  []option // the same, the one before chosen
}

// entry is one version.
type entry struct {
	When    when
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
	Before, After cell
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
	if err != nil || n < 1 || n > mostVersions {
		return 0, badRequest("“"+clip(text)+"” is no number of versions", "Give "+ownVersions+" from 1 to "+strconv.Itoa(mostVersions)+".", nil)
	}
	return n, nil
}

// timelineOf begins to read a record's past; the part shows nothing when nothing
// is kept of it.
func (q past) timelineOf(t *understudy.Target, id string, limit int, s *cellContext) *part {
	var p recordPast
	read := q.begin("timeline", q.v.glance, func(ctx context.Context) (err error) {
		p, err = q.readPast(ctx, id, limit)
		return err
	})
	of := func() []any { return q.madePast(t, p, s, read.err) }
	return &part{title: "Timeline", needs: []*future{read}, of: of, draw: func() (string, any) {
		if read.err != nil {
			return "timeline", &timeline{Problem: "The past of this " + q.kind.One + " could not be read; the log of the server says why."}
		}
		if out := q.timeline(t, p, limit, s); out != nil {
			return "timeline", out
		}
		return "", nil
	}}
}

// madePast is what a timeline is made of.
func (q past) madePast(t *understudy.Target, p recordPast, s *cellContext, err error) []any {
	all := []any{err != nil, s.own, p.more, p.bound}
	if sg := q.shown(p, t.Shape()); sg != nil {
		all = append(all, sg.From)
	}
	body := func(sg *seenVersion) any {
		if sg == nil || !sg.Kept {
			return nil
		}
		return sg.row.Raw()
	}
	for _, sg := range p.versions {
		all = append(all, sg.From, sg.Shape, sg.Number, sg.Gone, sg.Kept, sg.first, sg.back, sg.before != nil, body(sg), body(sg.before))
		if sg.before != nil {
			all = append(all, sg.before.From)
		}
	}
	return all
}

// timeline is nil when nothing is kept of the record's past.
func (q past) timeline(t *understudy.Target, p recordPast, limit int, s *cellContext) *timeline {
	if len(p.versions) == 0 {
		return nil
	}
	here := q.kind.Href + "/" + url.PathEscape(t.ID)
	vars := q.source.Given(t, t.Instance.ID)
	out := &timeline{}
	shown := q.shown(p, t.Shape())
	for i, sg := range p.versions {
		e := q.entry(s, sg, t.Shape())
		e.Shown = sg == shown
		switch {
		case !sg.Kept || e.Shown || sg.Shape != t.Shape():
		case i == 0:
			e.Then, e.ThenIs = here+plan.WithQuery(vars), "As it is"
		default:
			e.Then, e.ThenIs = here+plan.WithQuery(append(slices.Clone(vars), asOf{at: sg.From}.param()...)), "As it was"
		}
		if sg.Kept && sg.before != nil && sg.before.Kept {
			e.Compare = here + plan.WithQuery(append(slices.Clone(vars), compareParam(sg.before.From, sg.From)))
		}
		out.Entries = append(out.Entries, e)
	}
	switch {
	case p.bound:
		out.Bound = mostVersions
	case p.more:
		next := understudy.Param{Name: ownVersions, Value: strconv.Itoa(min(limit*5, mostVersions))}
		out.Older = q.asOf.keep(here+plan.WithQuery(append(slices.Clone(vars), next))) + "#timeline"
	}
	out.Action, out.Hidden = here, vars
	out.picks(q.exchange, p, t.Shape())
	return out
}

// shown is the version the page is about.
func (q past) shown(p recordPast, shape string) *seenVersion {
	at := q.asOf.at
	if at.IsZero() {
		at = q.start
	}
	s, _ := p.at(at, shape)
	return s
}

func compareParam(a, b time.Time) understudy.Param {
	return understudy.Param{Name: paramCompare, Value: writeMoment(a) + compareTo + writeMoment(b)}
}

// entry says what happened at a version.
func (q past) entry(s *cellContext, sg *seenVersion, shape string) entry {
	e := entry{When: say(sg.From, q.start, q.zone, true), Lost: !sg.Gone && !sg.Kept}
	if !sg.Gone && sg.Shape != shape {
		e.Form = q.kind.FormOf(sg.Shape)
	}
	if sg.Number != 0 && q.caller.Role() == understudy.RoleAll {
		e.Number = strconv.FormatInt(sg.Number, 10)
	}
	switch {
	case sg.Gone:
		e.Word, e.Tone = "Gone", "bad"
	case sg.back:
		e.Word, e.Tone = "Came back", "good"
	case sg.first:
		e.Word, e.Tone = "First seen", "good"
	case sg.before == nil:
		e.Word = "Seen"
	default:
		e.Word = "Changed"
	}
	if sg.before == nil || !sg.before.Kept || !sg.Kept {
		return e
	}
	all := changed(sg.before, sg)
	for _, d := range all[:min(len(all), fewFields)] {
		e.Fields = append(e.Fields, q.fieldChange(s, sg, d))
	}
	e.Beyond = int64(len(all) - len(e.Fields))
	return e
}

// fieldChange draws one field of a version and the one before.
func (q past) fieldChange(s *cellContext, after *seenVersion, d difference) fieldChange {
	label, before := q.drawValue(s, after.before, d.before, d.name)
	_, later := q.drawValue(s, after, d.after, d.name)
	return fieldChange{Label: label, Before: before, After: later, Changed: !d.same()}
}

// drawValue draws a value of a version: as its column does, else as text.
func (q past) drawValue(s *cellContext, of *seenVersion, v access.Value, name string) (label string, c cell) {
	if col := q.kind.ByField[name]; col != nil && of != nil && of.Kept {
		c = s.cell(col, of.row, true)
		return col.Heading, c
	}
	c = cell{Text: clipTo(v.Text, clipped), Prose: true}
	if v.State == access.Null || v.State == access.Absent || v.Text == "" {
		c = cell{Text: "—", Tone: "none"}
	}
	return plan.UpperFirst(plan.Spell(name)), c
}

// picks are the versions of the page's shape that can be compared: the page's
// own with the one before at first.
func (t *timeline) picks(q *exchange, p recordPast, shape string) {
	for _, s := range p.versions {
		if s.Kept && s.Shape == shape {
			t.Picks = append(t.Picks, option{Value: writeMoment(s.From), Text: say(s.From, q.start, q.zone, true).Text})
		}
	}
	if len(t.Picks) < 3 { // two are compared by their own link
		t.Picks = nil
		return
	}
	t.Former = slices.Clone(t.Picks)
	t.Picks[0].Selected, t.Former[1].Selected = true, true
}
