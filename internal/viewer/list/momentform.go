// Moment form: asks for an earlier moment beside a list.

package list

import (
	"strings"

	"understudy"
	"understudy/internal/viewer/page"
)

// momentForm asks for a moment beside a list; everything else of its address
// stays.
type momentForm struct {
	Action string
	Hidden understudy.Query
	Input  input
	Zone   string
	Now    string // the same list as it is now; "" = this is it
}

func (q listing) momentForm() *momentForm {
	if !q.Kind.Remembered() {
		return nil
	}
	at := *q.ask
	at.asOf, at.arrangement = page.AsOf{}, arrangement{columns: q.ask.columns} // the past is not searched
	f := &momentForm{Zone: q.Zone.String(), Input: q.asOfInput()}
	now := at.address("", q.ask.filters(), nil)
	path, raw, _ := strings.Cut(now, "?")
	f.Action = path
	if params, err := understudy.ParseQuery(raw); err == nil {
		f.Hidden = params
	}
	if !q.AsOf.At.IsZero() {
		f.Now = now
	}
	return f
}

// asOfInput is the box for the moment.
func (q listing) asOfInput() input {
	in := input{ID: "asof", Name: understudy.OwnAsOf, Label: "As it was known on", Type: "datetime-local", Required: true}
	if !q.AsOf.At.IsZero() {
		l := q.AsOf.At.In(q.Zone)
		in.Value, in.Step = l.Format("2006-01-02T15:04:05"), `step="1"`
		if l.Nanosecond() != 0 {
			in.Value, in.Step = l.Format("2006-01-02T15:04:05.000"), `step="0.001"`
		}
	}
	return in
}
