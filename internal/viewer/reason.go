// Reason: why a record failed, or upstream refused, in words for people.

package viewer

import (
	"strings"

	"understudy/internal/access"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// reason says which code a record carries, in upstream's words where it gives
// any, else what the code means, and where upstream explains it. A failed state
// speaks for itself.
func (rv *record) reason(p *detailPage, row access.Row) {
	f := rv.codeField(row)
	if f == nil {
		return
	}
	code := row.Field(f.Name).Text
	why := rv.q.Source.Reason(code)
	p.Status.Reason = plan.UpperFirst(plan.TitleOf(f)) + " " + code
	if stem, ok := strings.CutSuffix(f.Name, "code"); ok {
		if words := row.Field(stem + "message"); words.State == access.Seen && words.Text != "" {
			p.Status.Reason += ": " + strings.TrimSuffix(words.Text, ".")
			p.Status.Docs = why.Docs
			return
		}
	}
	p.Status.Meaning, p.Status.Docs = why.Meaning, why.Docs
}

// codeField is the field that says why a record failed: a code of the API, or
// what the spec calls failed whenever it is there.
func (rv *record) codeField(row access.Row) *spec.Field {
	set := func(name string) bool {
		v := row.Field(name)
		return v.State == access.Seen && v.Text != ""
	}
	for _, st := range rv.q.Kind.Spec.Failed {
		if len(st.In) == 0 && set(st.Field) {
			return rv.q.Kind.Spec.Field(st.Field)
		}
	}
	for _, f := range rv.q.Kind.Spec.Fields {
		if f.Type == spec.TypeCode && set(f.Name) {
			return f
		}
	}
	return nil
}
