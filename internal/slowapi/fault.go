// Faults: rules that make answers go wrong in the ways networks and servers do.
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

// rule is a fault: one line of POST /-/faults. What is not given does nothing. Rules are
// replaced whole, so only left changes.
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

	delay time.Duration
	left  *atomic.Int64 // how often it may still act; nil for always
	busy  chan struct{} // has as many places as requests are served at once; nil for all
}

// faults are the rules in force; the first that matches and has times left acts.
type faults struct {
	now atomic.Pointer[[]*rule]
}

// Bounds of a rule's numbers.
const (
	maxRules   = 1000
	maxDelayMS = 3_600_000
	maxPadMB   = 1024
	maxPlaces  = 10_000
	maxBytes   = 1 << 32
)

// pick finds the fault for a request target and counts it.
func (f *faults) pick(asked string) *rule {
	rules := f.now.Load()
	if rules == nil {
		return nil
	}
	for _, one := range *rules {
		if strings.Contains(asked, one.Match) && one.take() {
			return one
		}
	}
	return nil
}

// take uses up one of the fault's times; false when none is left.
func (f *rule) take() bool { return f.left == nil || f.left.Add(-1) >= 0 }

// readRules reads the body of POST /-/faults, strictly.
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
			f.busy = make(chan struct{}, *f.Places)
		}
		if f.Times != nil {
			f.left = new(atomic.Int64)
			f.left.Store(*f.Times)
		}
		rules[i] = f
	}
	return rules, nil
}

// check tells what is wrong with a rule.
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

// instead is what the fault answers in place of the real answer, if it does. A
// write it answers for is never carried out; one whose answer is only delayed,
// cut or lost is.
func (f *rule) instead(r *http.Request, refuse func(status int) format.Answer) (format.Answer, bool) {
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

// apply changes what the answer says about itself.
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
