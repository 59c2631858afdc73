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
type trace struct {
	name, value string
	at          int // where the value begins in the text of the header; only set by splitTraces
}

// finder finds the stored requests of one connection. Only one goroutine at a time uses it.
type finder struct {
	express *express
	layout  layout // of the last head with traces
	traces  []trace
}

// layout is the text of a header in which only the values of traces differ from request to request.
type layout struct {
	parts   []string // the text before the value of each trace, and the text after the last one
	names   []string // of the traces
	fields  *fields  // the header without traces; nil before the first head with traces
	handler int64    // the number of the handler that knows the traces
}

// find returns the stored request with the given head, or with a head that differs only in its traces. It returns
// nil if no such request is stored. The caller must add the returned traces to the request before the next call.
func (f *finder) find(head []byte) (s *knownRequest, traces []trace) {
	requests, seed := f.express.known.Load().requests, f.express.seed
	line, text, _ := bytes.Cut(head, headEnd[:2])
	key := maphash.Bytes(seed, line)
	if l := &f.layout; l.fields != nil && f.readTraces(text) {
		s, ok := requests.Get(key ^ l.fields.hash)
		if ok && s.handler.number == l.handler && s.fields.text == l.fields.text && s.matchLine(line) {
			return s, f.traces
		}
	}
	if s, ok := requests.Get(key ^ maphash.Bytes(seed, text)); ok && string(text) == s.fields.text && s.matchLine(line) {
		return s, nil
	}
	h := f.express.server.handler.now.Load()
	if h.known == nil || len(head) > maxHead {
		return nil, nil
	}
	rest, traces := splitTraces(text, h.known.CanIgnore)
	if len(traces) == 0 {
		return nil, nil
	}
	s, ok := requests.Get(key ^ maphash.Bytes(seed, rest))
	if !ok || string(rest) != s.fields.text || !s.matchLine(line) {
		return nil, nil
	}
	f.layout = newLayout(string(text), traces, s.fields, h.number)
	return s, traces
}

func newLayout(text string, traces []trace, rest *fields, handler int64) layout {
	l, end := layout{fields: rest, handler: handler}, 0
	for _, t := range traces {
		l.parts, l.names = append(l.parts, text[end:t.at]), append(l.names, t.name)
		end = t.at + len(t.value)
	}
	l.parts = append(l.parts, text[end:])
	return l
}

// readTraces reads the traces of a header. It returns false if the header does not have the connection's layout, or if
// the value of a trace is not plain ASCII.
func (f *finder) readTraces(text []byte) bool {
	f.traces = f.traces[:0]
	for i, name := range f.layout.names {
		part := f.layout.parts[i]
		if len(text) < len(part) || string(text[:len(part)]) != part {
			return false
		}
		text = text[len(part):]
		end := bytes.IndexByte(text, '\r')
		if end <= 0 || slices.ContainsFunc(text[:end], func(c byte) bool { return c <= ' ' || c >= 0x7f }) {
			return false
		}
		f.traces = append(f.traces, trace{name: name, value: string(text[:end])})
		text = text[end:]
	}
	return string(text) == f.layout.parts[len(f.layout.names)]
}

// splitTraces removes the traces from the text of a header. It removes none if there are too many, or if a trace is not
// written plainly, because the remaining bytes must be a header that net/http has read.
func splitTraces(text []byte, isTrace func(name string) bool) (rest []byte, traces []trace) {
	fields := text
	rest = make([]byte, 0, len(text))
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
			return text, nil
		}
		value := bytes.TrimLeft(after, " \t")
		at := len(text) - len(fields) - len(headEnd[:2]) - len(value)
		traces = append(traces, trace{name, string(bytes.TrimRight(value, " \t")), at})
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

// tracedHeader is a header to which traces are added for one request after the other.
type tracedHeader struct {
	base   *fields // nil if a trace has several values
	header http.Header
	traces []trace
}

// set returns the header with traces added. The result is valid until the next call.
func (t *tracedHeader) set(base *fields, traces []trace) http.Header {
	hasSameName := func(a, b trace) bool { return a.name == b.name }
	switch {
	case len(traces) == 0:
		return base.header
	case t.base == base && slices.EqualFunc(t.traces, traces, hasSameName):
		for _, one := range traces {
			t.header[one.name][0] = one.value
		}
		return t.header
	}
	*t = tracedHeader{base, withTraces(base.header, traces), slices.Clone(traces)}
	if len(t.header) < len(base.header)+len(traces) {
		t.base = nil
	}
	return t.header
}
