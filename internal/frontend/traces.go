// This file handles traces: header fields that differ in each request and have no effect on the answer.

package frontend

import (
	"bytes"
	"hash/maphash"
	"maps"
	"net/http"
	"slices"
)

// maxTraces is the maximum number of traces of a request on the express lane.
const maxTraces = 16

// trace is a header field that has another value in each request.
type trace struct{ name, value string }

// find returns the stored request with the given head, or with a head that differs only in its traces. It returns
// nil if no such request is stored. The caller must add the returned traces to the request.
func (x *express) find(head []byte) (s *knownRequest, traces []trace) {
	requests := x.known.Load().requests
	if s, ok := requests.Get(maphash.Bytes(x.seed, head)); ok && s.matchHead(head) {
		return s, nil
	}
	known := x.server.handler.now.Load().known
	if known == nil || len(head) > maxHead {
		return nil, nil
	}
	rest, traces := splitTraces(head, known.CanIgnore)
	if len(traces) == 0 {
		return nil, nil
	}
	s, ok := requests.Get(maphash.Bytes(x.seed, rest))
	if !ok || !s.matchHead(rest) {
		return nil, nil
	}
	if slices.Equal(traces, s.traces) { // a client that repeats its traces is found faster by its complete head
		again := *s
		x.storeRequest(head, withTraces(s.request.Header, traces), &again)
	}
	return s, traces
}

// splitTraces removes the traces from a head. It removes none if there are too many, or if a trace is not written
// plainly, because the remaining bytes must be a head that net/http has read.
func splitTraces(head []byte, isTrace func(name string) bool) (rest []byte, traces []trace) {
	line, fields, _ := bytes.Cut(head, headEnd[:2])
	rest = append(make([]byte, 0, len(head)), head[:len(line)+2]...)
	for len(fields) > 2 {
		var field []byte
		field, fields, _ = bytes.Cut(fields, headEnd[:2])
		before, after, ok := bytes.Cut(field, []byte(":"))
		name := http.CanonicalHeaderKey(string(before))
		if !ok || !isTrace(name) {
			rest = append(append(rest, field...), headEnd[:2]...)
			continue
		}
		odd := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
		folded := fields[0] == ' ' || fields[0] == '\t'
		if len(traces) == maxTraces || folded || bytes.ContainsFunc(after, odd) {
			return head, nil
		}
		traces = append(traces, trace{name, string(bytes.Trim(after, " \t"))})
	}
	return append(rest, fields...), traces
}

// withTraces returns the header with traces added.
func withTraces(h http.Header, traces []trace) http.Header {
	if len(traces) == 0 {
		return h
	}
	whole := make(http.Header, len(h)+len(traces))
	maps.Copy(whole, h)
	for _, t := range traces {
		whole[t.name] = append(whole[t.name], t.value)
	}
	return whole
}
