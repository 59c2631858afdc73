// Read: one page through the gate, the mirror and the gate again. The parts of a
// page are read at once, and the page does not wait for them.

package page

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/plan"
	"understudy/kit/jsonspan"
	"understudy/request"
	"understudy/spec"
)

// glance is how long a part of a page may take; what is not there then is said to
// be missing.
const glance = 10 * time.Second

// atOnce bounds how many parts of one page are read at a time: as many as a page
// has, so that none waits for another.
const atOnce = 16

// Reading is a page as the caller sees it.
type Reading struct {
	Answer *request.Response
	View   *access.View
	Err    error
}

// Read asks for one target. A refusal asks for nothing.
func (q *Exchange) Read(ctx context.Context, t *spec.Target) Reading {
	return q.Rights.ask(ctx, request.Request{Target: t, AsOf: q.Clock.AsOf.At, NoCache: Forced(q.R)})
}

// ReadOn asks for a page of a list that is read from its beginning to its end.
// whole: it must be composed from records. Pages after the first cost no upstream
// request, whatever is held of them.
func (q *Exchange) ReadOn(ctx context.Context, t *spec.Target, whole, first bool) Reading {
	a := request.Request{Target: t, AsOf: q.Clock.AsOf.At, OnlyIfCached: whole || !first}
	if whole {
		a.Local = &request.LocalQuery{}
	}
	return q.Rights.ask(ctx, a)
}

// ask asks the mirror as the caller, through the gate there and back. Everything
// that the viewer reads of upstream's pages is asked here.
func (r *Rights) ask(ctx context.Context, a request.Request) Reading {
	if err := r.Gate.Read(r.Caller, a.Target); err != nil {
		return Reading{Err: err}
	}
	return r.askPermitted(ctx, a)
}

// askPermitted is ask of a target that the gate has let pass.
func (r *Rights) askPermitted(ctx context.Context, a request.Request) Reading {
	a.Flow = r.Caller.Flow
	if r.Caller.Grant != nil {
		a.AgeLimit = r.Caller.Grant.MaxStale
	}
	sight := r.Gate.Sight(r.Caller, a.Target)
	answer, err := sight.Page(ctx, a, r.v.Options.Mirror.Answer)
	if err != nil {
		return Reading{Err: err}
	}
	view, err := sight.View(answer.Page)
	return Reading{answer, view, err}
}

// Asked is a target that is read behind a page.
type Asked struct {
	Future  *Future // nil: it is not read
	Target  *spec.Target
	Reading Reading // once that is over
}

// Beside asks for a target behind the page, for at most a glance.
func (q *Exchange) Beside(t *spec.Target) *Asked {
	a := &Asked{Target: t}
	a.Future = q.Tasks.Begin(t.Key.String(), q.V.Glance, func(ctx context.Context) error {
		a.Reading = q.Read(ctx, t)
		return a.Reading.Err
	})
	return a
}

// Wait is the reading when it is over.
func (a *Asked) Wait() Reading {
	<-a.Future.done
	if a.Future.Err != nil { // it panicked, or had no place
		a.Reading.Err = a.Future.Err
	}
	return a.Reading
}

// ReadAll asks for several targets at once, each for at most a glance.
func (q *Exchange) ReadAll(targets []*spec.Target) []Reading {
	begun := make([]*Asked, len(targets))
	for i, t := range targets {
		begun[i] = q.Beside(t)
	}
	all := make([]Reading, len(targets))
	for i, a := range begun {
		all[i] = a.Wait()
	}
	return all
}

// Rows are the records of a reading; none when it failed.
func (r Reading) Rows() []access.Row {
	if r.View == nil || r.Answer.Page.Status != http.StatusOK {
		return nil
	}
	return r.View.Rows()
}

// Made is what a part of a page is made of that shows a reading.
func (r Reading) Made(q *Exchange) []any {
	if r.View == nil {
		return []any{r.Missing(q)}
	}
	return []any{r.View.Sum[:], r.Answer.Page.Next.URI, r.Missing(q), q.Clock.AgedAt(r.Answer)}
}

// More reports whether there are older records than these.
func (r Reading) More() bool { return r.Answer != nil && !r.Answer.Page.Next.Zero() }

// AgedAt is the moment a reading shows; of a list made from records that of its
// newest page, as what is new is shown since.
func (c *Clock) AgedAt(a *request.Response) *When {
	if a == nil || !c.AsOf.At.IsZero() {
		return nil
	}
	return c.Moment(c.Start.Add(-cmp.Or(a.Newest, a.CurrentAge())))
}

// Missing says why a part of a page is not there, "" when it is.
func (r Reading) Missing(q *Exchange) string {
	title := q.Source.Spec.Title
	var up *understudy.UpstreamError
	switch {
	case r.Err == nil && r.Answer != nil && r.Answer.Page.Status == http.StatusAccepted:
		return computing(q.Source) + "; ask again in a moment."
	case r.Err == nil && r.Answer != nil && r.Answer.Page.Status != http.StatusOK:
		if why := q.Rights.reasonIn(q.Source, r.View.Body); why != nil {
			return fmt.Sprintf("%s refused this (%d): %s.", title, r.Answer.Page.Status, why)
		}
		return fmt.Sprintf("%s refused this (%d).", title, r.Answer.Page.Status)
	case r.Err == nil:
		return ""
	case errors.Is(r.Err, understudy.ErrForbidden):
		return "Your role does not show this."
	case errors.Is(r.Err, understudy.ErrNotMirrored):
		return "your role finds some of these alone, and they are not mirrored yet."
	case !q.Clock.AsOf.At.IsZero() && !errors.Is(r.Err, understudy.ErrForbidden):
		return "what was known of this then cannot be shown."
	case errors.As(r.Err, &up):
		return title + " has not answered (" + up.Short() + "), and " + understudy.WhyNothingHeldAnswers(r.Err) + "."
	case errors.Is(r.Err, context.DeadlineExceeded):
		return fmt.Sprintf("%s has not answered within %d s.", title, int(q.V.Glance/time.Second))
	case errors.Is(r.Err, understudy.ErrUnavailable):
		return title + " is not answering, and " + understudy.WhyNothingHeldAnswers(r.Err) + "."
	}
	return "Something went wrong here; the log of the server says what."
}

// CheckReadable returns the problem of an answer that is no JSON document in an encoding that is
// known, nil: it is one. Upstream said it with status 200, so it is no list without rows.
func CheckReadable(r Reading) error {
	why := r.Answer.Page.NotStored
	if len(r.View.Body) == 0 || why == "" || r.View.Readable() {
		return nil
	}
	return &Problem{
		Title: "This answer cannot be shown", Kind: understudy.ErrUnavailable,
		Hint: "It is no text that can be read here (" + why + "). Programs get it through the drop-in port as it came.",
	}
}

// Open reads the page an address means, of a target that the gate has let pass, and
// begins to ask which numbers are our own; beside (nil: nothing) is begun when the
// page is not held. Data are sent at once; done then is true.
func (q *Exchange) Open(t *spec.Target, beside func()) (view *access.View, own marks, done bool, err error) {
	own = q.V.Numbers.Begin(q)
	var r Reading
	err = q.First(func(ctx context.Context) error {
		r = q.Rights.askPermitted(ctx, request.Request{Target: t, AsOf: q.Clock.AsOf.At, NoCache: Forced(q.R)})
		return nil
	}, beside)
	if err != nil {
		return nil, nil, false, err
	}
	switch {
	case errors.Is(r.Err, understudy.ErrNotMirrored):
		return nil, nil, false, q.Rights.notMirrored(q.Kind, r.Err)
	case r.Err != nil && !q.Clock.AsOf.At.IsZero():
		return nil, nil, false, RefusedThen(q, r.Err)
	case errors.Is(r.Err, understudy.ErrNotFound):
		return nil, nil, false, NoSuch(q.Kind)
	}
	if r.Err != nil {
		return nil, nil, false, r.Err
	}
	q.Answer = r.Answer
	if r.Answer.Page.Status == http.StatusOK {
		if err := Audit(q, q.V.shown(q.Kind, q.Rights.Caller.Role(), q.Clock.AsOf, t, r.View)); err != nil {
			return nil, nil, false, err
		}
	}
	if err := CheckReadable(r); err != nil {
		return nil, nil, false, err
	}
	switch {
	case q.Data == DataSuffix:
		q.send(r.Answer.Page.Status, "application/json", bytes.ToValidUTF8(r.View.Body, []byte("\ufffd")))
		return nil, nil, true, nil
	case r.Answer.Page.Status != http.StatusOK:
		return nil, nil, false, q.Rights.Refused(q.Kind, r.Answer.Page.Status, r.View.Body)
	}
	return r.View, own, false, nil
}

// shown is the audit entry of a page: of a record, with its id and the numbers that the
// caller sees in it, or of a list, with the values it is filtered by.
func (v *Visitor) shown(k *plan.Kind, role string, asOf AsOf, t *spec.Target, view *access.View) understudy.AuditEntry {
	e := understudy.AuditEntry{Action: understudy.ActionList}
	if !asOf.At.IsZero() {
		e.What = "as of an earlier moment"
	}
	if t.Instance != nil {
		rows := view.Rows()
		e.Action, e.Rows, e.IDs = understudy.ActionRecord, len(rows), []string{t.ID}
		for _, row := range rows {
			for _, v := range row.Fields() {
				if v.State == access.Seen && plan.IsNumber(v.Text) {
					e.Values = append(e.Values, v.Text)
				}
			}
		}
		return e
	}
	e.IDs = v.idsIn(view, k, role)
	e.Rows = len(e.IDs)
	if t.List != nil {
		e.Values = append(FilterValues(t.List, t.Query), t.Above()...)
		e.Action = understudy.ListAction(t.First && asOf.At.IsZero(), e.Rows, e.Values)
	}
	return e
}

// idsIn returns the id of each row that a role sees of a list, "" where it does not see the id.
// It reads the same bytes once. Callers must not change the result.
func (v *Visitor) idsIn(view *access.View, k *plan.Kind, role string) []string {
	key := idsKey{view.Sum, k, role}
	named := view.Sum != [16]byte{}
	if ids, ok := v.listed.Get(key); ok && named {
		return ids
	}
	var ids []string
	for _, row := range view.Rows() {
		ids = append(ids, row.ID)
	}
	if named {
		v.listed.Put(key, ids, int64(1+len(ids)))
	}
	return ids
}

// FilterValues are the values a list is filtered by.
func FilterValues(l *spec.List, params understudy.Query) (all []string) {
	for _, p := range params {
		if l.Filter(p.Name) != nil && p.Value != "" {
			all = append(all, p.Value)
		}
	}
	return all
}

// Refused is upstream's own refusal as a page: its words say what was wrong.
func (r *Rights) Refused(k *plan.Kind, status int, body []byte) error {
	if status == http.StatusAccepted {
		return &Problem{Title: computing(k.Source), Hint: "Ask again in a moment.", Kind: understudy.ErrUnavailable}
	}
	p := r.refusal(k.Source, status, body)
	if status == http.StatusNotFound || status == http.StatusGone {
		p.Kind = understudy.ErrNotFound
		p.Href, p.Link = k.Href, "See all "+k.Spec.Title
		p.Title = "There is no such " + k.Spec.One
	}
	return p
}

// computing says that upstream answered a read with 202: there is no answer yet.
func computing(s *plan.Source) string { return s.Spec.Title + " is still computing this" }

// refusal is what upstream's refusal tells a person. The body is as the caller sees it.
func (r *Rights) refusal(s *plan.Source, status int, body []byte) *Problem {
	return &Problem{
		Title: s.Spec.Title + fmt.Sprintf(" refused this (%d)", status),
		Hint:  upstreamWords(body), Reason: r.reasonIn(s, body), Kind: understudy.ErrInvalid,
	}
}

// RefusedWrite is upstream's answer to a write as an error for people: its words, its
// error code with the meaning and the page about it (see ReasonOf). nil: upstream did it.
func (r *Rights) RefusedWrite(s *plan.Source, answer *understudy.Page) error {
	if answer.Status < http.StatusMultipleChoices {
		return nil
	}
	view, err := r.Gate.View(r.Caller, answer)
	if err != nil {
		return err
	}
	return r.refusal(s, answer.Status, view.Body)
}

// ReasonOf is upstream's error code that an error tells of, and its meaning: of a
// Problem, or of an answer that could not be used. nil: it tells of none.
func (r *Rights) ReasonOf(s *plan.Source, err error) *plan.Reason {
	var p *Problem
	if errors.As(err, &p) {
		return p.Reason
	}
	var up *understudy.UpstreamError
	if !errors.As(err, &up) || up.Page == nil || s == nil {
		return nil
	}
	view, err := r.Gate.View(r.Caller, up.Page)
	if err != nil {
		return nil
	}
	return r.reasonIn(s, view.Body)
}

// reasonIn is the error code in the body of an error; nil: there is none.
func (r *Rights) reasonIn(s *plan.Source, body []byte) *plan.Reason {
	code := r.Gate.ErrorCode(s.Name, body)
	if code == "" {
		return nil
	}
	return s.Reason(code)
}

// NoSuch says that there is no such record: it was never seen, or it is hidden
// from the caller.
func NoSuch(k *plan.Kind) error {
	return &Problem{
		Title: "There is no such " + k.Spec.One, Hint: "Check the spelling of the id, or pick the record from its list.",
		Href: k.Href, Link: "See all " + k.Spec.Title, Kind: understudy.ErrNotFound,
	}
}

// notMirrored says that a list cannot be shown to a caller that may find some
// of its records alone, or that asks by a hash.
func (r *Rights) notMirrored(k *plan.Kind, err error) error {
	why := k.Source.Spec.Title + " knows no hashes"
	if r.Gate.Ruled(r.Caller, k.Source.Name) {
		why = "Your role finds some of them alone"
	}
	return &Problem{
		Title: plan.UpperFirst(k.Spec.Title) + " are not mirrored yet",
		Hint:  why + ", so the list is made from the records held here, once all of them are. " + Sentence(err),
		Kind:  understudy.ErrNotMirrored,
	}
}

// upstreamWords is what an error body says to a person: its message, else its
// beginning.
func upstreamWords(body []byte) string {
	if doc, err := jsonspan.Parse(body); err == nil && doc.Kind == jsonspan.Object {
		for _, name := range []string{"message", "detail", "error.message", "error", "title"} {
			if v, ok := jsonspan.Find(body, doc, name); ok && v.Kind == jsonspan.String {
				return "It says: " + understudy.ClipTo(jsonspan.Text(body, v), 400)
			}
		}
	}
	return "It says: " + understudy.ClipTo(string(body), 400)
}
