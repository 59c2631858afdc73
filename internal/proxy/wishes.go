// Wishes: what a request's headers ask for.

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

// takesGzip reports whether an answer may and should go out compressed with
// gzip (RFC 9110, 12.5.3): gzip, or "*" where gzip is not named, has a weight
// above zero and not below one given to identity.
func takesGzip(lines []string) bool {
	if len(lines) == 0 {
		return false
	}
	gzip, any, identity := -1, -1, -1
	for item := range items(lines) {
		coding, params, _ := strings.Cut(item, ";")
		switch q := weight(params); strings.ToLower(strings.Trim(coding, " \t")) {
		case "gzip", "x-gzip":
			gzip = max(gzip, q)
		case "*":
			any = max(any, q)
		case "identity":
			identity = max(identity, q)
		}
	}
	if gzip < 0 {
		gzip = any
	}
	return gzip > 0 && gzip >= identity
}

// weight reads the q parameter in thousandths; 1000 when there is none, 0 when
// it is malformed.
func weight(params string) int {
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, ";")
		name, value, ok := strings.Cut(strings.Trim(param, " \t"), "=")
		if !ok || !strings.EqualFold(name, "q") {
			continue
		}
		whole, fraction, _ := strings.Cut(value, ".")
		if whole != "0" && whole != "1" || len(fraction) > 3 {
			return 0
		}
		n, err := strconv.Atoi(whole + (fraction + "000")[:3])
		if err != nil || n < 0 || n > 1000 || strings.ContainsAny(fraction, "+-") {
			return 0
		}
		return n
	}
	return 1000
}

// wish is what a Cache-Control request header asks for.
type wish struct {
	noCache   bool
	hasMaxAge bool
	maxAge    time.Duration
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

// cacheControl reads the request directives no-cache and max-age (RFC 9111,
// 5.2.1). The smallest max-age counts.
func cacheControl(lines []string) (w wish) {
	for item := range items(lines) {
		name, value, _ := strings.Cut(item, "=")
		switch strings.ToLower(strings.TrimRight(name, " \t")) {
		case "no-cache":
			w.noCache = true
		case "max-age":
			if d, ok := seconds(strings.Trim(value, " \t")); ok && (!w.hasMaxAge || d < w.maxAge) {
				w.hasMaxAge, w.maxAge = true, d
			}
		}
	}
	return w
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

// noneMatch reports whether an If-None-Match header names tag, given without
// its quotes, in its plain or its compressed form (RFC 9110, 13.1.2: weak
// comparison; the two forms are of one version).
func noneMatch(lines []string, tag string) bool {
	for item := range items(lines) {
		if item == "*" {
			return true
		}
		item = strings.TrimPrefix(item, "W/")
		if len(item) < 2 || item[0] != '"' || item[len(item)-1] != '"' {
			continue
		}
		if strings.TrimSuffix(item[1:len(item)-1], gzipSuffix) == tag {
			return true
		}
	}
	return false
}
