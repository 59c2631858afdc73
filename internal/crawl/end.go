// End: whether the end of each list that a job walked is proven.

package crawl

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/cycle"
	"understudy/spec"
	"understudy/spec/paging"
)

// ends is what a job has found out of the ends of its lists. Each end has to be proven: by
// the last page itself (paging.Rules.After), or by a page without rows behind it.
type ends struct {
	Led    uint64 `json:"led,omitempty"`    // the lists of which a page led on to another, a bit each
	Unseen uint64 `json:"unseen,omitempty"` // the lists that ended on a page without what leads on
	Why    string `json:"why,omitempty"`    // what was missing there
	Open   string `json:"open,omitempty"`   // why the end of a list is not proven, whatever others show
	Shared bool   `json:"shared,omitempty"` // several records have one id
	Params bool   `json:"params,omitempty"` // links to pages have parameters that no list made from records has
}

// noteOpen notes why the end of a list is not proven; the first reason is kept.
func (t *jobRun) noteOpen(key understudy.Key, list int, d understudy.OpenEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to := &t.ends.Open
	if d.Kind == understudy.OpenUnseen {
		to = &t.ends.Why
		t.ends.Unseen |= 1 << list
	}
	if d.Kind != "" && *to == "" {
		*to = endless(key, "list may go on behind what was walked: "+d.Why).text
	}
}

// noteRepeated notes that several rows of a list have one id, and what they are.
func (t *jobRun) noteRepeated(key understudy.Key, what, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends.Shared = true; t.ends.Open == "" {
		t.ends.Open = endless(key, fmt.Sprintf("list has %s under the id %s; check whether %s is the id in the spec",
			what, understudy.Clip(id), strings.Join(t.x.plan.kind.ID, " and "))).text
	}
}

// repeatedIn returns an id that two rows of one page have, with the same content; "" where none has.
func repeatedIn(rows []understudy.Row) string {
	versions := make(map[int64]int64, len(rows))
	for _, r := range rows {
		if r.Version != 0 && versions[r.Record] == r.Version {
			return r.ID
		}
		versions[r.Record] = r.Version
	}
	return ""
}

// checkRepeats asks again for the pages that showed records of a page before, with another content.
// It notes an id that several records have. It returns an id where that remains open, because the
// earlier page has it no more.
func (t *jobRun) checkRepeats(ctx context.Context, page *understudy.Page) (open string, err error) {
	if id := repeatedIn(page.Rows); id != "" {
		t.noteRepeated(page.Key, "two rows of one page", id)
		return "", nil
	}
	var earlier *understudy.Page
	link := ""
	for _, r := range t.sights.Add(page) {
		if r.Link != link {
			if t.found().Shared || !t.sights.MayCheck() {
				return open, nil
			}
			target, err := t.x.plan.source.Spec.Follow(t.x.plan.source.Name, r.Link)
			if err == nil {
				earlier, err = t.fetch(ctx, target)
			}
			if err != nil {
				return "", err
			}
			link = r.Link
		}
		switch {
		case r.Stays(earlier):
			t.noteRepeated(page.Key, "several contents", r.ID)
			return "", nil
		case r.Moved(earlier):
			open = r.ID
		}
	}
	return open, nil
}

// leads notes whether a page of a list led on to another, and how. A page that lacks rows leaves
// the list open, wherever it stands.
func (t *jobRun) leads(list int, page *understudy.Page) {
	if partial := page.OpenEnd().Partial; partial != "" {
		t.noteOpen(page.Key, list, understudy.OpenEnd{Kind: understudy.OpenRefuted, Why: partial})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !page.Next.Zero() {
		t.ends.Led |= 1 << list
	}
	t.ends.Params = t.ends.Params || page.Field(paging.ParamsField("next")) != ""
}

// found is what the job has found out so far.
func (t *jobRun) found() ends {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ends
}

// checkEnds returns why the end of a list that the job walked is not proven, nil: all are.
func (t *jobRun) checkEnds(ctx context.Context) error {
	m, err := t.w.states.read(ctx, t.x)
	e := t.found()
	switch {
	case err != nil:
		return err
	case e.Open != "":
		return &endlessError{e.Open}
	case e.Unseen&^(e.Led|m.Led) != 0:
		return &endlessError{e.Why}
	}
	return nil
}

// count takes in the rows of a page that were not seen before, and what it says of all pages.
func (at *position) count(page *understudy.Page, rows int) {
	at.Rows += int64(rows)
	at.Most = max(at.Most, len(page.Rows))
	at.Shown++
	if pages := page.Pages(); pages > 0 && (at.Stated == 0 || pages < at.Stated) {
		at.Stated = pages
	}
	switch total := page.Total(); {
	case total > 0 && (at.Total <= 0 || total < at.Total):
		at.Total = total
	case total < 0 && (at.Total == 0 || at.Total < total):
		at.Total = total
	}
}

// behind decides what is behind a page that leads to no other: a page to ask for, which
// tells, or the end of the list, open or proven.
func (at *position) behind(target *spec.Target, page *understudy.Page) (beyond *spec.Target, d understudy.OpenEnd) {
	switch d = page.OpenEnd(); {
	case d.Kind == understudy.OpenShort, d.Kind == understudy.OpenSilent,
		d.Kind == understudy.OpenUnseen && at.Rows == int64(len(page.Rows)):
		beyond = target.Beyond(len(page.Rows))
	case d.Kind == "" && len(page.Rows) == 0 && target.EndUnsaid(page) && at.mayGoOn():
		beyond = target.Beyond(max(at.Most, target.PageSize, 1))
	}
	if beyond == nil {
		d = at.refute(d)
	}
	return beyond, d
}

// refute returns an end that is open where upstream says that there is more than was shown: neither an
// end that a page says nor a page that nothing leads on from is one then.
func (at *position) refute(d understudy.OpenEnd) understudy.OpenEnd {
	if (d.Kind == "" || d.Kind == understudy.OpenUnseen) && at.lacking() != "" {
		d.Kind, d.Why = understudy.OpenRefuted, at.lacking()
	}
	return d
}

// endOfTip returns what the newest page of a list says of its end, of which nothing else was walked.
func endOfTip(page *understudy.Page) understudy.OpenEnd {
	var at position
	at.count(page, len(page.Rows))
	return at.refute(page.OpenEnd())
}

// mayGoOn reports whether rows may follow a page that has none: filters leave pages empty. Two such pages
// are the end, unless a count of pages says otherwise.
func (at *position) mayGoOn() bool {
	isAll := at.Total > 0 && at.Total == at.Rows
	return !isAll && (at.Pages.Empty == 0 || at.Shown < at.Stated)
}

// lacking returns how many rows or pages were not shown by what upstream says of all, "" where it
// does not say that there are more.
func (at *position) lacking() string {
	switch {
	case at.Total > at.Rows:
		return fmt.Sprintf("upstream says that there are %d rows, and %d were shown", at.Total, at.Rows)
	case at.Stated > at.Shown:
		return fmt.Sprintf("upstream says that there are %d pages, and %d were shown", at.Stated, at.Shown)
	case at.Total < 0 && -at.Total >= at.Rows:
		return fmt.Sprintf("upstream says that there are at least %d rows, and %d were shown", -at.Total, at.Rows)
	}
	return ""
}

// endOfSame returns what a page says of the end that is the page before it again. It proves the end where
// offsets are rounded down: the page is not full, and the one that begins behind it has no rows.
func (t *jobRun) endOfSame(ctx context.Context, at position, target *spec.Target, page *understudy.Page) (understudy.OpenEnd, error) {
	end := understudy.OpenEnd{Kind: understudy.OpenRefuted, Why: "the page behind the last one is that page again"}
	if !at.Beyond {
		end.Why = "a page begins before the offset asked for, and is the page before it again"
	}
	if !target.ByOffset() || !target.Guessed() || len(page.Rows) == at.Most {
		return end, nil
	}
	behind, err := t.fetch(ctx, target.Beyond(at.Most))
	if err == nil && behind.Status == http.StatusOK && len(behind.Rows) == 0 {
		_, end = at.behind(target, behind)
	}
	return end, err
}

// movedOn reports whether a walk that ended with fewer rows than upstream says there are is
// worth another try: rows that came or went meanwhile make the same difference.
func (at *position) movedOn(end understudy.OpenEnd) bool {
	return at.Next == "" && end.Kind == understudy.OpenRefuted && at.lacking() != "" && at.Again == 0
}

// capped matches a refusal of rows that are there, and are not served.
var capped = regexp.MustCompile(`(?i)\b(only|first|most|max\w*|limit\w*|window|exceed\w*|up to|too)\b`)

// provesEnd reports whether a refusal proves that there is no page behind as many rows as all pages
// have by their total. A limit on what is served is a round number, and its refusal says so.
func provesEnd(refused *understudy.Page, total int64) bool {
	switch {
	case refused.Status == 404 || refused.Status == 410 || refused.Status == 416:
		return !capped.Match(refused.Body)
	case refused.Status == 403 || hasNoList(refused):
		return false
	}
	return total%10 != 0 && !capped.Match(refused.Body)
}

// maxAgain is how often a walk begins a list again.
const maxAgain = 3

// isDead reports whether upstream may have forgotten the token or link of a page.
func isDead(p *understudy.Page) bool {
	return p.Status >= 400 && p.Status < 500 && !slices.Contains([]int{401, 408, 429}, p.Status) || isToldAsError(p)
}

// isToldAsError reports whether an answer is an error whatever its status: upstream says so, or
// a list has no rows in it, not even none.
func isToldAsError(p *understudy.Page) bool {
	return p.NotStored == understudy.NotStoredError || hasNoList(p)
}

func hasNoList(p *understudy.Page) bool {
	return strings.HasPrefix(p.NotStored, understudy.NotStoredNoRows)
}

// answerOf returns in words what upstream answered in place of a page.
func answerOf(p *understudy.Page) string {
	switch {
	case p.NotStored == understudy.NotStoredError:
		return "an answer that says that it is an error"
	case hasNoList(p):
		return "an answer with " + p.NotStored
	}
	return fmt.Sprintf("status %d", p.Status)
}

// toldError is a failed request whose page calls itself an error, whatever its status.
type toldError struct {
	error
	page *understudy.Page
}

// Unwrap returns why the page was not stored.
func (e *toldError) Unwrap() error { return e.error }

// again is the position for a walk that begins its list anew, because upstream refuses to go
// on at this one.
func (at position) again() position {
	return position{List: at.List, Again: at.Again + 1, Fixed: at.Fixed, Pages: cycle.Pages{}}
}

// maxReason bounds a reason that people read, in bytes: with what stands before it, it has 300 at most.
const maxReason = 220

// reason is an error as one sentence for people. One that is too long keeps its beginning, which
// says where, and its end, which says why.
func reason(err error) string {
	text := strings.Join(strings.Fields(understudy.PlainText(err)), " ")
	if len(text) > maxReason {
		const head = maxReason / 3
		tail := text[len(text)-(maxReason-head-len("…")):]
		text = strings.ToValidUTF8(text[:head], "") + "…" + strings.ToValidUTF8(tail, "")
	}
	return text
}
