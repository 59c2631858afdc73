// Wishes: what a request's headers say of how old and how late an answer may be.

package proxy

import (
	"strconv"
	"strings"
	"time"
)

// items yields the comma-separated items of a header's lines, trimmed. Commas
// in quoted strings do not separate.
func items(lines []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, line := range lines {
			for line != "" {
				end, quoted := 0, false
				for ; end < len(line) && (quoted || line[end] != ','); end++ {
					switch line[end] {
					case '"':
						quoted = !quoted
					case '\\':
						if quoted {
							end++
						}
					}
				}
				end = min(end, len(line))
				if item := strings.Trim(line[:end], " \t"); item != "" && !yield(item) {
					return
				}
				if end == len(line) {
					break
				}
				line = line[end+1:]
			}
		}
	}
}

// wish is what Cache-Control asks for in a request.
type wish struct {
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

// cacheControl reads the directives of a request (RFC 9111, 5.2.1). One that is
// malformed or unknown counts as not said; of several alike the narrowest
// counts. no-store says nothing here: what is kept does not depend on who asks.
func cacheControl(lines []string) (w wish) {
	for item := range items(lines) {
		name, value, valued := strings.Cut(item, "=")
		number, ok := seconds(value)
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

// pragma reads what came before Cache-Control (RFC 9111, 5.4): it counts where
// there is none.
func pragma(lines []string) (w wish) {
	for item := range items(lines) {
		w.noCache = w.noCache || strings.EqualFold(item, "no-cache")
	}
	return w
}

// maxSeconds bounds the seconds a header may name; more means that many.
const maxSeconds = 1 << 31

// seconds reads a delta-seconds value, quoted or not (RFC 9111, 1.2.2).
func seconds(text string) (time.Duration, bool) {
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > maxSeconds {
		n = maxSeconds
	}
	return time.Duration(n) * time.Second, true
}

// preferredWait is the wait preference (RFC 7240, 4.3): how long the caller
// will wait for an answer. The first one counts.
func preferredWait(lines []string) (time.Duration, bool) {
	for item := range items(lines) {
		preference, _, _ := strings.Cut(item, ";")
		name, value, _ := strings.Cut(preference, "=")
		if strings.EqualFold(strings.Trim(name, " \t"), "wait") {
			return seconds(strings.Trim(value, " \t"))
		}
	}
	return 0, false
}
