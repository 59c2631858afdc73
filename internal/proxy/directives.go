// Directives: how old and how late an answer may be, by a request's headers.

package proxy

import (
	"strings"
	"time"

	"understudy/kit/header"
)

// directives is what Cache-Control asks for in a request.
type directives struct {
	noCache      bool
	onlyIfCached bool
	maxAge       limit
	minFresh     limit
	maxStale     limit // less than 0: any time
}

// limit is a duration, if one was said.
type limit struct {
	said bool
	time.Duration
}

// pointer is nil when nothing was said.
func (l limit) pointer() *time.Duration {
	if !l.said {
		return nil
	}
	return &l.Duration
}

// narrow takes over a limit that is smaller, or the first one said.
func (l *limit) narrow(d time.Duration) {
	if !l.said || d < l.Duration {
		*l = limit{true, d}
	}
}

// anyTime is a max-stale without a number.
const anyTime time.Duration = -1

// cacheControl reads the directives of a request (RFC 9111, 5.2.1). A malformed or
// unknown directive is ignored; of several equal ones the narrowest counts.
// no-store is ignored: what is kept does not depend on the caller.
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

// pragma reads the predecessor of Cache-Control (RFC 9111, 5.4). It counts only without
// Cache-Control.
func pragma(lines []string) (w directives) {
	for item := range header.Items(lines) {
		w.noCache = w.noCache || strings.EqualFold(item, "no-cache")
	}
	return w
}
