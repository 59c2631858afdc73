// This file declares Trace, which follows a client's request through the stages of its answer.

package request

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"understudy/kit/header"
)

// Trace follows a client's request. A nil Trace records nothing. It is safe for concurrent use.
type Trace struct {
	ID     string             // the id of the request, as in the access log; "" if no stages are recorded
	Parent header.Traceparent // what the client sent; zero if it sent no valid traceparent
	State  string             // the client's tracestate
	Now    func() time.Time

	mu     sync.Mutex
	stages []Stage
}

// Stage is a part of the work for a request. Stages can overlap.
type Stage struct {
	Name   string        `json:"name"`
	Begin  time.Time     `json:"begin"`
	Took   time.Duration `json:"took"`             // in nanoseconds
	Status int           `json:"status,omitempty"` // the status of the upstream's answer
	Span   string        `json:"-"`                // the id that was sent to the upstream, or ""
}

// NewTrace returns the trace of a request with the given header.
func NewTrace(h http.Header, now func() time.Time) *Trace {
	t := &Trace{Now: now, Parent: ParentOf(h)}
	if t.Parent.Trace != "" {
		t.State = strings.Join(h["Tracestate"], ",")
	}
	return t
}

// ParentOf returns what the client sent about its trace. It is zero if the client sent no valid traceparent.
func ParentOf(h http.Header) (parent header.Traceparent) {
	if given := h["Traceparent"]; len(given) == 1 {
		parent, _ = header.ParseTraceparent(given[0])
	}
	return parent
}

// NewSpanID returns a random id of a part of a trace.
func NewSpanID() string { return fmt.Sprintf("%016x", rand.Uint64()|1) }

// Begin begins a stage. End ends it.
func (t *Trace) Begin(name string) Stage {
	if t == nil || t.ID == "" {
		return Stage{}
	}
	return Stage{Name: name, Begin: t.Now()}
}

// BeginUpstream begins the stage of a request to the upstream, and adds the ids of the client's request to its header.
func (t *Trace) BeginUpstream(h http.Header) Stage {
	s := t.Begin("upstream")
	if t != nil && h["X-Request-Id"] == nil {
		h["X-Request-Id"] = []string{t.ID}
	}
	if t != nil && t.Parent.Trace != "" {
		s.Span = NewSpanID()
		h["Traceparent"] = []string{fmt.Sprintf("00-%s-%s-%02x", t.Parent.Trace, s.Span, t.Parent.Flags)}
		if delete(h, "Tracestate"); t.State != "" {
			h["Tracestate"] = []string{t.State}
		}
	}
	return s
}

// End ends a stage. status is the status of the upstream's answer, or 0.
func (t *Trace) End(s Stage, status int) {
	if s.Name == "" {
		return
	}
	s.Took, s.Status = t.Now().Sub(s.Begin), status
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stages = append(t.stages, s)
}

// Stages returns the stages that have ended.
func (t *Trace) Stages() []Stage {
	if t == nil {
		return []Stage{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Stage{}, t.stages...)
}

type traceKey struct{}

// WithTrace returns a context of work that the request of t causes.
func WithTrace(ctx context.Context, t *Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceOf returns the trace of a context, or nil.
func TraceOf(ctx context.Context) *Trace {
	t, _ := ctx.Value(traceKey{}).(*Trace)
	return t
}
