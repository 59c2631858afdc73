// This file checks whether a job has proven that it reached the end of each list.

package crawl

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"understudy"
	"understudy/spec"
	"understudy/spec/paging"
)

// ends is what a job knows about the ends of its lists. Each end must be proven by the last page itself
// (paging.Rules.After) or by an empty page behind it.
type ends struct {
	LinkedLists   uint64 `json:"led,omitempty"`    // bit set of the lists in which a page had a next link that worked
	UnprovenLists uint64 `json:"unseen,omitempty"` // bit set of lists that ended on a page without a next link
	Why           string `json:"why,omitempty"`    // what would have proven the end on a page without a next link, such as a total
	Open          string `json:"open,omitempty"`   // why the end of a list is not proven, whatever other lists show
	Shared        bool   `json:"shared,omitempty"` // whether several records have the same id
	Params        bool   `json:"params,omitempty"` // whether links to pages have parameters that composed lists would lack
}

// noteOpen stores why the end of a list is not proven. The first reason is kept.
func (t *jobRun) noteOpen(key understudy.Key, list int, d understudy.OpenEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to := &t.ends.Open
	if d.Kind == understudy.OpenUnseen {
		to = &t.ends.Why
		t.ends.UnprovenLists |= 1 << list
	}
	if d.Kind != "" && *to == "" {
		*to = newEndlessError(key, "list may continue after the last page read: "+d.Why).text
	}
}

// noteRepeated notes that several rows of a list have the same id. what says which rows they are.
func (t *jobRun) noteRepeated(key understudy.Key, what, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends.Shared = true; t.ends.Open == "" {
		t.ends.Open = newEndlessError(key, fmt.Sprintf("list has %s with the id %s; check whether %s is the right id field in the spec",
			what, understudy.Clip(id), strings.Join(t.x.plan.kind.ID, " and "))).text
	}
}

// repeatedID returns an id that two rows of one page have with the same content, or "".
func repeatedID(rows []understudy.Row) string {
	versions := make(map[int64]int64, len(rows))
	for _, r := range rows {
		if r.Version != 0 && versions[r.Record] == r.Version {
			return r.ID
		}
		versions[r.Record] = r.Version
	}
	return ""
}

// checkRepeats fetches earlier pages again whose records this page shows with another content. It records an id that
// several records share. open is an id for which this is undecided, because the earlier page no longer shows it.
func (t *jobRun) checkRepeats(ctx context.Context, page *understudy.Page) (open string, err error) {
	if id := repeatedID(page.Rows); id != "" {
		t.noteRepeated(page.Key, "two rows of one page", id)
		return "", nil
	}
	var earlier *understudy.Page
	link := ""
	for _, r := range t.sights.Add(page) {
		if r.Link != link {
			if t.endsFound().Shared || !t.sights.CanCheck() {
				return open, nil
			}
			target, err := t.x.plan.source.Spec.ResolveLink(t.x.plan.source.Name, r.Link)
			if err == nil {
				earlier, err = t.fetch(ctx, target)
			}
			if err != nil {
				return "", err
			}
			link = r.Link
		}
		switch {
		case r.IsUnchanged(earlier):
			t.noteRepeated(page.Key, "several contents", r.ID)
			return "", nil
		case r.HasMoved(earlier):
			open = r.ID
		}
	}
	return open, nil
}

// noteNext notes whether a page of a list has a next page, and how it links to it. A page that lacks rows leaves
// the end of the list open.
func (t *jobRun) noteNext(list int, page *understudy.Page) {
	if partial := page.OpenEnd().Partial; partial != "" {
		t.noteOpen(page.Key, list, understudy.OpenEnd{Kind: understudy.OpenRefuted, Why: partial})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !page.Next.IsZero() {
		t.ends.LinkedLists |= 1 << list
	}
	t.ends.Params = t.ends.Params || page.HeaderField(paging.ParamsField("next")) != ""
}

// endsFound returns what the job knows about the ends of its lists so far.
func (t *jobRun) endsFound() ends {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ends
}

// checkEnds returns nil if the ends of all walked lists are proven, else why one end is not proven.
func (t *jobRun) checkEnds(ctx context.Context) error {
	m, err := t.w.states.read(ctx, t.x)
	e := t.endsFound()
	switch {
	case err != nil:
		return err
	case e.Open != "":
		return &endlessError{e.Open}
	case e.UnprovenLists&^(e.LinkedLists|m.LinkedLists) != 0:
		return &endlessError{e.Why}
	}
	return nil
}

// addPage counts the new rows of a page and takes over what the page says about all pages.
func (at *position) addPage(page *understudy.Page, rows int) {
	at.Rows += int64(rows)
	at.MaxRows = max(at.MaxRows, len(page.Rows))
	at.ReadPages++
	if pages := page.TotalPages(); pages > 0 && (at.StatedPages == 0 || pages < at.StatedPages) {
		at.StatedPages = pages
	}
	switch total := page.TotalRows(); {
	case total > 0 && (at.StatedRows <= 0 || total < at.StatedRows):
		at.StatedRows = total
	case total < 0 && (at.StatedRows == 0 || at.StatedRows < total):
		at.StatedRows = total
	}
}

// nextBeyond decides what follows a page without a next link. It returns a page to request as a test, or the end of
// the list and how far it is proven.
func (at *position) nextBeyond(target *spec.Target, page *understudy.Page) (beyond *spec.Target, d understudy.OpenEnd) {
	switch d = page.OpenEnd(); {
	case d.Kind == understudy.OpenShort, d.Kind == understudy.OpenSilent,
		d.Kind == understudy.OpenUnseen && at.Rows == int64(len(page.Rows)):
		beyond = target.PageBeyond(len(page.Rows))
	case d.Kind == "" && len(page.Rows) == 0 && target.IsEndUnstated(page) && at.canGoOn():
		beyond = target.PageBeyond(max(at.MaxRows, target.PageSize, 1))
	}
	if beyond == nil {
		d = at.refute(d)
	}
	return beyond, d
}

// refute returns an open end if upstream states more rows or pages than were shown. Then neither a stated end nor a
// missing next link proves the end.
func (at *position) refute(d understudy.OpenEnd) understudy.OpenEnd {
	if (d.Kind == "" || d.Kind == understudy.OpenUnseen) && at.describeMissing() != "" {
		d.Kind, d.Why = understudy.OpenRefuted, at.describeMissing()
	}
	return d
}

// tipEnd returns what the newest page of a list says about the list's end, if no other page was walked.
func tipEnd(page *understudy.Page) understudy.OpenEnd {
	var at position
	at.addPage(page, len(page.Rows))
	return at.refute(page.OpenEnd())
}

// canGoOn reports whether rows may follow an empty page, because filters may leave pages empty. Two empty
// pages are the end, unless a stated number of pages says otherwise.
func (at *position) canGoOn() bool {
	isAll := at.StatedRows > 0 && at.StatedRows == at.Rows
	return !isAll && (at.Pages.Empty == 0 || at.ReadPages < at.StatedPages)
}

// describeMissing returns how many of the stated rows or pages were not shown, or "" if no row or page is known to
// be missing.
func (at *position) describeMissing() string {
	switch {
	case at.StatedRows > at.Rows:
		return fmt.Sprintf("upstream announced %d rows and returned %d", at.StatedRows, at.Rows)
	case at.StatedPages > at.ReadPages:
		return fmt.Sprintf("upstream announced %d pages and returned %d", at.StatedPages, at.ReadPages)
	case at.StatedRows < 0 && -at.StatedRows >= at.Rows:
		return fmt.Sprintf("upstream announced at least %d rows and returned %d", -at.StatedRows, at.Rows)
	}
	return ""
}

// checkRepeatedPage returns what is known about the end of a list if a page repeats the page before it. The end is
// proven if upstream rounds offsets down: the page is not full, and the page behind it is empty.
func (t *jobRun) checkRepeatedPage(
	ctx context.Context, at position, target *spec.Target, page *understudy.Page,
) (understudy.OpenEnd, error) {
	end := understudy.OpenEnd{Kind: understudy.OpenRefuted, Why: "the page after the last one repeats it"}
	if !at.Beyond {
		end.Why = "a page begins before the requested offset and repeats the previous page"
	}
	if !target.IsPagedByOffset() || !target.IsGuessed() || len(page.Rows) == at.MaxRows {
		return end, nil
	}
	behind, err := t.fetch(ctx, target.PageBeyond(at.MaxRows))
	if err == nil && behind.Status == http.StatusOK && len(behind.Rows) == 0 {
		_, end = at.nextBeyond(target, behind)
	}
	return end, err
}

// canRestart reports whether a walk that found fewer rows than stated should start again. Rows added or
// deleted meanwhile cause the same difference.
func (at *position) canRestart(end understudy.OpenEnd) bool {
	return at.Next == "" && end.Kind == understudy.OpenRefuted && at.describeMissing() != "" && at.Restarts == 0
}

// limitWords matches the text with which upstream refuses to serve rows that exist.
var limitWords = regexp.MustCompile(`(?i)\b(only|first|most|max\w*|limit\w*|window|exceed\w*|up to|too)\b`)

// isEndProof reports whether a refusal proves that a list ends after as many rows as its stated total. A limit on
// served rows is different: it is a round number, and the text of the refusal mentions it.
func isEndProof(refused *understudy.Page, total int64) bool {
	switch {
	case refused.Status == 404 || refused.Status == 410 || refused.Status == 416:
		return !limitWords.Match(refused.Body)
	case refused.Status == 403 || hasNoList(refused):
		return false
	}
	return total%10 != 0 && !limitWords.Match(refused.Body)
}

// maxRestarts is the maximum number of times that a walk starts a list again.
const maxRestarts = 3

// isExpiredLink reports whether upstream may no longer know the token or link of a page.
func isExpiredLink(p *understudy.Page) bool {
	return p.Status >= 400 && p.Status < 500 && !slices.Contains([]int{401, 408, 429}, p.Status) || isErrorPage(p)
}

// isErrorPage reports whether a response is an error whatever its status: upstream says so, or a list has no array of rows.
func isErrorPage(p *understudy.Page) bool {
	return p.NotStored == understudy.NotStoredError || hasNoList(p)
}

func hasNoList(p *understudy.Page) bool {
	return strings.HasPrefix(p.NotStored, understudy.NotStoredNoRows)
}

// describeAnswer returns in words what upstream sent instead of a page.
func describeAnswer(p *understudy.Page) string {
	switch {
	case p.NotStored == understudy.NotStoredError:
		return "an answer that is marked as an error"
	case hasNoList(p):
		return "an answer with " + p.NotStored
	}
	return fmt.Sprintf("status %d", p.Status)
}

// errorPage is the error of a request whose response says that it is an error, whatever its status.
type errorPage struct {
	error
	page *understudy.Page
}

// Unwrap returns why the page was not stored.
func (e *errorPage) Unwrap() error { return e.error }

// maxReason is the maximum size in bytes of a reason for people, without its prefix. With its prefix a reason has
// at most 300 bytes.
const maxReason = 220

// shortReason returns an error as one sentence for people. A long sentence is cut in the middle: its beginning says
// where the error happened, and its end says why.
func shortReason(err error) string {
	text := strings.Join(strings.Fields(understudy.PlainText(err)), " ")
	if len(text) > maxReason {
		const head = maxReason / 3
		tail := text[len(text)-(maxReason-head-len("…")):]
		text = strings.ToValidUTF8(text[:head], "") + "…" + strings.ToValidUTF8(tail, "")
	}
	return text
}
