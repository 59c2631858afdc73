// Limits: how an API reports that it accepts no more requests for a while.

package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
)

// Limits says how the API reports its rate limits. A 429 always means that a limit is reached.
type Limits struct {
	// Statuses are further statuses that can mean a reached limit. In addition, the answer must have a
	// Retry-After, report that nothing remains, or contain one of Words in its body, in any letter case.
	Statuses []int    `yaml:"statuses"`
	Words    []string `yaml:"words"`
	// Limit, Remaining and Reset are the header fields with the requests allowed in a window, the number left,
	// and the end of the window. The default is X-RateLimit-Limit and so on. Used is the field with the number
	// used, or "" if there is none.
	Limit     string `yaml:"limit"`
	Remaining string `yaml:"remaining"`
	Reset     string `yaml:"reset"`
	Used      string `yaml:"used"`
	// Resource is the header field that names the limit for which a request counted, if the API has several limits. Each
	// limit is tracked separately. Default: X-RateLimit-Resource.
	Resource string `yaml:"resource"`
	// Concurrent is the header field with the number of concurrent requests that the upstream counted, including the
	// answered request. "" means that there is no such field.
	Concurrent string `yaml:"concurrent"`
	// ResetAs is the form of Reset in Understudy's own answers, which report the rate of the caller's
	// credential: epoch (the default) or seconds.
	ResetAs string `yaml:"reset_as"`
	// Path is where the API reports the rate of a caller, or "" if it does not. Answer is the report, with {limit},
	// {used}, {remaining} and {reset} of the caller's own credential.
	Path   string `yaml:"path"`
	Answer string `yaml:"answer"`
}

// The forms of a reset time.
const (
	ResetEpoch   = "epoch"   // the reset time is given in Unix seconds
	ResetSeconds = "seconds" // the reset time is given in seconds from now
)

// check converts the names to canonical form, fills in defaults and checks the settings.
func (l *Limits) check(h *Headers) error {
	for _, status := range l.Statuses {
		if status < 400 || status > 599 || status == http.StatusUnauthorized {
			return fmt.Errorf("limits.statuses: %d is not allowed; write statuses from 400 to 599, but not 401", status)
		}
	}
	if len(l.Words) > 0 && len(l.Statuses) == 0 || slices.Contains(l.Words, "") {
		return fmt.Errorf("limits.words: a text is empty, or limits.statuses is missing; words are searched only in answers with these statuses")
	}
	for i, words := range l.Words {
		l.Words[i] = strings.ToLower(words)
	}
	for name, f := range map[string]*string{"Limit": &l.Limit, "Remaining": &l.Remaining, "Reset": &l.Reset, "Used": &l.Used,
		"Resource": &l.Resource} {
		if *f == "" && name == "Used" {
			continue
		}
		*f = cmp.Or(*f, "X-RateLimit-"+name)
		if err := checkHeader("limits."+strings.ToLower(name), *f); err != nil {
			return err
		}
		if *f = http.CanonicalHeaderKey(*f); slices.Contains(h.Back, *f) {
			return fmt.Errorf("headers.back: %s is about a limit, and this server writes it for each caller; remove it", *f)
		}
	}
	if l.Concurrent != "" {
		if err := checkHeader("limits.concurrent", l.Concurrent); err != nil {
			return err
		}
		if l.Concurrent = http.CanonicalHeaderKey(l.Concurrent); slices.Contains(h.Back, l.Concurrent) {
			return fmt.Errorf("headers.back: %s counts the requests of all callers, and no caller may see them; remove it", l.Concurrent)
		}
	}
	if l.Answer != "" && !json.Valid(l.FillAnswer(understudy.Rate{}, time.Time{})) {
		return fmt.Errorf("limits.answer is not JSON after filling; write {limit}, {used}, {remaining} and {reset} in the place of numbers")
	}
	if (l.Path == "") != (l.Answer == "") || l.Path != "" && (!strings.HasPrefix(l.Path, "/") || strings.ContainsAny(l.Path, "{}?#")) {
		return fmt.Errorf("limits.path %q: write a path without variables, and limits.answer for its answer", l.Path)
	}
	switch l.ResetAs {
	case "":
		l.ResetAs = ResetEpoch
	case ResetEpoch, ResetSeconds:
	default:
		return fmt.Errorf("limits.reset_as %q is not known; write epoch or seconds", l.ResetAs)
	}
	return nil
}

// Numbers are the values of a rate as answers write them.
type Numbers struct {
	Limit, Used, Remaining int64
	Reset                  int64 // when all requests are available again, in the form that ResetAs names
}

// Numbers returns the values of a rate as answers write them at the time now.
func (l *Limits) Numbers(r understudy.Rate, now time.Time) Numbers {
	reset := int64(math.Ceil(r.Reset.Seconds()))
	if l.ResetAs != ResetSeconds {
		reset = now.Add(r.Reset).Unix()
	}
	return Numbers{r.Limit, r.Limit - r.Remaining, r.Remaining, reset}
}

// FillAnswer returns Answer with the values of a rate.
func (l *Limits) FillAnswer(r understudy.Rate, now time.Time) []byte {
	n, text := l.Numbers(r, now), func(n int64) string { return strconv.FormatInt(n, 10) }
	return []byte(strings.NewReplacer("{limit}", text(n.Limit), "{used}", text(n.Used), "{remaining}", text(n.Remaining),
		"{reset}", text(n.Reset)).Replace(l.Answer))
}
