// Kind: what a role sees of a kind, field by field, and by which line of the settings.

package roles

import (
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
}

// fieldRow is one field.
type fieldRow struct {
	Field, Title, Class, Level, Tone, Line string
}

// tones are how levels look; another level looks like one that shows a part.
var tones = map[access.Level]string{access.See: "good", access.Hide: "bad"}

// serveKind explains what a role sees of a kind.
func serveKind(q *page.Exchange) error {
	role, err := roleOf(q, q.R.PathValue("role"))
	if err != nil {
		return err
	}
	k := q.Kind
	shown, err := q.V.Gate.Explain(role, k.Source.Name, k.Name)
	if err != nil {
		return err
	}
	p := kindPage{Role: role, RoleHref: href(role), Title: plan.UpperFirst(k.Title), Source: k.Source.Spec.Title, Rows: "every one",
		CanView: role != understudy.RoleAll, ViewAs: page.ViewAsPath}
	if words := rowsOf(q, role, k.Source)[k.Name]; words != "" {
		p.Rows = words
	}
	if k.Browsable() {
		p.List = k.Href
	}
	for _, s := range shown {
		tone, ok := tones[s.Level]
		if !ok {
			tone = "busy"
		}
		p.Fields = append(p.Fields, fieldRow{Field: s.Field, Title: k.ByField[s.Field].Words, Class: s.Class, Level: s.String(), Tone: tone,
			Line: s.Line})
	}
	return q.Render(http.StatusOK, "explain", plan.UpperFirst(k.Title)+" as "+role, p)
}
