// Faults: rules that delay, replace or damage responses.
package slowapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"understudy/internal/slowapi/format"
)

// rule is one fault in POST /-/faults. A member that is missing has no effect. After a rule was parsed, only
// remaining and slots change.
type rule struct {
	Match       string  `json:"match"`
	Times       *int64  `json:"times"`
	Status      *int    `json:"status"`
	RetryAfter  *int    `json:"retry_after"`
	DelayMS     *int64  `json:"delay_ms"`
	Places      *int64  `json:"places"`
	StallAfter  *int64  `json:"stall_after"`
	Truncate    *int64  `json:"truncate"`
	Reset       bool    `json:"reset"`
	GzipCut     *int64  `json:"gzip_cut"`
	Length      *int64  `json:"length"`
	Body        *string `json:"body"`
	ContentType *string `json:"content_type"`
	Redirect    *string `json:"redirect"`
	PadMB       *int64  `json:"pad_mb"`

	delay     time.Duration
	remaining *atomic.Int64 // how many more times the rule may apply; nil if there is no limit
	slots     chan struct{} // a semaphore that limits how many requests run at once; nil if there is no limit
}

// faults are the current rules. For each request, the first rule that matches and may still apply is used.
type faults struct {
	rules atomic.Pointer[[]*rule]
}

// Limits of the numbers in a rule.
const (
	maxRules   = 1000
	maxDelayMS = 3_600_000 // an hour in milliseconds
	maxPadMB   = 1024
	maxPlaces  = 10_000
	maxBytes   = 1 << 32 // the maximum for numbers of bytes in a rule, and for the number of its uses
)

// pick returns the rule for a request and counts its use. It returns nil if no rule matches the target of the request.
func (f *faults) pick(target string) *rule {
	rules := f.rules.Load()
	if rules == nil {
		return nil
	}
	for _, r := range *rules {
		if strings.Contains(target, r.Match) && r.take() {
			return r
		}
	}
	return nil
}

// take counts a use of the rule. It returns false if the rule may not apply any more.
func (f *rule) take() bool { return f.remaining == nil || f.remaining.Add(-1) >= 0 }

// readRules reads the body of POST /-/faults. An unknown member is an error.
func readRules(raw []byte) ([]*rule, error) {
	var in struct {
		Rules *[]rule `json:"rules"`
	}
	if err := format.DecodeStrict(raw, &in); err != nil {
		return nil, err
	}
	if in.Rules == nil {
		return nil, errors.New(`rules is missing; {"rules":[]} heals`)
	}
	if len(*in.Rules) > maxRules {
		return nil, fmt.Errorf("more than %d rules", maxRules)
	}
	rules := make([]*rule, len(*in.Rules))
	for i := range rules {
		f := &(*in.Rules)[i]
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		if f.DelayMS != nil {
			f.delay = time.Duration(*f.DelayMS) * time.Millisecond
		}
		if f.Places != nil {
			f.slots = make(chan struct{}, *f.Places)
		}
		if f.Times != nil {
			f.remaining = new(atomic.Int64)
			f.remaining.Store(*f.Times)
		}
		rules[i] = f
	}
	return rules, nil
}

// check returns an error if a number in the rule is out of bounds.
func (f *rule) check() error {
	if f.Status != nil && (*f.Status < 200 || *f.Status > 599) {
		return errors.New("status must be 200 to 599")
	}
	if f.RetryAfter != nil && (*f.RetryAfter < 0 || *f.RetryAfter > 86400) {
		return errors.New("retry_after must be 0 to 86400 seconds")
	}
	if f.Redirect != nil && (*f.Redirect == "" || strings.ContainsAny(*f.Redirect, "\r\n")) {
		return errors.New(`redirect must be a URL or "loop"`)
	}
	if f.ContentType != nil && strings.ContainsAny(*f.ContentType, "\r\n") {
		return errors.New("content_type must be one line")
	}
	for _, n := range []struct {
		name       string
		value      *int64
		least, top int64
	}{
		{"times", f.Times, 1, maxBytes},
		{"delay_ms", f.DelayMS, 0, maxDelayMS},
		{"places", f.Places, 1, maxPlaces},
		{"stall_after", f.StallAfter, 0, maxBytes},
		{"truncate", f.Truncate, 0, maxBytes},
		{"gzip_cut", f.GzipCut, 0, maxBytes},
		{"length", f.Length, -maxBytes, maxBytes},
		{"pad_mb", f.PadMB, 0, maxPadMB},
	} {
		if n.value != nil && (*n.value < n.least || *n.value > n.top) {
			return fmt.Errorf("%s must be %d to %d", n.name, n.least, n.top)
		}
	}
	return nil
}

// replacement returns the response that the rule sends instead of the real one. ok is false if the rule keeps the
// real response. If it replaces the response to a write, the write is not carried out. If it only delays, cuts or
// loses the response, the write is carried out.
func (f *rule) replacement(r *http.Request, refuse func(status int) format.Answer) (format.Answer, bool) {
	a := format.Answer{Status: http.StatusOK}
	if f.Body != nil {
		a.Body = []byte(*f.Body)
	}
	switch {
	case f.Redirect != nil:
		to := *f.Redirect
		if to == "loop" {
			to = r.URL.RequestURI()
		}
		a.Status, a.Header = http.StatusTemporaryRedirect, map[string]string{"Location": to}
	case f.Body != nil:
	case f.Status != nil && *f.Status >= 300:
		return refuse(*f.Status), true
	case f.Status == nil || *f.Status != http.StatusNoContent:
		return a, false
	}
	if f.Status != nil {
		a.Status = *f.Status
	}
	return a, true
}

// apply sets the status and the headers of the rule in the response.
func (f *rule) apply(a *format.Answer) {
	header := map[string]string{}
	maps.Copy(header, a.Header)
	if f.RetryAfter != nil {
		header["Retry-After"] = strconv.Itoa(*f.RetryAfter)
	}
	if f.ContentType != nil {
		header["Content-Type"] = *f.ContentType
	}
	if f.Status != nil {
		a.Status = *f.Status
	}
	a.Header = header
}
