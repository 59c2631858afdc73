// The page that explains which fields of a kind a role may see, and which lines of the settings decide that.

package roles

import (
	"errors"
	"net/http"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// kindPage is the data of the template explain.html.
type kindPage struct {
	Role, RoleHref string
	Title, Source  string
	List           string // the address of the kind's list; empty if the list needs the id of a parent record
	Rows           string // which records of the kind the role may find, in words
	Fields         []fieldRow
	CanView        bool // whether the caller may view the pages as the role
	ViewAs         string
	ID             string                    // the id of the record for which the page explains what the role sees; may be empty
	Record         *access.RecordExplanation // what the role sees of the record; nil without an id
}

// fieldRow says what the role sees of one field.
type fieldRow struct {
	Field, Class, Level, Tone, Line string
	Value                           string // the value in the record as JSON; empty if the record does not have the field
}

// serveKind explains what a role may see of a kind.
func serveKind(q *page.Exchange) error {
	role, err := findRole(q, q.R.PathValue("role"))
	if err != nil {
		return err
	}
	k := q.Kind
	shown, err := q.V.Options.Gate.Explain(role, k.Source.Name, k.Spec.Name)
	if err != nil {
		return err
	}
	p := kindPage{Role: role, RoleHref: href(role), Title: plan.UpperFirst(k.Spec.Title), Source: k.Source.Spec.Title, Rows: "all records",
		CanView: role != understudy.RoleAll, ViewAs: page.ViewAsPath, ID: q.R.URL.Query().Get("id")}
	if words := rowsOf(q, role, k.Source)[k.Spec.Name]; words != "" {
		p.Rows = words
	}
	if k.IsBrowsable() {
		p.List = k.Href
	}
	for _, s := range shown {
		p.Fields = append(p.Fields, fieldRow{Field: s.Field, Class: s.Class, Level: levelText(s.String()), Tone: toneOf(s.Level), Line: s.Line})
	}
	if p.ID != "" {
		if err := p.addRecord(q, role); err != nil {
			return err
		}
	}
	return q.Render(http.StatusOK, "explain", plan.UpperFirst(k.Spec.Title)+" as "+role, p)
}

// toneOf returns the CSS class for a level of access. All levels between see and hide have the same class.
func toneOf(l access.Level) string {
	switch l {
	case access.See:
		return "good"
	case access.Hide:
		return "bad"
	}
	return "busy"
}

// addRecord adds what the role sees of a record, and why it may or may not find the record.
func (p *kindPage) addRecord(q *page.Exchange, role string) error {
	e, err := q.V.Options.Gate.ExplainRecord(role, q.Source.Name, q.Kind.Spec.Name, p.ID)
	if errors.Is(err, understudy.ErrNotFound) {
		return page.NewNotFound("This record is not stored here", "Open the record first, or check its id.", q.R.URL.Path)
	} else if err != nil {
		return err
	}
	looked := understudy.AuditEntry{Action: understudy.ActionRecord, What: "explain to " + role, IDs: []string{p.ID}}
	if err := page.WriteAudit(q, looked); err != nil {
		return err
	}
	p.Record = e
	for i, f := range e.Fields {
		p.Fields[i].Value = understudy.ClipTo(f.Value, maxValue)
	}
	return nil
}

// maxValue is the maximum number of bytes that the page shows of a value.
const maxValue = 120
