// This file fetches one page of a walk, accounts for its memory, and handles failures of upstream.

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
	maxTries   = 3 // the maximum number of attempts for one page before the job is retried later
	firstWait  = time.Second
	bodyFactor = 2 // the memory for a body, as a multiple of the body's size
)

// jobRun is one run of a job.
type jobRun struct {
	w    *Crawler
	run  Run
	x    *kindCrawl
	work payload

	nonFinal bool // whether the job fetches records again that are not final

	mu     sync.Mutex
	weight int64 // the memory in bytes that the run uses, without its pages
	pages  int64 // number of pages fetched so far
	ends   ends
	sights overlap.Sights
}

// memoryError is the error of a run for which there is not enough memory now.
type memoryError struct{ error }

// Unwrap returns the error of the runner.
func (e *memoryError) Unwrap() error { return e.error }

func wrapMemoryError(err error) error {
	if err != nil {
		return &memoryError{err}
	}
	return nil
}

// hasFetched reports whether the run has fetched a page.
func (t *jobRun) hasFetched() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pages > 0
}

// fetch fetches a page and saves its records. The memory of the page is released when it is no longer used,
// at the latest at the caller's next fetch. Walks read only the rows of a page.
func (t *jobRun) fetch(ctx context.Context, target *spec.Target) (*understudy.Page, error) {
	var err error
	for try := range maxTries {
		if try > 0 {
			if err := retry.Wait(ctx, retry.Backoff(firstWait, time.Minute, try-1)); err != nil {
				return nil, err
			}
		}
		var landed request.PageSaved
		if landed, err = t.tryFetch(ctx, target); err == nil {
			t.mu.Lock()
			t.pages++
			t.mu.Unlock()
			return landed.Page, nil
		}
		if landed.Page != nil && isErrorPage(landed.Page) {
			if err = (&errorPage{err, landed.Page}); try > 0 {
				break
			}
		}
		if !isTemporary(err) || ctx.Err() != nil {
			return nil, err
		}
		failed, ok := errors.AsType[*understudy.UpstreamError](err)
		if ok && (failed.RetryAfter > 0 || failed.Why == understudy.FailUnusable || isLasting(failed)) {
			return nil, &understudy.Snooze{Wait: max(failed.RetryAfter, 5*time.Second), Err: err}
		}
	}
	return nil, &understudy.Snooze{Wait: 5 * time.Second, Err: err}
}

// isLasting reports whether requests are stopped as long as the failure of upstream lasts. Then another attempt
// costs no request.
func isLasting(e *understudy.UpstreamError) bool {
	return e.Why == understudy.FailDown || e.Why == understudy.FailCredential
}

// tryFetch makes one attempt to fetch a page. A page that does not fit into memory waits.
func (t *jobRun) tryFetch(ctx context.Context, target *spec.Target) (request.PageSaved, error) {
	weigh := t.run.Weigher()
	landed, err := t.w.o.Mirror.Fill(ctx, request.Fill{
		Target: target, Reason: request.ReasonSync, RecordsOnly: target.List != nil, ForOpenRecords: t.nonFinal || target.List == nil,
		Reserve: func(ctx context.Context, bytes int64) error { return wrapMemoryError(weigh(ctx, bytes*bodyFactor)) },
	})
	switch p := landed.Page; {
	case p != nil && len(p.Rows) > 0:
		rows := *p
		rows.Body = nil // walks read only the rows, so the memory can be released
		if rows.Status == http.StatusPartialContent {
			rows.Status = http.StatusOK // the whole page was requested, so the status means no partial list
		}
		landed.Page = &rows
	case p != nil && p.Status == http.StatusNoContent && target.List != nil:
		none := *p
		none.Status = http.StatusOK
		landed.Page, err = &none, nil // an empty response is a page without records, which needs no storage
	}
	return landed, errors.Join(err, wrapMemoryError(weigh(ctx, 0)))
}

// isTemporary reports whether an error goes away by itself.
func isTemporary(err error) bool {
	return errors.Is(err, understudy.ErrUnavailable) || errors.Is(err, understudy.ErrNotStored) || errors.Is(err, understudy.ErrOutdated)
}

// refusal is the error of a list page that upstream refused.
type refusal struct {
	page     *understudy.Page
	spec     *spec.Spec
	restarts int // how often the list was started again before the refusal
}

// Error returns which page upstream refused, and with what response.
func (r *refusal) Error() string {
	if r.restarts > 0 {
		return fmt.Sprintf("walk: %s: upstream stops in the middle of the list (%s); %d new starts did not reach its end",
			r.page.Key, describeAnswer(r.page), r.restarts)
	}
	return fmt.Sprintf("walk: %s: upstream refuses the list: %s", r.page.Key, describeAnswer(r.page))
}

// Is makes the job fail at once if restarting the list did not help.
func (r *refusal) Is(target error) bool { return r.restarts > 0 && target == understudy.ErrInvalid }

// isRetention reports whether upstream refused because the requested time is older than its retention.
func (r *refusal) isRetention() bool {
	code := r.spec.Errors.Code("retention")
	return code != "" && r.page.Status == http.StatusBadRequest && strings.Contains(string(r.page.Body), code)
}

// endlessError is the error of a list whose end was not found or is not proven. The job fails at once, because
// another run would find the same.
type endlessError struct{ text string }

// newEndlessError returns the error for a list, with the reason why its end is not proven.
func newEndlessError(key understudy.Key, why string) *endlessError {
	return &endlessError{fmt.Sprintf("walk: %s: upstream's %s", key, why)}
}

// Error returns which list has no proven end, and why.
func (e *endlessError) Error() string { return e.text }

// Is makes the job fail.
func (e *endlessError) Is(target error) bool { return target == understudy.ErrInvalid }

// position is where a walk over one list continues.
type position struct {
	List         int      `json:"list,omitempty"`
	Next         string   `json:"next,omitempty"`   // the link to continue with; "" means the first page
	Last         []string `json:"last,omitempty"`   // the last rows of the previous page, for numbered pages
	AvoidsLast   bool     `json:"apart,omitempty"`  // whether the next numbered page must not begin with a row of Last
	PlainNext    string   `json:"plain,omitempty"`  // upstream's own next link, if Next is changed so that the pages overlap
	PreviousLink string   `json:"before,omitempty"` // the link of the previous page
	Fixed        bool     `json:"fixed,omitempty"`  // whether upstream accepts no other page size, so that pages cannot overlap

	Rows        int64 `json:"rows,omitempty"`   // the number of distinct rows of the list so far
	MaxRows     int   `json:"most,omitempty"`   // the number of rows of the largest page
	StatedRows  int64 `json:"total,omitempty"`  // the smallest total number of rows that upstream has stated (understudy.Page.TotalRows)
	ReadPages   int64 `json:"shown,omitempty"`  // the number of pages read so far
	StatedPages int64 `json:"stated,omitempty"` // the smallest number of pages that upstream has stated
	Beyond      bool  `json:"beyond,omitempty"` // whether the next page is requested although no page links to it
	Restarts    int   `json:"again,omitempty"`  // how often the list was started again

	Pages cycle.Pages `json:"pages,omitzero"` // the pages read so far
}

// nextPosition returns the position after a page. If the list ends there, it also returns how far that end is
// proven. Numbered pages are requested so that they overlap, if possible.
func (at position) nextPosition(first, target *spec.Target, page *understudy.Page) (position, understudy.OpenEnd) {
	at.Next, at.PreviousLink, at.Last, at.AvoidsLast, at.PlainNext, at.Beyond = page.Next.URI, page.Key.URI, nil, false, "", false
	if at.Next == "" {
		beyond, d := at.nextBeyond(target, page)
		if beyond == nil {
			return at, d
		}
		at.Next, at.Beyond = beyond.Key.URI, true
	}
	if target.SlidingList() == "" && !target.IsPagedByLastID() {
		return at, understudy.OpenEnd{}
	}
	ids := rowIDs(page)
	if at.Last = ids[max(0, len(ids)-10):]; target.SlidingList() == "" {
		return at, understudy.OpenEnd{}
	}
	at.AvoidsLast = true
	if next := target.OverlappingPage(first, len(ids)); next != nil && !at.Fixed && !at.Beyond {
		at.Next, at.AvoidsLast, at.PlainNext = next.Key.URI, false, at.Next
	}
	if after := target.PageBeyond(1); len(ids) < 2 && after != nil && after.Key.URI == at.Next && at.MaxRows > 1 {
		at.Next = target.PageBeyond(at.MaxRows).Key.URI // the page was cut after its first row, so the next offset is that of a full page
	}
	return at, understudy.OpenEnd{}
}

// visitPages walks one list from a position to its end. It calls see with each page and the position after it; at
// the end Next of that position is "". For numbered pages, see gets only new rows. If the end is not proven, the
// job stores the reason. If upstream refuses to continue, the list is started again.
func (t *jobRun) visitPages(ctx context.Context, first *spec.Target, at position, see func(*understudy.Page, position) error) error {
	src, target, trail := t.x.plan.source, first, overlap.Trail{}
	follow := func(link string) (err error) {
		target, err = src.Spec.ResolveLink(src.Name, link)
		return err
	}
	if at.Next == "" {
		at = position{List: at.List, Restarts: at.Restarts}
	} else if err := follow(at.Next); err != nil {
		return err
	}
	if first == nil {
		first = target
	}
	trail.AddPage(at.Last)
	again := func() {
		at = position{List: at.List, Restarts: at.Restarts + 1, Fixed: at.Fixed}
		target, trail = first, overlap.Trail{}
		trail.AddPage(nil)
		t.sights.Forget()
	}
	var end understudy.OpenEnd
	for {
		if most := int64(t.w.o.Settings.Pages); at.Pages.Count >= most {
			return newEndlessError(target.Key, fmt.Sprintf(
				"list continues after %d pages and is treated as endless; raise sync.pages if it really is that long", most))
		}
		page, err := t.fetch(ctx, target)
		var told *errorPage
		if errors.As(err, &told) && at.Next != "" {
			page, err = told.page, nil
		}
		if err != nil {
			return err
		}
		refused := &refusal{page: page, spec: src.Spec}
		switch {
		case page.Status == http.StatusOK && told == nil && !isMisplaced(first, target, page, at, &trail):
		case at.PlainNext != "" && slices.Contains([]int{200, 400, 404, 422}, page.Status):
			at.Next, at.AvoidsLast, at.PlainNext, at.Fixed = at.PlainNext, true, "", true
			if err := follow(at.Next); err != nil {
				return err
			}
			continue
		case at.Next != "" && isExpiredLink(page) && (at.Beyond || target.IsGuessed()) && !refused.isRetention():
			end = understudy.OpenEnd{Kind: understudy.OpenRefuted, Why: "the page after the last one has " + describeAnswer(page)}
			if at.Pages.Empty > 0 && at.describeMissing() == "" || at.StatedRows > 0 && at.StatedRows == at.Rows && isEndProof(page, at.StatedRows) {
				end = understudy.OpenEnd{} // the end is proven: the previous page is empty, or all stated rows were seen
			}
			page = &understudy.Page{Key: page.Key, Status: http.StatusOK, Header: understudy.EndFields(end, 0, 0, "").String()}
		case at.Next == "" || !isExpiredLink(page) || refused.isRetention():
			return refused
		case at.Restarts == maxRestarts:
			refused.restarts = at.Restarts
			return refused
		default:
			again()
			continue
		}
		id, err := t.checkRepeats(ctx, page)
		switch {
		case err != nil:
			return err
		case id != "" && at.Restarts < maxRestarts:
			again()
			continue
		case id != "":
			t.noteRepeated(page.Key, "several contents", id)
		}
		back, err := t.findMovedBack(ctx, target, page, at, &trail, see)
		if err != nil {
			return err
		}
		if back != nil {
			target = back
			at.Pages.Restart()
			continue
		}
		seen := page
		if target.SlidingList() != "" {
			seen = trail.NewRows(page)
		}
		if (at.Beyond || at.Fixed && target.IsPagedByOffset()) && target.Key.URI == at.Next && len(page.Rows) > 1 &&
			trail.IsLastPage(rowIDs(page)) {
			if end, err = t.checkRepeatedPage(ctx, at, target, page); err != nil {
				return err
			}
			at.Next = ""
		} else if target.IsPagedByLastID() && len(page.Rows) > 0 && len(trail.NewRows(page).Rows) == 0 {
			end = understudy.OpenEnd{Kind: understudy.OpenRefuted,
				Why: "the page after a record shows earlier records again; the spec may name the wrong paging parameter"}
			at.Next = ""
		} else {
			at.addPage(page, len(seen.Rows))
			at, end = at.nextPosition(first, target, page)
		}
		t.noteNext(at.List, page)
		if at.canRestart(end) {
			again()
			continue
		}
		if why := at.Pages.EndlessReason(at.Next, slices.Values(rowIDs(page))); why != "" {
			return newEndlessError(page.Key, why)
		}
		if target.SlidingList() != "" || target.IsPagedByLastID() {
			trail.AddPage(rowIDs(page))
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

// isMisplaced reports whether upstream ignored that an overlapping page was requested, so that the place of the
// page's first row is unknown. Such an upstream does not accept the page size, or rounds the offset down and
// repeats the last page.
func isMisplaced(first, target *spec.Target, page *understudy.Page, at position, trail *overlap.Trail) bool {
	asked, got := target.PageSize, len(page.Rows)
	if at.PlainNext == "" {
		return false
	}
	resized := asked != first.PageSize && (got > asked || got < asked && !page.Next.IsZero())
	again := got > 1 && page.Rows[got-1].ID == at.Last[len(at.Last)-1] && (got >= at.MaxRows || trail.IsLastPage(rowIDs(page)))
	return resized || again && target.IsPagedByOffset() && target.Key.URI == at.Next
}

// findMovedBack returns the page to go back to if rows have moved, so that this page does not follow the rows
// already seen. It returns nil if the page follows them. If pages do not overlap, the previous page is fetched
// again and must be unchanged.
func (t *jobRun) findMovedBack(ctx context.Context, target *spec.Target, page *understudy.Page, at position, trail *overlap.Trail,
	see func(*understudy.Page, position) error) (*spec.Target, error) {
	earlier := target.PreviousPage()
	if at.AvoidsLast && earlier != nil && at.PreviousLink != "" && target.Key.URI == at.Next {
		var err error
		if earlier, err = target.Spec.ResolveLink(target.Key.Source, at.PreviousLink); err != nil {
			return nil, err
		}
	}
	switch {
	case earlier == nil || !at.AvoidsLast && trail.HasRowOf(page.Rows),
		at.Beyond && len(page.Rows) == 0 && (at.StatedRows == at.Rows || at.Pages.Empty > 0):
		return nil, nil
	case !at.AvoidsLast:
		return earlier, trail.CountBack(page.Key)
	}
	again, err := t.fetch(ctx, earlier)
	if err != nil {
		return nil, err
	}
	joins, same := trail.HasRowOf(again.Rows), trail.IsLastPage(rowIDs(again))
	if !trail.HasNoPages() {
		if err := see(trail.NewRows(again), at); err != nil {
			return nil, err
		}
	}
	trail.AddPage(rowIDs(again))
	switch {
	case same:
		return nil, nil
	case joins:
		return target, trail.CountBack(page.Key)
	}
	return earlier, trail.CountBack(page.Key)
}

// runParallel calls do for all numbers below n, at most workers at the same time. The first error ends all calls.
func runParallel(ctx context.Context, n, workers int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	work := make(chan int)
	for range min(workers, n) {
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
