// Traces: the ids of a program's request at the API, in the access log, at a collector and in the list of slow requests.

package answers

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// collector decodes what it gets with the published messages of OTLP, and keeps the spans.
type collector struct {
	mu    sync.Mutex
	spans []*tracepb.Span
	bad   []string
}

// idField matches the ids in OTLP's JSON, which are in hexadecimal and not in Base64 as in other JSON of Protocol Buffers.
var idField = regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"([0-9a-f]*)"`)

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, err := io.ReadAll(r.Body)
	data = idField.ReplaceAllFunc(data, func(field []byte) []byte {
		parts := idField.FindSubmatch(field)
		id, _ := hex.DecodeString(string(parts[2])) // the expression permits only pairs of digits in ids of the right length, which are compared below
		return fmt.Appendf(nil, `"%s":"%s"`, parts[1], base64.StdEncoding.EncodeToString(id))
	})
	var got tracepb.TracesData
	if err == nil {
		err = protojson.Unmarshal(data, &got)
	}
	if err != nil {
		c.bad = append(c.bad, err.Error())
	}
	for _, resource := range got.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// named returns the spans of a trace that have a kind.
func (c *collector) named(trace string, kind tracepb.Span_SpanKind) (all []*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == trace && s.Kind == kind {
			all = append(all, s)
		}
	}
	return all
}

// TestTraceIsFollowedToTheAPIAndOnTheExpressLane sends a cold request and warm requests of clients with traces. The last are answered
// by the express lane.
func TestTraceIsFollowedToTheAPIAndOnTheExpressLane(t *testing.T) {
	t.Parallel()
	c := &collector{}
	s := httptest.NewServer(c)
	defer s.Close()
	var mu sync.Mutex
	sent := map[string]http.Header{} // the headers of the requests to the API, by request id
	up := rig.Between(t, rig.StartAPI(t).URL("slowapi"), func(r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		sent[r.Header.Get("X-Request-Id")] = r.Header.Clone()
		return true
	})
	house, dir := rig.StartServer(t, rig.Settings{Upstream: up, Mirror: fmt.Sprintf("{}\ntracing: {endpoint: %q, slow: 1us, record: true}", s.URL)})
	user := rig.Account + ":" + rig.DemoToken
	ask := func(id, flags string) (trace, span string) {
		t.Helper()
		trace, span = fmt.Sprintf("abcd%028x", len(id)*1000+len(flags)), "00000000000000ef"
		trace = trace[:32-len(id)*2] + hex.EncodeToString([]byte(id))
		r := rig.Get(t, user, house.URL("twilio")+rig.Base+"/Calls.json?PageSize=20", "Traceparent", "00-"+trace+"-"+span+"-"+flags,
			"Tracestate", "vendor="+id, "X-Request-Id", id)
		checktest.MustEqual(t, r.Status, http.StatusOK, "%s: %.300s; its status", id, r.Body)
		return trace, span
	}
	cold, client := ask("cold", "01")
	mu.Lock()
	out := sent["cold"]
	mu.Unlock()
	checktest.MustTrue(t, out != nil, "no request to the API has the id of the request that caused it: %v", sent)
	checktest.Equal(t, out.Get("Tracestate"), "vendor=cold", `out.Get("Tracestate")`)
	parts := strings.Split(out.Get("Traceparent"), "-")
	checktest.MustEqual(t, len(parts), 4, "the parts of %q", out.Get("Traceparent"))
	checktest.Equal(t, parts[1], cold, "the trace at the API")
	checktest.True(t, parts[2] != client, "the API gets the client's span")
	checktest.Equal(t, parts[3], "01", "the flags at the API")

	express, lane := "", rig.ExpressAnswers(t, house.URL("viewer"))
	for n := 0; express == "" && n < 10; n++ { // the lane learns the request
		trace, _ := ask(fmt.Sprintf("warm%d", n), "01")
		if rig.ExpressAnswers(t, house.URL("viewer")) > lane {
			express = trace
		}
	}
	checktest.MustTrue(t, express != "", "no request with a trace is answered by the express lane")
	unsampled, _ := ask("quiet", "00")
	for name, trace := range map[string]string{"a cold request": cold, "a request on the express lane": express} {
		rig.Await(t, func() string {
			if n := len(c.named(trace, tracepb.Span_SPAN_KIND_SERVER)); n != 1 {
				return fmt.Sprintf("the collector has %d spans of %s; %v", n, name, c.bad)
			}
			return ""
		})
	}
	own, upstream := c.named(cold, tracepb.Span_SPAN_KIND_SERVER)[0], c.named(cold, tracepb.Span_SPAN_KIND_CLIENT)
	checktest.Equal(t, hex.EncodeToString(own.ParentSpanId), client, "the parent of the request's span")
	checktest.Equal(t, own.Name, "GET /2010-04-01/Accounts/{AccountSid}/Calls.json", "own.Name")
	checktest.MustEqual(t, len(upstream), 1, "the spans of requests to the API")
	checktest.Equal(t, hex.EncodeToString(upstream[0].SpanId), parts[2], "the span of the request to the API")
	checktest.Equal(t, string(upstream[0].ParentSpanId), string(own.SpanId), "its parent")
	checktest.Equal(t, len(c.named(unsampled, tracepb.Span_SPAN_KIND_SERVER)), 0, "the exported spans of a trace that is not sampled")
	checktest.Equal(t, strings.Join(c.bad, "\n"), "", "what the collector cannot decode")

	type request struct {
		ID, Trace, How, Source, Route string
		Stages                        []struct{ Name string }
	}
	var slow struct{ Requests []request }
	page := rig.Get(t, user, house.URL("viewer")+"/twilio/messages", "X-Request-Id", "page", "Accept", "text/html")
	checktest.MustEqual(t, page.Status, http.StatusOK, "status of the page")
	at := -1
	rig.Await(t, func() string {
		body := rig.Get(t, user, house.URL("viewer")+"/-/slow?format=json").Body
		checktest.MustNoError(t, json.Unmarshal(body, &slow), "/-/slow")
		if at = slices.IndexFunc(slow.Requests, func(r request) bool { return r.ID == "page" }); at < 0 {
			return "the page is not among the slow requests: " + string(body)
		}
		return ""
	})
	shown := slow.Requests[at]
	checktest.Equal(t, shown.Source+" "+shown.Route, "viewer /{source}/{kind}", "source and route of the page")
	checktest.True(t, strings.Contains(fmt.Sprint(shown.Stages), "upstream"), "the page's stages are %v", shown.Stages)
	first := slow.Requests[len(slow.Requests)-1]
	checktest.Equal(t, first.ID+" "+first.Trace+" "+first.How, "cold "+cold+" cold", "the first slow request")
	var stages []string
	for _, s := range first.Stages {
		stages = append(stages, s.Name)
	}
	slices.Sort(stages)
	checktest.Equal(t, strings.Join(stages, " "), "budget find flight place save upstream write", "its stages")
	recording := ""
	rig.Await(t, func() string {
		var profiles struct{ Kept []struct{ ID, Kind string } }
		body := rig.Get(t, user, house.URL("viewer")+"/-/profile?format=json").Body
		if err := json.Unmarshal(body, &profiles); err != nil || len(profiles.Kept) == 0 || profiles.Kept[0].Kind != "trace" {
			return fmt.Sprintf("no recording of a slow request is kept: %.300s (%v)", body, err)
		}
		recording = string(rig.Get(t, user, house.URL("viewer")+"/-/profile/kept/"+profiles.Kept[0].ID).Body)
		return ""
	})
	checktest.True(t, strings.HasPrefix(recording, "go 1."), "the recording begins with %.20q", recording)
	house.Stop()
	log, err := os.ReadFile(filepath.Join(dir, rig.AccessLog))
	checktest.MustNoError(t, err, "the access log")
	for _, trace := range []string{cold, express, unsampled} {
		checktest.Equal(t, strings.Count(string(log), " trace="+trace+" "), 1, "the lines of trace %s", trace)
	}
}
