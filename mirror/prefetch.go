// Prefetch: the page after one that somebody read, fetched before it is asked for.

package mirror

import (
	"time"

	"understudy"
	"understudy/mirror/cache"
	"understudy/request"
	"understudy/spec"
)

const (
	prefetchers = 8
	maxHopes    = 64               // waiting for a prefetcher; more are forgotten
	hopeAgain   = 10 * time.Second // before a page's next one is thought of again
)

// candidate is a next page that may be asked for. It is no promise: it
// lives in memory, knows no caller, and is forgotten when there are many.
type candidate struct {
	next   understudy.Key
	source *source
	from   *cache.Entry // the page that was read; may be nil
}

// follow candidates for the next page of one that is read from what is held. It
// costs a comparison unless it is time to think of it.
func (m *Mirror) follow(h *held, s *source, now time.Time) {
	if h.entry == nil {
		m.addCandidate(h.page, s, nil)
		return
	}
	if h.page.Next.URI != "" && m.throttle(&h.entry.Followed, now, hopeAgain, max(hopeAgain, m.ages().Older, m.ages().Newest)) {
		m.addCandidate(h.page, s, h.entry)
	}
}

// addCandidate asks for the next page of one that was read. Nothing waits for it.
func (m *Mirror) addCandidate(p *understudy.Page, s *source, from *cache.Entry) {
	if p.Next.URI == "" || !p.List || m.saving.trouble() != "" {
		return
	}
	select {
	case m.prefetch <- candidate{next: p.Next, source: s, from: from}:
	default:
	}
}

// prefetcher fetches candidates, one after the other. A page it fetched is not
// itself followed: only a reader begins the next candidate.
func (m *Mirror) prefetcher() {
	for {
		select {
		case <-m.ctx.Done():
			return
		case h := <-m.prefetch:
			m.prefetchOne(h)
		}
	}
}

func (m *Mirror) prefetchOne(h candidate) {
	t, err := h.source.Spec.Target(h.source.Name, h.next.Path(), h.next.Query())
	if err != nil {
		return // upstream's next page is no page of ours
	}
	k := h.source.of(t)
	if k == nil || k.name == "" {
		return
	}
	if left := m.freshFor(t, k); left > 0 {
		h.until(m, left)
		return
	}
	f := m.startBackground(t, h.source, k, request.Prefetch)
	if f == nil {
		return
	}
	<-f.done
	if f.err == nil {
		h.source.counts.prefetched.Add(1)
		h.until(m, m.ages().fresh(t, f.page))
	}
}

// until notes on the page read that its next one is fresh for so long.
func (h candidate) until(m *Mirror, left time.Duration) {
	if h.from != nil {
		h.from.Followed.Store(m.monotonic(m.now()) + int64(left))
	}
}

// freshFor is how long what is held for the target stays fresh; 0 when it is
// not. It is no reading: nothing is counted.
func (m *Mirror) freshFor(t *spec.Target, k *kind) time.Duration {
	now := m.now()
	h, ok, err := m.find(m.ctx, t, k, now)
	if err != nil || !ok {
		return 0
	}
	if v, age := m.ages().decide(&h, m.ages().usual(), now); v == fresh {
		return h.fresh - age
	}
	return 0
}
