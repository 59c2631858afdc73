// The reason why a record failed, or why upstream refused a request, in words.

package viewer

import (
	"strings"

	"understudy/internal/access"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// setReason shows the error code of a failed record and links to upstream's documentation of the code. It adds the
// message in the record if there is one, else the spec's explanation of the code.
func (rv *recordView) setReason(p *detailPage, row access.Row) {
	f := rv.failureField(row)
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

// failureField returns the field that says why a record failed: a field that the spec lists as a failure whenever it
// is set, or a field of type code. It returns nil if no such field is set.
func (rv *recordView) failureField(row access.Row) *spec.Field {
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
