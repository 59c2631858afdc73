// Fetch: one page on a walk, its weight, and what becomes of it when upstream
// does not answer.

package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy"
	"understudy/internal/crawl/overlap"
	"understudy/kit/cycle"
	"understudy/kit/retry"
	"understudy/request"
	"understudy/spec"
)

const (
	tries     = 3 // of one page, before the walk comes back later
	firstWait = time.Second
	factor    = 2 // what a body takes in memory besides itself
)

// jobRun is one run of a job.
type jobRun struct {
	w    *Crawler
	run  Run
	x    *kindCrawl
	work payload

	looks bool // it looks again at records that are not final

	mu     sync.Mutex
	weight int64 // of what it gathers, without its pages
	pages  int64 // brought so far
	ends   ends
	sights overlap.Sights
}

// weigh adds to the memory weight of what the run gathers.
func (t *jobRun) weigh(ctx context.Context, by int64) error {
	t.mu.Lock()
	t.weight += by
	sum := t.weight
	t.mu.Unlock()
	return heavy(t.run.Weigh(ctx, sum))
}

// heavyError ends a run for which there is not enough memory now.
type heavyError struct{ error }

// Unwrap returns the error of the runner.
func (e *heavyError) Unwrap() error { return e.error }

func heavy(err error) error {
	if err != nil {
		return &heavyError{err}
	}
	return nil
}

// moved reports whether the run has fetched a page.
func (t *jobRun) moved() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pages > 0
}

// fetch fetches a page and saves its records. The memory of the page is released
// when the page is no longer used, at the latest at the caller's next fetch. Walks
// read only the rows of a page.
func (t *jobRun) fetch(ctx context.Context, target *spec.Target) (*understudy.Page, error) {
	var err error
	for try := range tries {
		if try > 0 {
			if err := retry.Sleep(ctx, retry.Backoff(firstWait, time.Minute, try-1)); err != nil {
				return nil, err
			}
		}
		var landed request.PageSaved
		if landed, err = t.once(ctx, target); err == nil {
			t.mu.Lock()
			t.pages++
			t.mu.Unlock()
			return landed.Page, nil
		}
		if landed.Page != nil && isToldAsError(landed.Page) {
			if err = (&toldError{err, landed.Page}); try > 0 {
				break
			}
		}
		if !passing(err) || ctx.Err() != nil {
			return nil, err
		}
		var failed *understudy.UpstreamError
		if errors.As(err, &failed) && (failed.RetryAfter > 0 || failed.Why == understudy.FailUnusable || waits(failed)) {
			return nil, &understudy.Snooze{Wait: max(failed.RetryAfter, 5*time.Second), Err: err}
		}
	}
	return nil, &understudy.Snooze{Wait: 5 * time.Second, Err: err}
}

// waits reports whether nothing is asked while what failed lasts: coming back costs no
// request then.
func waits(e *understudy.UpstreamError) bool {
	return e.Why == understudy.FailDown || e.Why == understudy.FailCredential
}

// once is one attempt. A page that does not fit into memory beside others waits.
func (t *jobRun) once(ctx context.Context, target *spec.Target) (request.PageSaved, error) {
	weigh := t.run.Weigher()
	landed, err := t.w.o.Mirror.Fill(ctx, request.Fill{
		Target: target, Reason: request.Sync, RecordsOnly: target.List != nil, Look: t.looks || target.List == nil,
		Reserve: func(ctx context.Context, bytes int64) error { return heavy(weigh(ctx, bytes*factor)) },
	})
	switch p := landed.Page; {
	case p != nil && len(p.Rows) > 0:
		rows := *p
		rows.Body = nil // walks read only the rows, and the memory is released
		if rows.Status == http.StatusPartialContent {
			rows.Status = http.StatusOK // no part of a list was asked for
		}
		landed.Page = &rows
	case p != nil && p.Status == http.StatusNoContent && target.List != nil:
		none := *p
		none.Status = http.StatusOK
		landed.Page, err = &none, nil // it has nothing to store
	}
	return landed, errors.Join(err, heavy(weigh(ctx, 0)))
}

// passing reports whether an error goes away by itself.
func passing(err error) bool {
	return errors.Is(err, understudy.ErrUnavailable) || errors.Is(err, understudy.ErrNotStored) || errors.Is(err, understudy.ErrOutdated)
}

// refusal is a list page upstream refused.
type refusal struct {
	page  *understudy.Page
	spec  *spec.Spec
	again int // how often the list was begun again before
}

// Error says what was refused.
func (r *refusal) Error() string {
	if r.again > 0 {
		return fmt.Sprintf("walk: %s: upstream refuses to go on in the list: %s; it was begun again %d times, and its end never reached",
			r.page.Key, answerOf(r.page), r.again)
	}
	return fmt.Sprintf("walk: %s: upstream refuses the list: %s", r.page.Key, answerOf(r.page))
}

// Is has the job fail at once where the list was begun again for nothing.
func (r *refusal) Is(target error) bool { return r.again > 0 && target == understudy.ErrInvalid }

// retention reports whether the refusal says that what was asked for is older
// than what upstream keeps.
func (r *refusal) retention() bool {
	code := r.spec.Errors.Code("retention")
	return code != "" && r.page.Status == http.StatusBadRequest && strings.Contains(string(r.page.Body), code)
}

// endlessError ends a walk over a list without an end, or without one that is proven. It fails the job at once: to go
// on would find the same.
type endlessError struct{ text string }

// endless says which list has no end, or none that is proven, and how that was noticed.
func endless(key understudy.Key, why string) *endlessError {
	return &endlessError{fmt.Sprintf("walk: %s: upstream's %s", key, why)}
}

// Error says which list it is, and why.
func (e *endlessError) Error() string { return e.text }

// Is has the job fail.
func (e *endlessError) Is(target error) bool { return target == understudy.ErrInvalid }

// position is where a walk over one list goes on.
type position struct {
	List   int      `json:"list,omitempty"`
	Next   string   `json:"next,omitempty"`   // the link; "" = the first page
	Last   []string `json:"last,omitempty"`   // of pages by number: the last rows before it
	Apart  bool     `json:"apart,omitempty"`  // of those by number: it does not begin with one of these rows
	Plain  string   `json:"plain,omitempty"`  // of those that do: upstream's own link
	Before string   `json:"before,omitempty"` // the link of the page before it
	Fixed  bool     `json:"fixed,omitempty"`  // upstream takes no other page sizes, so that pages cannot overlap

	Rows   int64 `json:"rows,omitempty"`   // different rows of the list so far
	Most   int   `json:"most,omitempty"`   // rows of the largest page
	Total  int64 `json:"total,omitempty"`  // the fewest rows that an answer said all pages have (understudy.Page.Total)
	Shown  int64 `json:"shown,omitempty"`  // pages so far
	Stated int64 `json:"stated,omitempty"` // the fewest pages that an answer said there are
	Beyond bool  `json:"beyond,omitempty"` // the next page is asked for though no page leads to it
	Again  int   `json:"again,omitempty"`  // how often the list was begun anew

	Pages cycle.Pages `json:"pages,omitzero"` // those before it
}

// onward is the position after a page, and why the list may go on where it ends there. Pages
// by number or offset overlap, where they can.
func (at position) onward(first, target *spec.Target, page *understudy.Page) (position, understudy.OpenEnd) {
	at.Next, at.Before, at.Last, at.Apart, at.Plain, at.Beyond = page.Next.URI, page.Key.URI, nil, false, "", false
	if at.Next == "" {
		beyond, d := at.behind(target, page)
		if beyond == nil {
			return at, d
		}
		at.Next, at.Beyond = beyond.Key.URI, true
	}
	if target.Sliding() == "" && !target.ByLastID() {
		return at, understudy.OpenEnd{}
	}
	ids := every(page)
	if at.Last = ids[max(0, len(ids)-10):]; target.Sliding() == "" {
		return at, understudy.OpenEnd{}
	}
	at.Apart = true
	if next := target.Overlapping(first, len(ids)); next != nil && !at.Fixed && !at.Beyond {
		at.Next, at.Apart, at.Plain = next.Key.URI, false, at.Next
	}
	if after := target.Beyond(1); len(ids) < 2 && after != nil && after.Key.URI == at.Next && at.Most > 1 {
		at.Next = target.Beyond(at.Most).Key.URI // the others were left out after a page of so many was cut
	}
	return at, understudy.OpenEnd{}
}

// forEachPage walks one list from a position to its end. It calls see with each
// page and the position after it. At the end the link of that position is "".
// Of pages by number or offset see gets the rows that are new. An end that is not proven is
// noted for the job. Where upstream refuses to go on, the list is begun again.
func (t *jobRun) forEachPage(ctx context.Context, first *spec.Target, at position, see func(*understudy.Page, position) error) error {
	src, target, trail := t.x.plan.source, first, overlap.Trail{}
	follow := func(link string) (err error) {
		target, err = src.Spec.Follow(src.Name, link)
		return err
	}
	if at.Next == "" {
		at = position{List: at.List, Again: at.Again}
	} else if err := follow(at.Next); err != nil {
		return err
	}
	if first == nil {
		first = target
	}
	trail.Saw(at.Last)
	again := func() {
		at, target, trail = at.again(), first, overlap.Trail{}
		trail.Saw(nil)
		t.sights.Forget()
	}
	var end understudy.OpenEnd
	for {
		if most := int64(t.w.o.Settings.Pages); at.Pages.Count >= most {
			return endless(target.Key, fmt.Sprintf(
				"list goes on after %d pages, and is taken for one without an end; raise sync.pages if it has one", most))
		}
		page, err := t.fetch(ctx, target)
		var told *toldError
		if errors.As(err, &told) && at.Next != "" {
			page, err = told.page, nil
		}
		if err != nil {
			return err
		}
		refused := &refusal{page: page, spec: src.Spec}
		switch {
		case page.Status == http.StatusOK && told == nil && !misplaced(first, target, page, at, &trail):
		case at.Plain != "" && slices.Contains([]int{200, 400, 404, 422}, page.Status):
			at.Next, at.Apart, at.Plain, at.Fixed = at.Plain, true, "", true
			if err := follow(at.Next); err != nil {
				return err
			}
			continue
		case at.Next != "" && isDead(page) && (at.Beyond || target.Guessed()) && !refused.retention():
			end = understudy.OpenEnd{Kind: understudy.OpenRefuted, Why: "the page behind the last one has " + answerOf(page)}
			if at.Pages.Empty > 0 && at.lacking() == "" || at.Total > 0 && at.Total == at.Rows && provesEnd(page, at.Total) {
				end = understudy.OpenEnd{} // the page before it has no rows, or all that upstream says there is was seen
			}
			page = &understudy.Page{Key: page.Key, Status: http.StatusOK, Header: understudy.EndFields(end, 0, 0, "").String()}
		case at.Next == "" || !isDead(page) || refused.retention():
			return refused
		case at.Again == maxAgain:
			refused.again = at.Again
			return refused
		default:
			again()
			continue
		}
		id, err := t.checkRepeats(ctx, page)
		switch {
		case err != nil:
			return err
		case id != "" && at.Again < maxAgain:
			again()
			continue
		case id != "":
			t.noteRepeated(page.Key, "several contents", id)
		}
		back, err := t.slid(ctx, target, page, at, &trail, see)
		if err != nil {
			return err
		}
		if back != nil {
			target = back
			at.Pages.Restart()
			continue
		}
		seen := page
		if target.Sliding() != "" {
			seen = trail.New(page)
		}
		if (at.Beyond || at.Fixed && target.ByOffset()) && target.Key.URI == at.Next && len(page.Rows) > 1 && trail.Same(every(page)) {
			if end, err = t.endOfSame(ctx, at, target, page); err != nil {
				return err
			}
			at.Next = ""
		} else if target.ByLastID() && len(page.Rows) > 0 && len(trail.New(page).Rows) == 0 {
			end = understudy.OpenEnd{Kind: understudy.OpenRefuted,
				Why: "the page after a record shows those before it; another parameter may lead on"}
			at.Next = ""
		} else {
			at.count(page, len(seen.Rows))
			at, end = at.onward(first, target, page)
		}
		t.leads(at.List, page)
		if at.movedOn(end) {
			again()
			continue
		}
		if why := at.Pages.EndlessReason(at.Next, slices.Values(every(page))); why != "" {
			return endless(page.Key, why)
		}
		if target.Sliding() != "" || target.ByLastID() {
			trail.Saw(every(page))
		}
		if at.Next == "" {
			t.noteOpen(page.Key, at.List, end)
		}
		if err := see(seen, at); err != nil || at.Next == "" {
			return err
		}
		if err := follow(at.Next); err != nil {
			return err
		}
	}
}

// misplaced reports whether upstream has not given the overlapping page that was asked for, so that
// nobody knows where this page begins. It takes no such size, or rounds the offset down, which
// makes it the page seen last.
func misplaced(first, target *spec.Target, page *understudy.Page, at position, trail *overlap.Trail) bool {
	asked, got := target.PageSize, len(page.Rows)
	if at.Plain == "" {
		return false
	}
	resized := asked != first.PageSize && (got > asked || got < asked && !page.Next.Zero())
	again := got > 1 && page.Rows[got-1].ID == at.Last[len(at.Last)-1] && (got >= at.Most || trail.Same(every(page)))
	return resized || again && target.ByOffset() && target.Key.URI == at.Next
}

// slid is the page to go back to, when rows have moved so that a page does not follow
// what was seen; nil: it does. Where pages do not overlap the page before is looked at
// again: it must be what it was.
func (t *jobRun) slid(ctx context.Context, target *spec.Target, page *understudy.Page, at position, trail *overlap.Trail,
	see func(*understudy.Page, position) error) (*spec.Target, error) {
	earlier := target.Earlier()
	if at.Apart && earlier != nil && at.Before != "" && target.Key.URI == at.Next {
		var err error
		if earlier, err = target.Spec.Follow(target.Key.Source, at.Before); err != nil {
			return nil, err
		}
	}
	switch {
	case earlier == nil || !at.Apart && trail.Joins(page.Rows),
		at.Beyond && len(page.Rows) == 0 && (at.Total == at.Rows || at.Pages.Empty > 0):
		return nil, nil
	case !at.Apart:
		return earlier, trail.Back(page.Key)
	}
	again, err := t.fetch(ctx, earlier)
	if err != nil {
		return nil, err
	}
	joins, same := trail.Joins(again.Rows), trail.Same(every(again))
	if !trail.Resumed() {
		if err := see(trail.New(again), at); err != nil {
			return nil, err
		}
	}
	trail.Saw(every(again))
	switch {
	case same:
		return nil, nil
	case joins:
		return target, trail.Back(page.Key)
	}
	return earlier, trail.Back(page.Key)
}

// each runs do for the numbers below n, some beside each other; the first error ends
// them all.
func each(ctx context.Context, n, beside int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	work := make(chan int)
	for range min(beside, n) {
		wg.Go(func() {
			for i := range work {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		select {
		case work <- i:
		case <-ctx.Done():
		}
	}
	close(work)
	wg.Wait()
	return context.Cause(ctx)
}
