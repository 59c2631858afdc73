// Limits: how an API tells that it takes no more requests for a while.

package spec

import (
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

// Limits says how the API tells of its limits. A 429 always means that one is reached.
type Limits struct {
	// Statuses mean it too when the answer also has a Retry-After, tells that nothing
	// remains, or has one of Words in its body, in whichever case.
	Statuses []int    `yaml:"statuses"`
	Words    []string `yaml:"words"`
	// Limit, Remaining and Reset are header fields: the requests of a window, those left
	// of them, and when it ends. Default: X-RateLimit-Limit and so on. Used is the field of
	// those that are not left; "": none.
	Limit     string `yaml:"limit"`
	Remaining string `yaml:"remaining"`
	Reset     string `yaml:"reset"`
	Used      string `yaml:"used"`
	// Resource is the header field that says for which of several limits a request has
	// counted: those are kept apart. Default: X-RateLimit-Resource.
	Resource string `yaml:"resource"`
	// Concurrent is the header field that says how many requests upstream has counted at
	// once, that of the answer with them; "": none.
	Concurrent string `yaml:"concurrent"`
	// ResetAs is how our own answers write Reset, when they tell a caller of the rate of its
	// credential: epoch (the default) or seconds.
	ResetAs string `yaml:"reset_as"`
	// Path is where the API tells a caller of its rate, and Answer what is told there, with
	// {limit}, {used}, {remaining} and {reset} of the caller's own credential; "": nowhere.
	Path   string `yaml:"path"`
	Answer string `yaml:"answer"`
}

// The forms of a reset.
const (
	ResetEpoch   = "epoch"   // Unix seconds
	ResetSeconds = "seconds" // from now
)

// check reads the names in their canonical form.
func (l *Limits) check(h *Headers) error {
	for _, status := range l.Statuses {
		if status < 400 || status > 599 || status == http.StatusUnauthorized {
			return fmt.Errorf("limits.statuses: %d: want statuses from 400 to 599, and not 401", status)
		}
	}
	if len(l.Words) > 0 && len(l.Statuses) == 0 || slices.Contains(l.Words, "") {
		return fmt.Errorf("limits.words: want texts of answers that have one of limits.statuses")
	}
	for i, words := range l.Words {
		l.Words[i] = strings.ToLower(words)
	}
	for name, f := range map[string]*string{"Limit": &l.Limit, "Remaining": &l.Remaining, "Reset": &l.Reset, "Used": &l.Used,
		"Resource": &l.Resource} {
		if *f == "" && name == "Used" {
			continue
		}
		if *f == "" {
			*f = "X-RateLimit-" + name
		}
		if err := checkHeader("limits."+strings.ToLower(name), *f); err != nil {
			return err
		}
		if *f = http.CanonicalHeaderKey(*f); slices.Contains(h.Back, *f) {
			return fmt.Errorf("headers.back: %s tells of a limit; answers say it of the caller's credential or of the source", *f)
		}
	}
	if l.Concurrent != "" {
		if err := checkHeader("limits.concurrent", l.Concurrent); err != nil {
			return err
		}
		if l.Concurrent = http.CanonicalHeaderKey(l.Concurrent); slices.Contains(h.Back, l.Concurrent) {
			return fmt.Errorf("headers.back: %s tells of requests of all callers", l.Concurrent)
		}
	}
	if l.Answer != "" && !json.Valid(l.Tell(understudy.Rate{}, time.Time{})) {
		return fmt.Errorf("limits.answer: it makes no JSON: want {limit}, {used}, {remaining} and {reset} where the numbers stand")
	}
	if (l.Path == "") != (l.Answer == "") || l.Path != "" && (!strings.HasPrefix(l.Path, "/") || strings.ContainsAny(l.Path, "{}?#")) {
		return fmt.Errorf("limits.path %q: want a path without variables, and limits.answer beside it", l.Path)
	}
	switch l.ResetAs {
	case "":
		l.ResetAs = ResetEpoch
	case ResetEpoch, ResetSeconds:
	default:
		return fmt.Errorf("limits.reset_as %q: want epoch or seconds", l.ResetAs)
	}
	return nil
}

// Numbers are a rate as answers write it.
type Numbers struct {
	Limit, Used, Remaining int64
	Reset                  int64 // when all are left again, as ResetAs says
}

// Numbers returns a rate as answers write it at a time.
func (l *Limits) Numbers(r understudy.Rate, now time.Time) Numbers {
	reset := int64(math.Ceil(r.Reset.Seconds()))
	if l.ResetAs != ResetSeconds {
		reset = now.Add(r.Reset).Unix()
	}
	return Numbers{r.Limit, r.Limit - r.Remaining, r.Remaining, reset}
}

// Tell is Answer with a rate in it.
func (l *Limits) Tell(r understudy.Rate, now time.Time) []byte {
	n, text := l.Numbers(r, now), func(n int64) string { return strconv.FormatInt(n, 10) }
	return []byte(strings.NewReplacer("{limit}", text(n.Limit), "{used}", text(n.Used), "{remaining}", text(n.Remaining),
		"{reset}", text(n.Reset)).Replace(l.Answer))
}
