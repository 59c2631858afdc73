// Read: GET and HEAD.

package proxy

import (
	"context"
	"sync"
	"time"

	"understudy"
	"understudy/kit/recent"
)

// read asks the gate, then the mirror, and answers.
func (v *visit) read() error {
	if v.target.Media != nil {
		return v.medium()
	}
	if err := v.gate.Read(v.caller, v.target); err != nil {
		return err
	}
	ask := understudy.Ask{Target: v.target, MaxStale: v.caller.Grant.MaxStale}
	v.freshen(&ask)
	ctx := v.r.Context()
	if wait, ok := preferredWait(v.r.Header["Prefer"]); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	a, err := v.mirror.Page(ctx, ask)
	if err != nil {
		return err
	}
	view, err := v.gate.View(v.caller, a.Page)
	if err != nil {
		return err
	}
	v.answer(a, view)
	return nil
}

// freshen honours what the request says of how old an answer may be. What
// makes upstream be asked at once is limited per credential and key.
func (v *visit) freshen(ask *understudy.Ask) {
	header := v.r.Header["Cache-Control"]
	if len(header) == 0 {
		return
	}
	wish := cacheControl(header)
	if wish.noCache || wish.hasMaxAge && wish.maxAge == 0 {
		ask.NoCache = v.fresh.allow(v.caller.Name, v.target.Key.URI, v.now())
		return
	}
	if wish.hasMaxAge && (ask.MaxStale == nil || wish.maxAge < *ask.MaxStale) {
		ask.MaxStale = &wish.maxAge
	}
}

// freshInterval is how often one credential may have one key asked upstream.
const freshInterval = time.Second

// limiter lets one credential insist on upstream once an interval for a key.
type limiter struct {
	mu   sync.Mutex
	last *recent.Cache[limiterKey, time.Time]
}

type limiterKey struct{ caller, uri string }

func newLimiter() *limiter { return &limiter{last: recent.New[limiterKey, time.Time](10_000)} }

func (l *limiter) allow(caller, uri string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := limiterKey{caller, uri}
	if last, ok := l.last.Get(key); ok && now.Sub(last) < freshInterval {
		return false
	}
	l.last.Put(key, now, 1)
	return true
}
