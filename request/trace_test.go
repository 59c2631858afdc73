package request

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/kit/header"
)

const traceID = "0af7651916cd43dd8448eb211c80319c"

func TestUpstreamRequestsCarryTheIDsOfTheirCause(t *testing.T) {
	in := http.Header{"Traceparent": {"00-" + traceID + "-b7ad6b7169203331-01"}, "Tracestate": {"a=1", "b=2"}}
	trace := NewTrace(in, time.Now)
	trace.ID = "mine-1"
	one, two := http.Header{"Tracestate": {"stale=1"}}, http.Header{"X-Request-Id": {"the spec's"}}
	stages := []Stage{trace.BeginUpstream(one), trace.BeginUpstream(two)}
	first, ok := header.ParseTraceparent(one.Get("Traceparent"))
	checktest.MustTrue(t, ok, "Traceparent %q", one.Get("Traceparent"))
	checktest.Equal(t, first, header.Traceparent{Trace: traceID, Span: stages[0].Span, Flags: 1}, "first")
	checktest.Equal(t, one.Get("Tracestate"), "a=1,b=2", `one.Get("Tracestate")`)
	checktest.Equal(t, one.Get("X-Request-Id"), "mine-1", `one.Get("X-Request-Id")`)
	checktest.Equal(t, two.Get("X-Request-Id"), "the spec's", `two.Get("X-Request-Id")`)
	checktest.True(t, stages[0].Span != stages[1].Span, "two requests have the span %s", stages[0].Span)
	checktest.True(t, stages[0].Span != "b7ad6b7169203331", "the span is the client's")

	trace.End(stages[1], 503)
	got := TraceOf(context.WithoutCancel(WithTrace(t.Context(), trace))).Stages()
	checktest.MustEqual(t, len(got), 1, "len(got)")
	checktest.Equal(t, got[0].Status, 503, "got[0].Status")
}

func TestRequestWithoutTraceSendsOnlyItsID(t *testing.T) {
	for name, given := range map[string]http.Header{
		"none": {}, "invalid": {"Traceparent": {"00-1"}, "Tracestate": {"a=1"}},
		"two": {"Traceparent": {"00-" + traceID + "-b7ad6b7169203331-01", "00-" + traceID + "-b7ad6b7169203332-01"}},
	} {
		trace, out := NewTrace(given, time.Now), http.Header{}
		trace.ID = "mine-1"
		trace.End(trace.BeginUpstream(out), 200)
		checktest.Equal(t, len(out), 1, "%s: %v; its length", name, out)
		checktest.Equal(t, out.Get("X-Request-Id"), "mine-1", `%s: out.Get("X-Request-Id")`, name)
	}
	var none *Trace
	out := http.Header{}
	none.End(none.BeginUpstream(out), 200)
	checktest.Equal(t, len(out)+len(none.Stages()), 0, "what a nil trace does")
	checktest.True(t, TraceOf(context.Background()) == nil, "a context without a trace has one")
	checktest.Equal(t, len(strings.Trim(NewSpanID(), "0123456789abcdef")), 0, "what is not hexadecimal in a span's id")
}
