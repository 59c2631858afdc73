// Package tracing keeps the recent slow requests with their stages, and exports sampled requests to a collector.
package tracing

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"understudy/kit/accesslog"
	"understudy/kit/lockwatch"
	"understudy/request"
)

const (
	maxSlow      = 100     // the number of slow requests that are kept
	maxWaiting   = 1 << 10 // the maximum number of requests that wait for the collector; more are dropped and counted
	sendInterval = time.Second
	sendTimeout  = 5 * time.Second
)

// Tracer follows requests. A nil Tracer does nothing. It is safe for concurrent use.
type Tracer struct {
	endpoint string // the URL of the collector; "" means that nothing is exported
	version  string
	slowTime time.Duration // the time from which a request is slow
	onSlow   func()        // called for each slow request
	log      *slog.Logger
	client   http.Client
	waiting  chan Request
	dropped  atomic.Int64
	mu       lockwatch.Mutex
	slow     []Request // the newest first
}

// New returns a Tracer. endpoint is the URL of the collector, or "". slow is the time from which a request is slow. onSlow
// is called for each slow request, and must not wait.
func New(endpoint, version string, slow time.Duration, onSlow func(), log *slog.Logger) *Tracer {
	return &Tracer{endpoint: endpoint, version: version, slowTime: slow, onSlow: onSlow, log: log, client: http.Client{Timeout: sendTimeout},
		waiting: make(chan Request, maxWaiting)}
}

// Request is an answered request. It contains no value of a record or of the request's target.
type Request struct {
	At          time.Time       `json:"at"`
	Took        time.Duration   `json:"took"` // in nanoseconds
	ID          string          `json:"id"`
	TraceID     string          `json:"trace,omitempty"`
	Caller      string          `json:"caller,omitempty"`
	Source      string          `json:"source"`
	Method      string          `json:"method"`
	Route       string          `json:"route,omitempty"` // the path in the spec
	Status      int             `json:"status"`
	How         string          `json:"how,omitempty"` // the outcome, as in the access log
	CacheStatus string          `json:"cache_status,omitempty"`
	Stages      []request.Stage `json:"stages"`
	Streams     bool            `json:"-"` // whether the answer may take any time, so that it is never slow
	trace       *request.Trace
}

// End exports an answered request if it is sampled, and keeps it if it was slow. trace may be nil. describe returns the
// request's source, route and Cache-Status.
func (t *Tracer) End(line *accesslog.Line, trace *request.Trace, describe func() Request) {
	isSampled := t != nil && t.endpoint != "" && trace != nil && trace.Parent.Flags&1 != 0
	if t == nil || line.Took < t.slowTime && !isSampled {
		return
	}
	r := describe()
	r.At, r.Took, r.ID, r.TraceID = line.At.UTC(), line.Took, accesslog.RedactNumber(line.ID), accesslog.RedactTrace(line.Trace)
	r.Method, r.Caller, r.Status, r.How, r.trace = line.RedactedMethod(), line.Caller, line.Status, line.Outcome, trace
	r.CacheStatus = accesslog.RedactNumber(r.CacheStatus)
	if isSampled {
		select {
		case t.waiting <- r:
		default:
			t.dropped.Add(1)
		}
	}
	if line.Took >= t.slowTime && !r.Streams {
		r.Stages = trace.Stages()
		t.onSlow()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.slow = slices.Insert(t.slow[:min(len(t.slow), maxSlow-1)], 0, r)
	}
}

// ListSlow returns the recent slow requests, the newest first.
func (t *Tracer) ListSlow() []Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Request{}, t.slow...)
}

// Load returns how many requests wait for the collector, and how many it did not get.
func (t *Tracer) Load() request.Load {
	return request.Load{Limit: maxWaiting, Now: int64(len(t.waiting)), Refused: t.dropped.Load()}
}

// Run sends requests to the collector until ctx ends, and the waiting requests then. Those that it does not accept are lost.
func (t *Tracer) Run(ctx context.Context) error {
	tick := time.NewTicker(sendInterval)
	defer tick.Stop()
	for failing, ended := false, false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		n := len(t.waiting)
		if n == 0 {
			continue
		}
		var spans []object
		for range n {
			spans = append(spans, newSpans(<-t.waiting)...)
		}
		err := t.send(spans)
		if err != nil {
			t.dropped.Add(int64(n))
		}
		if err != nil && !failing {
			t.log.Warn("tracing: requests are not exported", "endpoint", t.endpoint, "err", err)
		}
		failing = err != nil
	}
	return nil
}

// object is a message of OTLP 1 in its JSON encoding.
type object = map[string]any

// send sends spans to the collector once.
func (t *Tracer) send(spans []object) error {
	service := object{"attributes": attributes("service.name", "understudy", "service.version", t.version)}
	data, _ := json.Marshal(object{"resourceSpans": []object{{"resource": service, "scopeSpans": []object{{"spans": spans}}}}}) // cannot fail
	resp, err := t.client.Post(t.endpoint+"/v1/traces", "application/json", bytes.NewReader(data))
	if err == nil && resp.Body.Close() == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("the collector answered %s", resp.Status)
	}
	return err
}

// newSpans returns a span for a request and one for each of its stages.
func newSpans(r Request) []object {
	own := request.Stage{Name: r.Method + " " + r.Route, Begin: r.At, Took: r.Took, Status: r.Status, Span: request.NewSpanID()}
	all := []object{newSpan(r.trace, own, r.trace.Parent.Span, "http.request.method", r.Method, "http.route", r.Route,
		"understudy.source", r.Source, "understudy.caller", r.Caller, "understudy.request_id", r.ID, "understudy.how", r.How,
		"understudy.cache_status", r.CacheStatus)}
	all[0]["kind"] = 2 // SPAN_KIND_SERVER
	for _, s := range r.trace.Stages() {
		all = append(all, newSpan(r.trace, s, own.Span))
	}
	return all
}

// newSpan returns the span of a stage. texts are names and values of attributes.
func newSpan(t *request.Trace, s request.Stage, parent string, texts ...string) object {
	span := object{"traceId": t.Parent.Trace, "spanId": cmp.Or(s.Span, request.NewSpanID()), "parentSpanId": parent, "traceState": t.State,
		"name": s.Name, "kind": 1, "startTimeUnixNano": strconv.FormatInt(s.Begin.UnixNano(), 10), "attributes": attributes(texts...),
		"endTimeUnixNano": strconv.FormatInt(s.Begin.Add(s.Took).UnixNano(), 10)}
	if s.Status != 0 {
		status := object{"key": "http.response.status_code", "value": object{"intValue": strconv.Itoa(s.Status)}}
		span["kind"], span["attributes"] = 3, append(attributes(texts...), status) // SPAN_KIND_CLIENT
	}
	if s.Status >= http.StatusInternalServerError {
		span["status"] = object{"code": 2} // STATUS_CODE_ERROR
	}
	return span
}

func attributes(texts ...string) []object {
	all := []object{}
	for i := 0; i < len(texts); i += 2 {
		all = append(all, object{"key": texts[i], "value": object{"stringValue": texts[i+1]}})
	}
	return all
}
