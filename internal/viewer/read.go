// Read: one page through the gate, the mirror and the gate again; several at
// once for the parts of a page, none of which can hold the page up.

package viewer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"understudy"
	"understudy/internal/access"
)

// glance is how long a part of a page may take; what is not there then is
// said to be missing, and the page goes out without it.
const glance = 3 * time.Second

// atOnce bounds how many parts of one page are read at a time.
const atOnce = 4

// reading is a page as the caller sees it.
type reading struct {
	answer *understudy.Answer
	view   *access.View
	err    error
}

// read asks for one target. A refusal asks for nothing.
func (q *visit) read(ctx context.Context, t *understudy.Target) reading {
	return q.ask(ctx, understudy.Ask{Target: t, NoCache: forced(q.r)})
}

// readOn asks for a page of a list that is read from its beginning to its end.
// whole: it must be composed from records. Pages after the first cost no upstream
// request, whatever is held of them.
func (q *visit) readOn(ctx context.Context, t *understudy.Target, whole, first bool) reading {
	a := understudy.Ask{Target: t, HeldOnly: whole || !first}
	if whole {
		a.Wish = &understudy.Wish{}
	}
	return q.ask(ctx, a)
}

// ask asks the mirror as the caller, through the gate there and back. Everything
// that the viewer reads of upstream's pages is asked here.
func (q *visit) ask(ctx context.Context, a understudy.Ask) reading {
	if err := q.v.Gate.Read(q.caller, a.Target); err != nil {
		return reading{err: err}
	}
	a.AsOf, a.Turn = q.asOf.at, q.caller.Turn
	if q.caller.Grant != nil {
		a.MaxStale = q.caller.Grant.MaxStale
	}
	answer, err := q.v.Gate.Page(ctx, q.caller, a, q.v.Mirror.Page)
	if err != nil {
		return reading{err: err}
	}
	view, err := q.v.Gate.View(q.caller, answer.Page)
	return reading{answer, view, err}
}

// readAll asks for several targets at once, each for at most a glance. A nil
// target is passed over.
func (q *visit) readAll(targets []*understudy.Target) []reading {
	all := make([]reading, len(targets))
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, t := range targets {
		if t == nil {
			continue
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(q.ctx, glance)
			defer cancel()
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				if err := contain(func() error { all[i] = q.read(ctx, t); return nil }); err != nil {
					q.v.Logger.ErrorContext(ctx, "viewer: read beside a page", "key", t.Key.String(), "error", err)
					all[i] = reading{err: err}
				}
			case <-ctx.Done():
				all[i].err = ctx.Err()
			}
		})
	}
	wg.Wait()
	return all
}

// rows are the records of a reading; none when it failed.
func (r reading) rows() []access.Row {
	if r.view == nil || r.answer.Page.Status != http.StatusOK {
		return nil
	}
	return r.view.Rows()
}

// more reports whether there are older records than these.
func (r reading) more() bool { return r.answer != nil && !r.answer.Page.Next.Zero() }

// agedAt is the moment a reading shows.
func (q *visit) agedAt(a *understudy.Answer) *when {
	if a == nil || !q.asOf.at.IsZero() {
		return nil
	}
	return q.moment(q.start.Add(-a.Age))
}

// missing says why a part of a page is not there, "" when it is.
func (q *visit) missing(r reading) string {
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
		return fmt.Sprintf("%s has not answered within %d s.", title, int(glance/time.Second))
	case errors.Is(r.err, understudy.ErrUnavailable):
		return title + " is not answering, and nothing of this is held."
	}
	return "Something went wrong here; the log of the server says what."
}

// open reads the page an address means, and begins to ask which numbers are
// our own. Data are sent at once; done then is true.
func (q *visit) open(t *understudy.Target) (view *access.View, own marks, done bool, err error) {
	if err := q.v.Gate.Read(q.caller, t); err != nil {
		return nil, nil, false, err
	}
	own = q.v.numbers.begin(q)
	r := q.read(q.ctx, t)
	switch {
	case errors.Is(r.err, understudy.ErrNotMirrored):
		return nil, nil, false, q.notMirrored(r.err)
	case r.err != nil && !q.asOf.at.IsZero():
		return nil, nil, false, q.refusedThen(r.err)
	case errors.Is(r.err, understudy.ErrNotFound):
		return nil, nil, false, q.noSuch()
	}
	if r.err != nil {
		return nil, nil, false, r.err
	}
	q.answer = r.answer
	switch {
	case q.data == dataSuffix:
		q.send(r.answer.Page.Status, r.view.ContentType, r.view.Body)
		return nil, nil, true, nil
	case r.answer.Page.Status != http.StatusOK:
		return nil, nil, false, q.refused(r.view.Body)
	}
	return r.view, own, false, nil
}
