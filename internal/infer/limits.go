// Limits: how an API tells that it takes no more requests for a while.

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

// limits is what a document tells of the API's limits: the spec's keys that are not their
// defaults, with a reason for each.
type limits struct {
	spec            spec.Limits
	why             map[string]string
	standardHeaders []string // fields that are read without being named
}

// What texts say of a limit, and of the form of a time.
var (
	limitText   = regexp.MustCompile(`(?i)rate[ _-]?limit\w*|too many requests|throttl\w+|quota (?:is )?(?:exceeded|reached)|secondary rate`)
	secondsText = regexp.MustCompile(`(?i)\bseconds\s+(?:until|till|left|remaining|before|to|from now|in which|after which)|` +
		`\bin how many seconds|number of (?:\w+ )?seconds|remaining seconds|delta[- ]seconds`)
	epochText = regexp.MustCompile(`(?i)\bepoch|\bunix|\bUTC\b|timestamp|since 1970`)
)

// isLimitHeader reports whether a header field tells of a limit that all callers of upstream share.
func isLimitHeader(name string) bool {
	folded, counted := foldName(name), hasWord(name, "limit", "calls", "requests", "credits")
	return strings.Contains(folded, "ratelimit") || strings.Contains(folded, "requestlimit") ||
		hasWord(name, "quota", "throttle", "retry") || counted && hasWord(name, "remaining", "reset", "used")
}

// findLimits finds the fields that tell of a limit, and the statuses beside 429 that mean one.
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
			for _, one := range words {
				if !slices.Contains(l.spec.Words, one) && len(l.spec.Words) < 5 {
					l.spec.Words = append(l.spec.Words, one)
				}
			}
		}
	}
	l.why["words"] = "of examples of such answers"
	forbidden, many := a.doc.Headers.Refusals["403"], a.doc.Headers.Refusals["429"]
	rate := l.spec.Remaining != "" || len(l.standardHeaders) > 0
	switch {
	case many == nil && len(l.spec.Statuses) == 0 && !rate:
		a.noteOnce("", "limits: nothing says how the API tells that it takes no more requests for a while: a 429 is taken for it")
	case rate && forbidden != nil && !slices.Contains(l.spec.Statuses, http.StatusForbidden) &&
		(many == nil || many.Answers < forbidden.Answers):
		a.noteOnce("", "limits: nothing says whether a 403 is a limit, too: if it is, name it in limits.statuses")
	}
	return l
}

// limitStatuses are statuses by which an API may say that a limit is reached. Others have a meaning of
// their own, also where every answer tells what remains.
var limitStatuses = []string{"403", "420", "430", "498", "503", "509", "529"}

// limitReason says why answers with a status mean that a limit is reached; "" = they do not. words
// are texts of such an answer.
func limitReason(status string, r *openapi.Refusal, remaining string) (why string, words []string) {
	for _, x := range r.Examples {
		walkTexts(x, func(text string) {
			if m := limitText.FindString(text); m != "" {
				words, why = append(words, strings.ToLower(m)), "an example of an answer "+status
			}
		})
	}
	for _, text := range r.Texts {
		if limitText.MatchString(text) {
			why = "how an answer " + status + " is described"
		}
	}
	for _, name := range r.Headers {
		if !slices.Contains(limitStatuses, status) {
			continue
		}
		told := remaining != "" && strings.EqualFold(name, remaining) || hasWord(name, "remaining") && isLimitHeader(name)
		if status[0] == '4' && (told || strings.EqualFold(name, "Retry-After")) {
			why = "an answer " + status + " has " + name
		}
	}
	return why, words
}

// walkTexts calls do with the texts of a value, a few levels deep.
func walkTexts(v *openapi.Value, do func(string)) {
	var walk func(v *openapi.Value, depth int)
	walk = func(v *openapi.Value, depth int) {
		if v == nil || depth > 4 {
			return
		}
		if v.Kind == openapi.String {
			do(v.Text)
		}
		for _, one := range v.Items[:min(len(v.Items), 50)] {
			walk(one, depth+1)
		}
	}
	walk(v, 0)
}

// findRateHeaders finds the three fields that tell how much a window has, how much remains of it and
// when it ends: by the one with remaining in its name.
func (a *api) findRateHeaders(l *limits) {
	var remaining []*openapi.Told
	for _, t := range sortedEntries(a.doc.Headers.Told) {
		if isLimitHeader(t.Name) && hasWord(t.Name, "remaining") && canBeLimitHeader(t.Name) {
			remaining = append(remaining, t)
		}
	}
	for _, name := range []string{"Ratelimit", "Ratelimit-Policy"} {
		if t := a.doc.Headers.Told[name]; t != nil {
			l.standardHeaders = append(l.standardHeaders, t.Name)
		}
	}
	if len(remaining) == 0 {
		return
	}
	first := slices.MaxFunc(remaining, func(x, y *openapi.Told) int { return cmp.Compare(x.Answers, y.Answers) })
	l.spec.Remaining = first.Name
	stem := strings.ReplaceAll(foldName(first.Name), "remaining", "")
	for _, t := range sortedEntries(a.doc.Headers.Told) {
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
		others := joinNamesExcept(remaining, first)
		a.noteOnce("", "limits: there are several, and one is read: "+first.Name+"; the others are "+others)
	}
	usual := true
	for field, value := range map[string]string{"Limit": l.spec.Limit, "Remaining": l.spec.Remaining, "Reset": l.spec.Reset} {
		usual = usual && (value == "" || strings.EqualFold(value, "X-RateLimit-"+field))
	}
	if usual {
		for _, one := range []string{l.spec.Limit, l.spec.Remaining, l.spec.Reset} {
			if one != "" {
				l.standardHeaders = append(l.standardHeaders, one)
			}
		}
		l.spec.Limit, l.spec.Remaining, l.spec.Reset = "", "", ""
	}
	l.why["limit"], l.why["remaining"], l.why["reset"] = "how many requests a window has", "how many of them are left", "when it ends"
}

// joinNamesExcept are the names of fields other than one.
func joinNamesExcept(all []*openapi.Told, but *openapi.Told) string {
	var out []string
	for _, t := range all {
		if t != but && len(out) < 3 {
			out = append(out, t.Name)
		}
	}
	return strings.Join(out, ", ")
}

// isResetInSeconds reports whether a field says in how many seconds a window ends.
func isResetInSeconds(t *openapi.Told) bool {
	const longest = 366 * 24 * 3600
	if n, err := strconv.ParseFloat(t.Example, 64); err == nil {
		return n >= 0 && n < longest
	}
	return secondsText.MatchString(t.Text) && !epochText.MatchString(t.Text) || foldName(t.Name) == "ratelimitreset"
}

// canBeLimitHeader reports whether a spec may name a field as that of a limit.
func canBeLimitHeader(name string) bool {
	sp := bareSpec()
	sp.Limits.Remaining = name
	return sp.Compile() == nil
}

func (a *api) writeLimits(w *writer) {
	l := a.findLimits()
	if a.doc.Headers.Told["Etag"] != nil {
		w.writeLine(0, "# Its answers have an ETag: a page that is held is asked for with If-None-Match, without being named.", "")
	}
	if len(l.standardHeaders) > 0 {
		w.writeLine(0, "# "+strings.Join(l.standardHeaders, ", ")+" of its answers tell of its limits; they are read without being named.", "")
	}
	if len(l.spec.Statuses) == 0 && l.spec.Limit+l.spec.Remaining+l.spec.Reset+l.spec.ResetAs == "" {
		return
	}
	w.writeLine(0, "limits:", "")
	if len(l.spec.Statuses) > 0 {
		w.writeEntry(1, "statuses", strings.ReplaceAll(fmt.Sprint(l.spec.Statuses), " ", ", "), l.why["statuses"])
	}
	w.writeEntry(1, "words", yamlList(l.spec.Words), l.why["words"])
	for _, one := range []struct{ key, value string }{
		{"limit", l.spec.Limit}, {"remaining", l.spec.Remaining}, {"reset", l.spec.Reset}, {"reset_as", l.spec.ResetAs},
	} {
		w.writeEntry(1, one.key, yamlScalar(one.value), l.why[one.key])
	}
}
