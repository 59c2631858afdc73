package tracing

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/kit/accesslog"
	"understudy/request"
)

const traceID, clientSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

// message has the messages of OTLP of which the collector reads something.
type message struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes []pair }
		ScopeSpans []struct{ Spans []spanMessage }
	}
}

type spanMessage struct {
	TraceID           string `json:"traceId"`
	TraceState        string
	SpanID            string `json:"spanId"`
	ParentSpanID      string `json:"parentSpanId"`
	Name              string
	Kind              int
	StartTimeUnixNano string
	EndTimeUnixNano   string
	Attributes        []pair
	Status            *struct{ Code int }
}

type pair struct {
	Key   string
	Value struct{ StringValue, IntValue *string }
}

// text returns the attribute with a key.
func (s *spanMessage) text(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key && a.Value.StringValue != nil {
			return *a.Value.StringValue
		} else if a.Key == key {
			return *a.Value.IntValue
		}
	}
	return ""
}

// collector is a collector that decodes what is sent. Unknown members of a message are an error.
type collector struct {
	mu     sync.Mutex
	status int
	spans  []spanMessage
	bad    []string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in, m := json.NewDecoder(r.Body), message{}
	in.DisallowUnknownFields()
	what := r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type")
	if err := in.Decode(&m); err != nil || what != "POST /v1/traces application/json" {
		c.bad = append(c.bad, fmt.Sprint(what, err))
	}
	if c.status != 0 {
		w.WriteHeader(c.status)
		return
	}
	for _, r := range m.ResourceSpans {
		for _, s := range r.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
}

// export runs do with a tracer whose collector answers with a status, and returns what that has got.
func export(t *testing.T, status int, log io.Writer, do func(*Tracer)) (*Tracer, *collector) {
	t.Helper()
	c := &collector{status: status}
	s := httptest.NewServer(c)
	defer s.Close()
	tracer := New(s.URL, "v1", time.Second, func() {}, slog.New(slog.NewTextHandler(log, nil)))
	do(tracer)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the waiting requests are sent at the end
	checktest.MustNoError(t, tracer.Run(ctx), "Run")
	for _, bad := range c.bad {
		t.Error(bad)
	}
	return tracer, c
}

// sampledRequest returns a request of a client whose trace has flags.
func sampledRequest(flags string) (*accesslog.Line, *request.Trace) {
	h := http.Header{"Traceparent": {"00-" + traceID + "-" + clientSpan + "-" + flags}, "Tracestate": {"a=1"}}
	trace := request.NewTrace(h, time.Now)
	trace.ID = "mine-1"
	return &accesslog.Line{At: time.Now(), ID: "mine-1", Trace: traceID, Method: "GET", Status: 200, Caller: "reports", Outcome: "cold",
		Took: 812 * time.Millisecond}, trace
}

func describe() Request {
	return Request{Source: "twilio", Route: "/Calls.json", CacheStatus: "understudy; fwd=uri-miss"}
}

func TestSampledRequestReachesTheCollectorWithItsStages(t *testing.T) {
	line, trace := sampledRequest("01")
	_, c := export(t, 0, io.Discard, func(tracer *Tracer) {
		tracer.End(line, trace, describe)
		sent := http.Header{}
		trace.End(trace.Begin("budget"), 0)
		trace.End(trace.BeginUpstream(sent), 503) // a refresh that ends after the answer
		checktest.Equal(t, len(tracer.ListSlow()), 0, "the slow requests")
	})
	checktest.MustEqual(t, len(c.spans), 3, "len(c.spans)")
	own, budget, upstream := c.spans[0], c.spans[1], c.spans[2]
	for name, got := range map[string][2]string{
		"trace": {own.TraceID, traceID}, "parent": {own.ParentSpanID, clientSpan}, "name": {own.Name, "GET /Calls.json"},
		"state": {own.TraceState, "a=1"}, "route": {own.text("http.route"), "/Calls.json"},
		"status": {own.text("http.response.status_code"), "200"},
		"method": {own.text("http.request.method"), "GET"}, "id": {own.text("understudy.request_id"), "mine-1"},
		"how": {own.text("understudy.how"), "cold"}, "why": {own.text("understudy.cache_status"), "understudy; fwd=uri-miss"},
		"begin":  {own.StartTimeUnixNano, fmt.Sprint(line.At.UnixNano())},
		"end":    {own.EndTimeUnixNano, fmt.Sprint(line.At.Add(line.Took).UnixNano())},
		"caller": {own.text("understudy.caller"), "reports"}, "source": {own.text("understudy.source"), "twilio"},
		"a stage": {budget.Name, "budget"}, "a stage's parent": {budget.ParentSpanID, own.SpanID},
		"the request upstream": {upstream.Name, "upstream"},
		"its trace":            {upstream.TraceID, traceID}, "its status": {upstream.text("http.response.status_code"), "503"},
		"its span": {upstream.SpanID, trace.Stages()[1].Span},
	} {
		checktest.Equal(t, got[0], got[1], "%s", name)
	}
	checktest.Equal(t, fmt.Sprint(own.Kind, budget.Kind, upstream.Kind), "2 1 3", "the kinds of the spans")
	checktest.True(t, own.Status == nil, "an answer with 200 is an error")
	checktest.MustTrue(t, upstream.Status != nil, "an answer with 503 is no error")
	checktest.Equal(t, upstream.Status.Code, 2, "upstream.Status.Code")
}

func TestOnlySampledRequestsAreExported(t *testing.T) {
	_, c := export(t, 0, io.Discard, func(tracer *Tracer) {
		line, trace := sampledRequest("00")
		tracer.End(line, trace, describe)
		tracer.End(line, nil, describe)
		tracer.End(line, request.NewTrace(http.Header{}, time.Now), describe)
	})
	checktest.Equal(t, len(c.spans), 0, "len(c.spans)")
	var none *Tracer
	none.End(&accesslog.Line{Took: math.MaxInt64}, nil, describe)
}

func TestTracesThatTheCollectorDoesNotTakeAreCounted(t *testing.T) {
	var log strings.Builder
	tracer, _ := export(t, http.StatusServiceUnavailable, &log, func(tracer *Tracer) {
		for range maxWaiting + 5 {
			line, trace := sampledRequest("01")
			tracer.End(line, trace, describe)
		}
		checktest.Equal(t, tracer.Load(), request.Load{Limit: maxWaiting, Now: maxWaiting, Refused: 5}, "tracer.Load() before")
	})
	checktest.Equal(t, tracer.Load(), request.Load{Limit: maxWaiting, Refused: maxWaiting + 5}, "tracer.Load()")
	checktest.Equal(t, strings.Count(log.String(), "the collector answered 503"), 1, "the failure in the log: %s; its count", &log)
}

func TestSilentCollectorIsLeftAfterItsTimeAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		tracer := New("http://collector.invalid", "v1", time.Second, func() {}, slog.New(slog.NewTextHandler(&log, nil)))
		tracer.client.Transport = silent{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- tracer.Run(ctx) }()
		for range 3 {
			line, trace := sampledRequest("01")
			tracer.End(line, trace, describe)
			time.Sleep(sendInterval + sendTimeout)
		}
		cancel()
		checktest.NoError(t, <-done, "Run")
		checktest.Equal(t, tracer.Load().Refused, 3, "tracer.Load().Refused")
		checktest.Equal(t, strings.Count(log.String(), "not exported"), 1, "the failure in the log: %s; its count", &log)
	})
}

// silent never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestSlowRequestsAreListedWithoutValues(t *testing.T) {
	tracer := New("", "v1", time.Second, func() {}, slog.Default())
	for i := range maxSlow + 20 {
		line, trace := sampledRequest("01")
		line.ID, line.Took = fmt.Sprintf("mine-%d", i), time.Duration(i)*time.Second
		trace.End(trace.Begin("flight"), 0)
		tracer.End(line, trace, describe)
	}
	line, _ := sampledRequest("01")
	line.Took, line.ID, line.Trace, line.Method = time.Hour, "4155550100-00", "00000000000000000000004155550100", "M4155550100"
	tracer.End(line, nil, func() Request { return Request{Source: "twilio", CacheStatus: `understudy; detail="Q4155550100"`} })
	tracer.End(line, nil, func() Request { return Request{Streams: true} })
	got := tracer.ListSlow()
	checktest.MustEqual(t, len(got), maxSlow, "len(got)")
	checktest.Equal(t, got[1].ID, fmt.Sprintf("mine-%d", maxSlow+19), "got[1].ID")
	checktest.Equal(t, len(got[1].Stages), 1, "len(got[1].Stages)")
	text, err := json.Marshal(got)
	checktest.NoError(t, err, "json.Marshal")
	checktest.True(t, !strings.Contains(string(text), "4155550100"), "a number is shown: %.300s", text)
	checktest.True(t, strings.Contains(string(text), `"stages":[]`), "a request without stages: %.300s", text)
}
