// This file finds out how an API tells its clients that a rate limit is reached.

package infer

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/openapi"
	"understudy/spec"
)

// limits holds the limits section of the spec. Keys with their default value are left out.
type limits struct {
	spec            spec.Limits
	why             map[string]string
	standardHeaders []string // the header fields that Understudy reads without a setting in the spec
}

// Patterns for descriptions that mention a rate limit, a time in seconds from now, or a time as a timestamp.
var (
	limitText   = regexp.MustCompile(`(?i)rate[ _-]?limit\w*|too many requests|throttl\w+|quota (?:is )?(?:exceeded|reached)|secondary rate`)
	secondsText = regexp.MustCompile(`(?i)\bseconds\s+(?:until|till|left|remaining|before|to|from now|in which|after which)|` +
		`\bin how many seconds|number of (?:\w+ )?seconds|remaining seconds|delta[- ]seconds`)
	epochText = regexp.MustCompile(`(?i)\bepoch|\bunix|\bUTC\b|timestamp|since 1970`)
)

// isLimitHeader reports whether a header field describes a rate limit that all callers of the upstream share.
func isLimitHeader(name string) bool {
	folded, counted := foldName(name), hasWord(name, "limit", "calls", "requests", "credits")
	return strings.Contains(folded, "ratelimit") || strings.Contains(folded, "requestlimit") ||
		hasWord(name, "quota", "throttle", "retry") || counted && hasWord(name, "remaining", "reset", "used")
}

// findLimits finds the header fields that describe a rate limit, and the statuses besides 429 that mean that the
// limit is reached.
func (a *api) findLimits() *limits {
	l := &limits{why: map[string]string{}}
	a.findRateHeaders(l)
	for text, refusal := range sortedEntries(a.doc.Headers.Refusals) {
		status, err := strconv.Atoi(text)
		if err != nil || status == http.StatusUnauthorized || status == http.StatusTooManyRequests || status > 599 {
			continue
		}
		if why, words := limitReason(text, refusal, l.spec.Remaining); why != "" {
			l.spec.Statuses = append(l.spec.Statuses, status)
			l.why["statuses"] = cmp.Or(l.why["statuses"], why)
			for _, word := range words {
				if !slices.Contains(l.spec.Words, word) && len(l.spec.Words) < 5 {
					l.spec.Words = append(l.spec.Words, word)
				}
			}
		}
	}
	l.why["words"] = "from examples of such answers"
	forbidden, many := a.doc.Headers.Refusals["403"], a.doc.Headers.Refusals["429"]
	rate := l.spec.Remaining != "" || len(l.standardHeaders) > 0
	switch {
	case many == nil && len(l.spec.Statuses) == 0 && !rate:
		a.noteOnce("", "limits: it is not known how the API refuses requests above its limit; the spec expects status 429")
	case rate && forbidden != nil && !slices.Contains(l.spec.Statuses, http.StatusForbidden) &&
		(many == nil || many.Answers < forbidden.Answers):
		a.noteOnce("", "limits: status 403 may also mean that a limit is reached; if it does, add it to limits.statuses")
	}
	return l
}

// limitStatuses are the statuses with which an API may refuse a request because of a rate limit. Other statuses have
// another meaning, even in an API whose responses all show the remaining requests.
var limitStatuses = []string{"403", "420", "430", "498", "503", "509", "529"}

// limitReason returns why a response with the given status means that a rate limit is reached, or "" if it does not.
// words are texts from examples of such responses.
func limitReason(status string, r *openapi.Refusal, remaining string) (why string, words []string) {
	for _, x := range r.Examples {
		walkTexts(x, func(text string) {
			if m := limitText.FindString(text); m != "" {
				words, why = append(words, strings.ToLower(m)), "an example of an answer with status "+status
			}
		})
	}
	for _, text := range r.Texts {
		if limitText.MatchString(text) {
			why = "the description of answers with status " + status
		}
	}
	for _, name := range r.Headers {
		if !slices.Contains(limitStatuses, status) {
			continue
		}
		told := remaining != "" && strings.EqualFold(name, remaining) || hasWord(name, "remaining") && isLimitHeader(name)
		if status[0] == '4' && (told || strings.EqualFold(name, "Retry-After")) {
			why = "an answer with status " + status + " has " + name
		}
	}
	return why, words
}

// walkTexts calls do with each text inside a value, down to a few levels.
func walkTexts(v *openapi.Value, do func(string)) {
	var walk func(v *openapi.Value, depth int)
	walk = func(v *openapi.Value, depth int) {
		if v == nil || depth > 4 {
			return
		}
		if v.Kind == openapi.String {
			do(v.Text)
		}
		for _, item := range v.Items[:min(len(v.Items), 50)] {
			walk(item, depth+1)
		}
	}
	walk(v, 0)
}

// findRateHeaders finds the header fields for the maximum number of requests in a time window, the remaining
// requests, and the end of the window. It starts from a field that has "remaining" in its name.
func (a *api) findRateHeaders(l *limits) {
	var remaining []*openapi.ResponseHeader
	for _, t := range sortedEntries(a.doc.Headers.Responses) {
		if isLimitHeader(t.Name) && hasWord(t.Name, "remaining") && canBeLimitHeader(t.Name) {
			remaining = append(remaining, t)
		}
	}
	for _, name := range []string{"Ratelimit", "Ratelimit-Policy"} {
		if t := a.doc.Headers.Responses[name]; t != nil {
			l.standardHeaders = append(l.standardHeaders, t.Name)
		}
	}
	if len(remaining) == 0 {
		return
	}
	first := slices.MaxFunc(remaining, func(x, y *openapi.ResponseHeader) int { return cmp.Compare(x.Answers, y.Answers) })
	l.spec.Remaining = first.Name
	stem := strings.ReplaceAll(foldName(first.Name), "remaining", "")
	for _, t := range sortedEntries(a.doc.Headers.Responses) {
		switch {
		case t == first || !canBeLimitHeader(t.Name):
		case l.spec.Limit == "" && (foldName(t.Name) == stem+"limit" || foldName(t.Name) == stem):
			l.spec.Limit = t.Name
		case l.spec.Reset == "" && foldName(t.Name) == stem+"reset":
			l.spec.Reset = t.Name
			if isResetInSeconds(t) {
				l.spec.ResetAs, l.why["reset_as"] = spec.ResetSeconds, "its description or example"
			}
		}
	}
	if len(remaining) > 1 {
		var others []string
		for _, t := range remaining {
			if t != first && len(others) < 3 {
				others = append(others, t.Name)
			}
		}
		a.noteOnce("", "limits: there are several; only "+first.Name+" is read, not "+strings.Join(others, ", "))
	}
	usual := true
	for field, value := range map[string]string{"Limit": l.spec.Limit, "Remaining": l.spec.Remaining, "Reset": l.spec.Reset} {
		usual = usual && (value == "" || strings.EqualFold(value, "X-RateLimit-"+field))
	}
	if usual {
		for _, name := range []string{l.spec.Limit, l.spec.Remaining, l.spec.Reset} {
			if name != "" {
				l.standardHeaders = append(l.standardHeaders, name)
			}
		}
		l.spec.Limit, l.spec.Remaining, l.spec.Reset = "", "", ""
	}
	l.why["limit"], l.why["remaining"] = "the maximum number of requests", "how many requests are left"
	l.why["reset"] = "when the limit is reset"
}

// isResetInSeconds reports whether a field gives the seconds until the window ends, not a timestamp.
func isResetInSeconds(t *openapi.ResponseHeader) bool {
	const longest = 366 * 24 * 3600
	if n, err := strconv.ParseFloat(t.Example, 64); err == nil {
		return n >= 0 && n < longest
	}
	return secondsText.MatchString(t.Text) && !epochText.MatchString(t.Text) || foldName(t.Name) == "ratelimitreset"
}

// canBeLimitHeader reports whether a spec is valid with this header field in its limits section.
func canBeLimitHeader(name string) bool {
	sp := bareSpec()
	sp.Limits.Remaining = name
	return sp.Compile() == nil
}

// writeLimits writes the limits section of the spec, and comments about values that need no setting.
func (a *api) writeLimits(w *writer) {
	l := a.findLimits()
	if a.doc.Headers.Responses["Etag"] != nil {
		w.writeLine(0, "# Its answers have an ETag. Understudy requests a stored page with If-None-Match; this needs no setting.", "")
	}
	if len(l.standardHeaders) > 0 {
		w.writeLine(0, "# "+strings.Join(l.standardHeaders, ", ")+" of its answers describe its limits. Understudy reads them; this "+
			"needs no setting.", "")
	}
	if len(l.spec.Statuses) == 0 && l.spec.Limit+l.spec.Remaining+l.spec.Reset+l.spec.ResetAs == "" {
		return
	}
	w.writeLine(0, "limits:", "")
	if len(l.spec.Statuses) > 0 {
		w.writeEntry(1, "statuses", strings.ReplaceAll(fmt.Sprint(l.spec.Statuses), " ", ", "), l.why["statuses"])
	}
	w.writeEntry(1, "words", yamlList(l.spec.Words), l.why["words"])
	for _, entry := range []struct{ key, value string }{
		{"limit", l.spec.Limit}, {"remaining", l.spec.Remaining}, {"reset", l.spec.Reset}, {"reset_as", l.spec.ResetAs},
	} {
		w.writeEntry(1, entry.key, yamlScalar(entry.value), l.why[entry.key])
	}
}
