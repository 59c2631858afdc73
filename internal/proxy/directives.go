// Directives: how old a response may be, and how long the caller waits for it, by a request's headers.

package proxy

import (
	"strings"
	"time"

	"understudy/kit/header"
)

// directives are the Cache-Control directives of a request.
type directives struct {
	noCache      bool
	onlyIfCached bool
	maxAge       limit
	minFresh     limit
	maxStale     limit // the value of max-stale; less than 0 means any time
}

// limit is a duration, if the request has one.
type limit struct {
	said bool
	time.Duration
}

// pointer returns nil if the request has no limit.
func (l limit) pointer() *time.Duration {
	if !l.said {
		return nil
	}
	return &l.Duration
}

// narrow sets the limit if there is none or if it is longer.
func (l *limit) narrow(d time.Duration) {
	if !l.said || d < l.Duration {
		*l = limit{true, d}
	}
}

// anyTime is the duration of a max-stale without a number.
const anyTime time.Duration = -1

// cacheControl reads the directives of a request (RFC 9111, 5.2.1). It ignores malformed and unknown
// directives. Of several equal directives the strictest counts. no-store is ignored, because what is stored
// does not depend on the caller.
func cacheControl(lines []string) (w directives) {
	for item := range header.Items(lines) {
		name, value, valued := strings.Cut(item, "=")
		number, ok := header.Seconds(value)
		switch name = strings.ToLower(name); {
		case name == "no-cache":
			w.noCache = true
		case name == "only-if-cached":
			w.onlyIfCached = true
		case name == "max-stale" && !valued:
			if !w.maxStale.said {
				w.maxStale = limit{true, anyTime}
			}
		case !valued || !ok:
		case name == "max-age":
			w.maxAge.narrow(number)
		case name == "min-fresh":
			w.minFresh = limit{true, max(number, w.minFresh.Duration)}
		case name == "max-stale":
			if w.maxStale.Duration == anyTime {
				w.maxStale = limit{}
			}
			w.maxStale.narrow(number)
		}
	}
	return w
}

// pragma reads Pragma, the predecessor of Cache-Control (RFC 9111, 5.4). It counts only without Cache-Control.
func pragma(lines []string) (w directives) {
	for item := range header.Items(lines) {
		w.noCache = w.noCache || strings.EqualFold(item, "no-cache")
	}
	return w
}
