// This file finds out what the status and the header of an answer say about the upstream and its limits.

package upstream

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
	"understudy/spec"
	"understudy/upstream/throttle"
)

// blindWait is how long to wait if the upstream reports that a limit is reached, but not until when. GitHub asks for a
// minute.
const blindWait = time.Minute

// answerFailure returns what an answer says about the upstream. Why is FailNone if the answer is only about the
// request. RetryAfter is how long the upstream wants no request, or 0 if it does not say. LimitName is the limit that
// is used up, if the upstream has several limits.
func answerFailure(s *spec.Spec, a *answer) (e understudy.UpstreamError) {
	e.Status, e.RetryAfter = a.status, retryAfter(a.header, a.at)
	if listed := slices.Contains(s.Limits.Statuses, a.status); listed || a.status == http.StatusTooManyRequests {
		if over := a.hasAllowance && a.allowance.Remaining == 0; over {
			e.LimitName, e.RetryAfter = a.allowance.LimitName, max(e.RetryAfter, min(a.allowance.Reset, maxRetryAfter))
		} else if listed && e.RetryAfter == 0 && !hasWord(a.body, s.Limits.Words) {
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

// noteLimits records what an answer reports about the upstream's limits. If no request remains, the upstream would
// refuse the next request, so none is sent until the window ends.
func (c *Client) noteLimits(a *answer, sort throttle.Sort) {
	why, left := answerFailure(c.o.Source.Spec, a).Why, a.allowance
	if a.hasAllowance {
		left = a.signature.sumAllowance(left)
	}
	if a.hasAllowance && c.budget.RecordAllowance(left) && why == understudy.FailNone {
		c.breaker.Hold(&understudy.UpstreamError{Why: understudy.FailLimited, RetryAfter: min(left.Reset, maxRetryAfter),
			LimitName: left.LimitName, Err: errors.New("the remaining limit is used up")})
	}
	o := throttle.Observation{Sort: sort, Began: a.at.Add(-a.took), Refused: why == understudy.FailLimited,
		Counted: throttle.Count(a.header, c.o.Source.Spec.Limits.Concurrent)}
	if a.status < 400 && a.bodyErr == nil {
		o.Took = cmp.Or(a.longestWait, a.took)
	}
	if !o.Refused || !a.hasAllowance || left.Remaining > 0 {
		c.budget.Observe(o)
	}
}

// readLimits reads from an answer how many requests the upstream still accepts. place is the place of the answered
// request (see placeOf).
func (c *Client) readLimits(a *answer, place string) {
	l := &c.o.Source.Spec.Limits
	fields := throttle.Fields{Limit: l.Limit, Remaining: l.Remaining, Reset: l.Reset, Resource: l.Resource}
	if a.allowance, a.hasAllowance = fields.Read(a.header, a.at); a.hasAllowance {
		a.allowance.LimitName = c.resources.learn(place, a.allowance)
	}
}

// resources are the limits of an upstream that has several, and which requests count for which limit. Both are learned
// from answers. The zero value is ready to use. It is safe for concurrent use.
type resources struct {
	mu     lockwatch.Mutex
	places map[string]string // for each place, the name of the limit for which its requests count
	sizes  map[string]int64
	main   string // the name of the largest limit
	spent  bool   // whether the last answer reported that no request remains
}

const maxPlaces = 1024 // the maximum number of places whose limit is remembered

// sortOf returns the sort of the requests for a target. Answers of one sort take about the same time. All paths that
// the spec does not name are one sort.
func sortOf(method string, t *spec.Target) throttle.Sort {
	if t.List == nil && t.Instance == nil && t.Media == nil {
		return throttle.Sort{Method: method}
	}
	return throttle.Sort{Method: method, Place: placeOf(t), Size: sizeOf(t)}
}

// placeOf returns a name for requests that probably count for the same limit: the path template of the spec or, without
// one, the path.
func placeOf(t *spec.Target) string {
	if t == nil {
		return ""
	}
	return cmp.Or(t.PathTemplate(), t.Key.Path())
}

// learn records the limit for which a request of a place counted, and returns the limit's name.
func (r *resources) learn(place string, a throttle.Allowance) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.LimitName == "" {
		return ""
	}
	if r.sizes == nil {
		r.places, r.sizes = map[string]string{}, map[string]int64{}
	}
	if _, known := r.sizes[a.LimitName]; !known && len(r.sizes) >= throttle.MaxLimits {
		return ""
	}
	if r.sizes[a.LimitName] = max(a.Limit, r.sizes[a.LimitName]); r.main == "" || a.Limit > r.sizes[r.main] {
		r.main = a.LimitName
	}
	if _, known := r.places[place]; !known && len(r.places) >= maxPlaces {
		for other := range r.places { // delete an arbitrary place; the next answer from there names its limit again
			delete(r.places, other)
			break
		}
	}
	r.places[place], r.spent = a.LimitName, a.Remaining == 0
	return a.LimitName
}

// publicFailure returns a failure in the form for code outside the client. A limit for which few requests count does
// not mean that the source is down.
func (r *resources) publicFailure(e *understudy.UpstreamError) *understudy.UpstreamError {
	if e.LimitName == "" {
		return e
	}
	out := *e
	if out.LimitName == r.limitFor("") {
		out.LimitName = ""
	} else if out.Why == understudy.FailDown {
		out.Why = understudy.FailLimited
	}
	return &out
}

// limitFor returns the limit for which a request of a place counts. If that is unknown, it returns the largest limit.
// It returns "" if only one place is known and its limit is used up, because other places may have another limit.
func (r *resources) limitFor(place string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, known := r.places[place]
	if !known && (len(r.places) != 1 || !r.spent) {
		of = r.main
	}
	return of
}

// maxSearched is the maximum number of bytes of a body that are searched for words.
const maxSearched = 16 << 10

// hasWord reports whether a body contains one of some words.
func hasWord(body []byte, words []string) bool {
	text := bytes.ToLower(body[:min(len(body), maxSearched)])
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(text, []byte(w)) })
}
