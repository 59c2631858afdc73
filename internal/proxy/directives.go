// This file reads from the headers of a request how old a response may be, and how long the caller waits for it.

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
	maxStale     limit // the value of max-stale; a negative value means any time
}

// limit is the duration of a directive. isSet is false if the request does not have the directive.
type limit struct {
	isSet bool
	time.Duration
}

// pointer returns the duration, or nil if the request does not have the directive.
func (l limit) pointer() *time.Duration {
	if !l.isSet {
		return nil
	}
	return &l.Duration
}

// narrow shortens the limit to d if it is longer or missing.
func (l *limit) narrow(d time.Duration) {
	if !l.isSet || d < l.Duration {
		*l = limit{true, d}
	}
}

// anyTime is the duration of a max-stale without a number.
const anyTime time.Duration = -1

// cacheControl reads the Cache-Control directives of a request (RFC 9111, 5.2.1). It ignores malformed and unknown
// directives. If a directive is repeated, its strictest value counts. no-store is ignored, because what is stored
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
			if !w.maxStale.isSet {
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

// pragma reads Pragma, the predecessor of Cache-Control (RFC 9111, 5.4). Pragma counts only if the request has no
// Cache-Control.
func pragma(lines []string) (w directives) {
	for item := range header.Items(lines) {
		w.noCache = w.noCache || strings.EqualFold(item, "no-cache")
	}
	return w
}
