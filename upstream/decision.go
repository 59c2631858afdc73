// Decision: what the status and the header of an answer say of upstream and of its limits.

package upstream

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/spec"
	"understudy/upstream/throttle"
)

// blindWait is how long to wait at a limit of which upstream says that it is reached, and
// not until when. GitHub asks for a minute.
const blindWait = time.Minute

// decision is what an answer says of upstream: Why is FailNone when it is about the request
// alone. RetryAfter is how long upstream wants no request; 0: it does not say. Of is the one
// limit that is used up, where upstream has several.
func decision(s *spec.Spec, a *answer) (e understudy.UpstreamError) {
	e.Status, e.RetryAfter = a.status, retryAfter(a.header, a.at)
	if listed := slices.Contains(s.Limits.Statuses, a.status); listed || a.status == http.StatusTooManyRequests {
		if over := a.told && a.left.Remaining == 0; over {
			e.LimitName, e.RetryAfter = a.left.Of, max(e.RetryAfter, min(a.left.Reset, maxRetryAfter))
		} else if listed && e.RetryAfter == 0 && !holdsOneOf(a.body, s.Limits.Words) {
			listed = false
		}
		if listed && e.RetryAfter == 0 {
			e.RetryAfter = blindWait
		}
		if listed || a.status == http.StatusTooManyRequests {
			e.Why = understudy.FailLimited
			return e
		}
	}
	switch e.LimitName = ""; {
	case s.Auth.IsRefusal(a.status):
		e.Why = understudy.FailCredential
	case a.status >= 500:
		e.Why = understudy.FailServer
	}
	return e
}

// noteLimits takes over what an answer says of upstream's limits. When nothing remains the next
// request would be refused: none goes out until the window ends.
func (c *Client) noteLimits(a *answer, sort throttle.Sort) {
	why, left := decision(c.o.Source.Spec, a).Why, a.left
	if a.told {
		left = a.by.told(left)
	}
	if a.told && c.budget.Told(left) && why == understudy.FailNone {
		c.breaker.Hold(&understudy.UpstreamError{Why: understudy.FailLimited, RetryAfter: min(left.Reset, maxRetryAfter), LimitName: left.Of,
			Err: errors.New("nothing remains of what it takes")})
	}
	o := throttle.Observation{Sort: sort, Began: a.at.Add(-a.took), Refused: why == understudy.FailLimited,
		Counted: throttle.Count(a.header, c.o.Source.Spec.Limits.Concurrent)}
	if a.status < 400 && a.broken == nil {
		o.Took = cmp.Or(a.silence, a.took)
	}
	if !o.Refused || !a.told || left.Remaining > 0 {
		c.budget.Observe(o)
	}
}

// readLimits reads what an answer to a request of a place says of the requests that upstream
// still takes.
func (c *Client) readLimits(a *answer, place string) {
	l := &c.o.Source.Spec.Limits
	fields := throttle.Fields{Limit: l.Limit, Remaining: l.Remaining, Reset: l.Reset, Resource: l.Resource}
	if a.left, a.told = fields.Read(a.header, a.at); a.told {
		a.left.Of = c.resources.learn(place, a.left)
	}
}

// resources are the limits of an upstream that has several, and which requests count for
// which: answers tell it. Its zero value works. It is safe for concurrent use.
type resources struct {
	mu     sync.Mutex
	places map[string]string // their limits
	sizes  map[string]int64
	main   string // the largest of them
	spent  bool   // nothing was left of the one that was told of last
}

const mostPlaces = 1024 // whose limit is remembered

// sortOf is of the requests for a target, whose answers take about as long. Those that the spec does not name are one.
func sortOf(method string, t *spec.Target) throttle.Sort {
	if t.List == nil && t.Instance == nil && t.Media == nil {
		return throttle.Sort{Method: method}
	}
	return throttle.Sort{Method: method, Place: placeOf(t), Size: sizeOf(t)}
}

// placeOf names the requests that count for the same limit as far as is known: those of one template of the spec, or path.
func placeOf(t *spec.Target) string {
	switch {
	case t == nil:
		return ""
	case t.List != nil:
		return t.List.Path
	case t.Instance != nil:
		return t.Instance.Path
	case t.Media != nil:
		return t.Media.Path
	}
	return t.Key.Path()
}

// learn notes for which limit a request of a place has counted, and returns its name.
func (r *resources) learn(place string, a throttle.Allowance) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.Of == "" {
		return ""
	}
	if r.sizes == nil {
		r.places, r.sizes = map[string]string{}, map[string]int64{}
	}
	if _, known := r.sizes[a.Of]; !known && len(r.sizes) >= throttle.MostLimits {
		return ""
	}
	if r.sizes[a.Of] = max(a.Limit, r.sizes[a.Of]); r.main == "" || a.Limit > r.sizes[r.main] {
		r.main = a.Of
	}
	if _, known := r.places[place]; !known && len(r.places) >= mostPlaces {
		for other := range r.places { // any of them: it is learned again
			delete(r.places, other)
			break
		}
	}
	r.places[place], r.spent = a.Of, a.Remaining == 0
	return a.Of
}

// outward is a failure as others than upstream's client see it: that a limit is reached for
// which few requests count does not mean that the source is down.
func (r *resources) outward(e *understudy.UpstreamError) *understudy.UpstreamError {
	if e.LimitName == "" {
		return e
	}
	out := *e
	if out.LimitName == r.of("") {
		out.LimitName = ""
	} else if out.Why == understudy.FailDown {
		out.Why = understudy.FailLimited
	}
	return &out
}

// of returns the limit that a request of a place counts for. Where answers have not told it, that is the largest;
// "" when only one place is known and nothing is left of its limit, which other places may not share.
func (r *resources) of(place string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, known := r.places[place]
	if !known && (len(r.places) != 1 || !r.spent) {
		of = r.main
	}
	return of
}

// mostWorded is how much of a body is looked at for words, in bytes.
const mostWorded = 16 << 10

func holdsOneOf(body []byte, words []string) bool {
	text := bytes.ToLower(body[:min(len(body), mostWorded)])
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(text, []byte(w)) })
}
