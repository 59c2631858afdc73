// Prefetch: the page after one that was read, fetched before it is requested.

package mirror

import (
	"time"

	"understudy"
	"understudy/mirror/cache"
	"understudy/request"
	"understudy/spec"
)

const (
	prefetchers   = 8
	maxCandidates = 64               // waiting for a prefetcher; more are forgotten
	followAgain   = 10 * time.Second // before the next page of a page is queued again
)

// prefetcher fetches next pages before a reader asks for them.
type prefetcher struct {
	*filler
	queue chan candidate
}

// candidate is a next page that may be asked for. It is no promise: it
// lives in memory, knows no caller, and is forgotten when there are many.
type candidate struct {
	next   understudy.Key
	source *source
	from   *cache.Entry // the page that was read; may be nil
}

// follow queues the next page of a held page that is read. It costs a comparison
// unless the pause is over.
func (pf *prefetcher) follow(h *held, s *source, now time.Time) {
	if h.entry == nil {
		pf.addCandidate(h.page, s, nil)
		return
	}
	if h.page.Next.URI != "" && pf.throttle(&h.entry.Followed, now, followAgain, max(followAgain, pf.ages().Older, pf.ages().Newest)) {
		pf.addCandidate(h.page, s, h.entry)
	}
}

// addCandidate asks for the next page of one that was read. Nothing waits for it.
func (pf *prefetcher) addCandidate(p *understudy.Page, s *source, from *cache.Entry) {
	if p.Next.URI == "" || !p.List || pf.saving.trouble() != "" {
		return
	}
	select {
	case pf.queue <- candidate{next: p.Next, source: s, from: from}:
	default:
	}
}

// run fetches candidates, one after the other. A page it fetched is not
// itself followed: only a reader begins the next candidate.
func (pf *prefetcher) run() {
	for {
		select {
		case <-pf.ctx.Done():
			return
		case h := <-pf.queue:
			pf.prefetchOne(h)
		}
	}
}

func (pf *prefetcher) prefetchOne(h candidate) {
	t, err := h.source.Spec.Target(h.source.Name, h.next.Path(), h.next.Query())
	if err != nil {
		return // upstream's next page is no page of ours
	}
	k := h.source.of(t)
	if k == nil || k.name == "" {
		return
	}
	if left := pf.freshFor(t, k); left > 0 {
		h.until(pf, left)
		return
	}
	f := pf.startBackground(t, h.source, k, request.Prefetch)
	if f == nil {
		return
	}
	<-f.done
	if f.err == nil {
		h.source.counts.prefetched.Add(1)
		h.until(pf, pf.ages().fresh(t, f.page))
	}
}

// until notes on the page read that its next one is fresh for so long.
func (h candidate) until(pf *prefetcher, left time.Duration) {
	if h.from != nil {
		h.from.Followed.Store(pf.monotonic(pf.now()) + int64(left))
	}
}

// freshFor is how long what is held for the target stays fresh; 0 when it is
// not. It is no reading: nothing is counted.
func (pf *prefetcher) freshFor(t *spec.Target, k *kind) time.Duration {
	now := pf.now()
	h, ok, err := pf.find(pf.ctx, t, k, now)
	if err != nil || !ok {
		return 0
	}
	if v, age := pf.ages().decide(&h, pf.ages().usual(), now); v == fresh {
		return h.fresh - age
	}
	return 0
}
