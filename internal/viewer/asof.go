// As of: pages that show what was known at an earlier moment, and the way back
// to now.

package viewer

import (
	"errors"
	"net/http"
	"strings"
	"time"
	"understudy/internal/viewer/plan"

	"understudy"
)

// asOf is the moment a page is asked for; the zero value is now.
type asOf struct {
	at   time.Time
	tidy bool // the address was already written as ours are
}

// param is the moment as our addresses write it: RFC 3339 in UTC, as exact as
// it was given.
func (a asOf) param() understudy.Query {
	if a.at.IsZero() {
		return nil
	}
	return understudy.Query{{Name: understudy.OwnAsOf, Value: writeMoment(a.at)}}
}

// writeMoment is a moment in an address.
func writeMoment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// readAsOf reads the parameter. An empty one is none.
func (q *exchange) readAsOf(params understudy.Query) error {
	q.asOf = asOf{tidy: true}
	seen := 0
	for _, p := range params {
		if p.Name != understudy.OwnAsOf {
			continue
		}
		if seen++; seen > 1 {
			return badRequest(understudy.OwnAsOf+" is given twice", "Give one moment.", nil)
		}
		if p.Value == "" {
			q.asOf.tidy = false
			continue
		}
		at, ok := parseMoment(p.Value, q.zone)
		switch {
		case !ok:
			return badRequest("“"+clip(p.Value)+"” is no moment", "Give "+understudy.OwnAsOf+" as 2026-06-01T12:00:00Z; without a zone it is in "+q.zone.String()+", and a day alone means its beginning.", nil)
		case at.After(q.start):
			return badRequest("“"+clip(p.Value)+"” is yet to come", "Give "+understudy.OwnAsOf+" a moment in the past.", nil)
		}
		q.asOf = asOf{at: at, tidy: writeMoment(at) == p.Value}
	}
	return nil
}

// parseMoment reads RFC 3339, and without a zone a date and time or a day, which
// means its beginning, in the reader's zone. A plus that an address made a space
// of is read as one.
func parseMoment(text string, zone *time.Location) (t time.Time, ok bool) {
	for _, form := range []string{text, plusAgain(text)} {
		if t, err := time.Parse(time.RFC3339, form); err == nil {
			return t, within(t)
		}
	}
	if t, ok := parseLocal(text, zone); ok {
		return t, within(t)
	}
	t, err := time.ParseInLocation(time.DateOnly, text, zone)
	return t, err == nil && within(t)
}

// plusAgain puts the plus of a zone back where an address made a space of it.
func plusAgain(text string) string {
	if i := strings.LastIndexByte(text, ' '); i > len(time.DateOnly) {
		return text[:i] + "+" + text[i+1:]
	}
	return text
}

// within keeps to the years that times are kept in.
func within(t time.Time) bool { return t.Year() >= 1970 && t.Year() < 2200 }

// keep is an address of this viewer at the moment the page at hand shows.
func (a asOf) keep(href string) string {
	if a.at.IsZero() || href == "" {
		return href
	}
	href, anchor, marked := strings.Cut(href, "#")
	if strings.Contains(href, "?") {
		href += "&" + a.param().String()
	} else {
		href += "?" + a.param().String()
	}
	if marked {
		href += "#" + anchor
	}
	return href
}

// then is what a page of an earlier moment says at its top.
type then struct {
	When when
	Now  string // the same page, now
}

// then is nil on a page of now.
func (q layout) then() *then {
	if q.asOf.at.IsZero() {
		return nil
	}
	return &then{When: say(q.asOf.at, q.start, q.zone, true), Now: q.addressWith(nil)}
}

// addressWith is the address at hand with another moment, nil for now.
func (q *exchange) addressWith(moment understudy.Query) string {
	params, err := understudy.ParseQuery(q.r.URL.RawQuery)
	if err != nil {
		params = nil
	}
	params = params.Without(func(p understudy.Param) bool { return p.Name == understudy.OwnAsOf })
	return q.r.URL.EscapedPath() + plan.WithQuery(append(params, moment...))
}

// tidyMoment sends a reader whose address spells the moment in another way to
// the one that can be passed on; done then is true.
func (q *exchange) tidyMoment() (done bool) {
	if q.asOf.tidy {
		return false
	}
	q.w.Header().Set("Cache-Control", "no-store")
	http.Redirect(q.w, q.r, q.addressWith(q.asOf.param()), http.StatusSeeOther)
	return true
}

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
	if !q.kind.Remembered() {
		return nil
	}
	at := *q.ask
	at.asOf, at.arrangement = asOf{}, arrangement{columns: q.ask.columns} // the past is not searched
	f := &momentForm{Zone: q.zone.String(), Input: q.asOfInput()}
	now := at.address("", q.ask.filters(), nil)
	path, raw, _ := strings.Cut(now, "?")
	f.Action = path
	if params, err := understudy.ParseQuery(raw); err == nil {
		f.Hidden = params
	}
	if !q.asOf.at.IsZero() {
		f.Now = now
	}
	return f
}

// asOfInput is the box for the moment.
func (q listing) asOfInput() input {
	in := input{ID: "asof", Name: understudy.OwnAsOf, Label: "As it was known on", Type: "datetime-local", Required: true}
	if !q.asOf.at.IsZero() {
		l := q.asOf.at.In(q.zone)
		in.Value, in.Step = l.Format("2006-01-02T15:04:05"), `step="1"`
		if l.Nanosecond() != 0 {
			in.Value, in.Step = l.Format("2006-01-02T15:04:05.000"), `step="0.001"`
		}
	}
	return in
}

// refusedThen is an error of the mirror's about an earlier moment, for people.
func refusedThen(q *exchange, err error) error {
	switch {
	case errors.Is(err, understudy.ErrInvalid):
		_, why, _ := strings.Cut(err.Error(), understudy.ErrInvalid.Error()+": ")
		return &problem{
			Title: "This cannot be shown as it was known then", Hint: plan.UpperFirst(strings.TrimSuffix(why, ".")) + ".",
			Href: q.addressWith(nil), Link: "See it as it is now", kind: understudy.ErrInvalid,
		}
	case !errors.Is(err, understudy.ErrNotFound) && !errors.Is(err, understudy.ErrNotHeld):
		return err
	}
	return &problem{
		Title: "Nothing of this was known on " + say(q.asOf.at, q.start, q.zone, true).Text,
		Hint:  "It had not been seen yet, or it was gone. What is not kept of the past cannot be shown.",
		Href:  q.addressWith(nil), Link: "See it as it is now", kind: understudy.ErrNotFound,
	}
}
