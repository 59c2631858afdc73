// Kind: what a role sees of a kind, field by field, and by which line of the settings.

package roles

import (
	"errors"
	"net/http"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// kindPage is what explain.html shows.
type kindPage struct {
	Role, RoleHref string
	Title, Source  string
	List           string // the list of the kind; "": it has none of its own
	Rows           string // which records the role may find
	Fields         []fieldRow
	CanView        bool // the caller may look through the role
	ViewAs         string
	ID             string            // of the record that is asked for
	Record         *access.Explained // what the role sees of it; nil: none is asked for
}

// fieldRow is one field.
type fieldRow struct {
	Field, Class, Level, Tone, Line string
	Value                           string // of a record, as JSON; "": it has none
}

// serveKind explains what a role sees of a kind.
func serveKind(q *page.Exchange) error {
	role, err := roleOf(q, q.R.PathValue("role"))
	if err != nil {
		return err
	}
	k := q.Kind
	shown, err := q.V.Options.Gate.Explain(role, k.Source.Name, k.Spec.Name)
	if err != nil {
		return err
	}
	p := kindPage{Role: role, RoleHref: href(role), Title: plan.UpperFirst(k.Spec.Title), Source: k.Source.Spec.Title, Rows: "every one",
		CanView: role != understudy.RoleAll, ViewAs: page.ViewAsPath, ID: q.R.URL.Query().Get("id")}
	if words := rowsOf(q, role, k.Source)[k.Spec.Name]; words != "" {
		p.Rows = words
	}
	if k.Browsable() {
		p.List = k.Href
	}
	for _, s := range shown {
		p.Fields = append(p.Fields, fieldRow{Field: s.Field, Class: s.Class, Level: s.String(), Tone: toneOf(s.Level), Line: s.Line})
	}
	if p.ID != "" {
		if err := p.record(q, role); err != nil {
			return err
		}
	}
	return q.Render(http.StatusOK, "explain", plan.UpperFirst(k.Spec.Title)+" as "+role, p)
}

// toneOf is how a level looks; one that shows a part looks like any other.
func toneOf(l access.Level) string {
	switch l {
	case access.See:
		return "good"
	case access.Hide:
		return "bad"
	}
	return "busy"
}

// record adds what the role sees of a record, and why it may find it.
func (p *kindPage) record(q *page.Exchange, role string) error {
	e, err := q.V.Options.Gate.ExplainRecord(role, q.Source.Name, q.Kind.Spec.Name, p.ID)
	if errors.Is(err, understudy.ErrNotFound) {
		return page.NotFound("No such record is held", "Open the record first, or check its id.", q.R.URL.Path)
	} else if err != nil {
		return err
	}
	looked := understudy.AuditEntry{Action: understudy.ActionRecord, What: "explain to " + role, IDs: []string{p.ID}}
	if err := page.Audit(q, looked); err != nil {
		return err
	}
	p.Record = e
	for i, f := range e.Fields {
		p.Fields[i].Value = understudy.ClipTo(f.Value, mostValue)
	}
	return nil
}

// mostValue is how much of a value is shown, in bytes.
const mostValue = 120
