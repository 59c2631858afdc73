// Read: one page through the gate, the mirror and the gate again; several at
// once for the parts of a page, none of which can hold the page up.

package viewer

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
)

// glance is how long a part of a page may take; what is not there then is said to
// be missing.
const glance = 10 * time.Second

// atOnce bounds how many parts of one page are read at a time: as many as a page
// has, so that none waits for another.
const atOnce = 16

// reading is a page as the caller sees it.
type reading struct {
	answer *understudy.Answer
	view   *access.View
	err    error
}

// read asks for one target. A refusal asks for nothing.
func (q *exchange) read(ctx context.Context, t *understudy.Target) reading {
	return q.ask(ctx, understudy.Ask{Target: t, NoCache: forced(q.r)})
}

// readOn asks for a page of a list that is read from its beginning to its end.
// whole: it must be composed from records. Pages after the first cost no upstream
// request, whatever is held of them.
func (q *exchange) readOn(ctx context.Context, t *understudy.Target, whole, first bool) reading {
	a := understudy.Ask{Target: t, HeldOnly: whole || !first}
	if whole {
		a.Wish = &understudy.Wish{}
	}
	return q.ask(ctx, a)
}

// ask asks the mirror as the caller, through the gate there and back. Everything
// that the viewer reads of upstream's pages is asked here.
func (q *exchange) ask(ctx context.Context, a understudy.Ask) reading {
	if err := q.gate.Read(q.caller, a.Target); err != nil {
		return reading{err: err}
	}
	a.AsOf, a.Turn = q.asOf.at, q.caller.Turn
	if q.caller.Grant != nil {
		a.MaxStale = q.caller.Grant.MaxStale
	}
	answer, err := q.gate.Page(ctx, q.caller, a, q.v.Mirror.Page)
	if err != nil {
		return reading{err: err}
	}
	view, err := q.gate.View(q.caller, answer.Page)
	return reading{answer, view, err}
}

// asked is a target that is read behind a page.
type asked struct {
	*future // nil: it is not read
	target  *understudy.Target
	reading reading // once that is over
}

// beside asks for a target behind the page, for at most a glance.
func (q *exchange) beside(t *understudy.Target) *asked {
	a := &asked{target: t}
	a.future = q.begin(t.Key.String(), q.v.glance, func(ctx context.Context) error {
		a.reading = q.read(ctx, t)
		return a.reading.err
	})
	return a
}

// wait is the reading when it is over.
func (a *asked) wait() reading {
	<-a.done
	if a.err != nil { // it panicked, or had no place
		a.reading.err = a.err
	}
	return a.reading
}

// readAll asks for several targets at once, each for at most a glance.
func (q *exchange) readAll(targets []*understudy.Target) []reading {
	begun := make([]*asked, len(targets))
	for i, t := range targets {
		begun[i] = q.beside(t)
	}
	all := make([]reading, len(targets))
	for i, a := range begun {
		all[i] = a.wait()
	}
	return all
}

// rows are the records of a reading; none when it failed.
func (r reading) rows() []access.Row {
	if r.view == nil || r.answer.Page.Status != http.StatusOK {
		return nil
	}
	return r.view.Rows()
}

// made is what a part of a page is made of that shows a reading.
func (q *exchange) made(r reading) []any {
	if r.view == nil {
		return []any{q.missing(r)}
	}
	return []any{r.view.Sum[:], r.answer.Page.Next.URI, q.missing(r), q.agedAt(r.answer)}
}

// more reports whether there are older records than these.
func (r reading) more() bool { return r.answer != nil && !r.answer.Page.Next.Zero() }

// agedAt is the moment a reading shows; of a list made from records that of its
// newest page, as what is new is shown since.
func (q *exchange) agedAt(a *understudy.Answer) *when {
	if a == nil || !q.asOf.at.IsZero() {
		return nil
	}
	return q.moment(q.start.Add(-cmp.Or(a.Newest, a.CurrentAge())))
}

// missing says why a part of a page is not there, "" when it is.
func (q *exchange) missing(r reading) string {
	title := q.source.Spec.Title
	var up *understudy.UpstreamError
	switch {
	case r.err == nil && r.answer != nil && r.answer.Page.Status != http.StatusOK:
		return fmt.Sprintf("%s refused this (%d).", title, r.answer.Page.Status)
	case r.err == nil:
		return ""
	case errors.Is(r.err, understudy.ErrForbidden):
		return "Your role does not show this."
	case errors.Is(r.err, understudy.ErrNotMirrored):
		return "your role finds some of these alone, and they are not mirrored yet."
	case !q.asOf.at.IsZero() && !errors.Is(r.err, understudy.ErrForbidden):
		return "what was known of this then cannot be shown."
	case errors.As(r.err, &up):
		return title + " has not answered (" + up.Short() + "), and nothing of this is held."
	case errors.Is(r.err, context.DeadlineExceeded):
		return fmt.Sprintf("%s has not answered within %d s.", title, int(q.v.glance/time.Second))
	case errors.Is(r.err, understudy.ErrUnavailable):
		return title + " is not answering, and nothing of this is held."
	}
	return "Something went wrong here; the log of the server says what."
}

// unreadable is the problem of an answer that is no JSON document in an
// encoding that is known. Upstream said it with status 200, so it is no list
// without rows.
func unreadable(why string) error {
	return &problem{
		Title: "This answer cannot be shown", kind: understudy.ErrUnavailable,
		Hint: "It is no text that can be read here (" + why + "). Programs get it through the drop-in port as it came.",
	}
}

// open reads the page an address means, and begins to ask which numbers are
// our own; beside (nil: nothing) is begun when the page is not held. Data are sent
// at once; done then is true.
func (q *exchange) open(t *understudy.Target, beside func()) (view *access.View, own marks, done bool, err error) {
	if err := q.gate.Read(q.caller, t); err != nil {
		return nil, nil, false, err
	}
	own = q.v.numbers.begin(q)
	var r reading
	if err := q.first(func(ctx context.Context) error { r = q.read(ctx, t); return nil }, beside); err != nil {
		return nil, nil, false, err
	}
	switch {
	case errors.Is(r.err, understudy.ErrNotMirrored):
		return nil, nil, false, notMirrored(q, r.err)
	case r.err != nil && !q.asOf.at.IsZero():
		return nil, nil, false, refusedThen(q, r.err)
	case errors.Is(r.err, understudy.ErrNotFound):
		return nil, nil, false, noSuch(q)
	}
	if r.err != nil {
		return nil, nil, false, r.err
	}
	q.answer = r.answer
	switch {
	case len(r.view.Body) > 0 && r.answer.Page.NotStored != "" && !r.view.Readable():
		return nil, nil, false, unreadable(r.answer.Page.NotStored)
	case q.data == dataSuffix:
		q.send(r.answer.Page.Status, "application/json", bytes.ToValidUTF8(r.view.Body, []byte("\ufffd")))
		return nil, nil, true, nil
	case r.answer.Page.Status != http.StatusOK:
		return nil, nil, false, refused(q, r.view.Body)
	}
	return r.view, own, false, nil
}

// refused is upstream's own refusal as a page: its words say what was wrong.
func refused(q *exchange, body []byte) error {
	p := &problem{
		Title: q.source.Spec.Title + fmt.Sprintf(" refused this (%d)", q.answer.Page.Status),
		Hint:  upstreamWords(body), kind: understudy.ErrInvalid,
	}
	if q.answer.Page.Status == http.StatusNotFound || q.answer.Page.Status == http.StatusGone {
		p.kind = understudy.ErrNotFound
		p.Href, p.Link = q.kind.Href, "See all "+q.kind.Title
		p.Title = "There is no such " + q.kind.One
	}
	return p
}

// noSuch says that there is no such record: it was never seen, or it is hidden
// from the caller.
func noSuch(q *exchange) error {
	return &problem{
		Title: "There is no such " + q.kind.One, Hint: "Check the spelling of the id, or pick the record from its list.",
		Href: q.kind.Href, Link: "See all " + q.kind.Title, kind: understudy.ErrNotFound,
	}
}

// notMirrored says that a list cannot be shown to a caller that may find some
// of its records alone.
func notMirrored(q *exchange, err error) error {
	return &problem{
		Title: plan.UpperFirst(q.kind.Title) + " are not mirrored yet",
		Hint:  "Your role finds some of them alone, so the list is made from the records held here, once all of them are. " + sentence(err),
		kind:  understudy.ErrNotMirrored,
	}
}

// upstreamWords is what an error body says to a person: its message, else its
// beginning.
func upstreamWords(body []byte) string {
	if doc, err := jsonspan.Document(body); err == nil && doc.Kind == jsonspan.Object {
		for _, name := range []string{"message", "detail", "error.message", "error", "title"} {
			if v, ok := jsonspan.Find(body, doc, name); ok && v.Kind == jsonspan.String {
				return "It says: " + clipTo(jsonspan.Text(body, v), 400)
			}
		}
	}
	return "It says: " + clipTo(string(body), 400)
}
