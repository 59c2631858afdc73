// Limits: how an API tells that it takes no more requests for a while.

package spec

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Limits says how the API tells of its limits. A 429 always means that one is reached.
type Limits struct {
	// Statuses mean it too when the answer also has a Retry-After, tells that nothing
	// remains, or has one of Words in its body, in whichever case.
	Statuses []int    `yaml:"statuses"`
	Words    []string `yaml:"words"`
	// Limit, Remaining and Reset are header fields: the requests of a window, those left
	// of them, and when it ends. Default: X-RateLimit-Limit and so on.
	Limit     string `yaml:"limit"`
	Remaining string `yaml:"remaining"`
	Reset     string `yaml:"reset"`
}

// check reads the names in their canonical form.
func (l *Limits) check() error {
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
	for name, f := range map[string]*string{"Limit": &l.Limit, "Remaining": &l.Remaining, "Reset": &l.Reset} {
		if *f == "" {
			*f = "X-RateLimit-" + name
		}
		if err := checkHeader("limits."+strings.ToLower(name), *f); err != nil {
			return err
		}
		*f = http.CanonicalHeaderKey(*f)
	}
	return nil
}
