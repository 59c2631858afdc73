// This file handles traces: header fields that differ in each request and have no effect on the answer.

package frontend

import (
	"bytes"
	"hash/maphash"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

const (
	maxTraces = 16  // the maximum number of traces of a request on the express lane
	maxValues = 512 // the number of bytes that are allocated at once for the values of traces
)

// trace is a header field that has another value in each request.
type trace struct {
	name, value string
	at          int // where the value begins in the text of the header from which splitTraces has removed it
}

// finder finds the stored requests of one connection. It knows the last header with traces, because the next one usually differs only in
// their values. Only one goroutine at a time uses it.
type finder struct {
	express *express
	fields  *fields         // the last header with traces, without them; nil before the first one
	handler int64           // the number of the handler that knows the traces
	parts   []string        // the text before the value of each trace, and the text after the last one
	traces  []trace         // those that were read last
	values  strings.Builder // their values, so that not each of them is allocated
}

// find returns the stored request with the given head, or with a head that differs only in its traces. It returns
// nil if no such request is stored. The caller must add the returned traces to the request before the next call.
func (f *finder) find(head []byte) (s *knownRequest, traces []trace) {
	requests, seed := f.express.known.Load().requests, f.express.seed
	line, text, _ := bytes.Cut(head, headEnd[:2])
	key := maphash.Bytes(seed, line)
	if f.fields != nil && f.readTraces(text) {
		s, ok := requests.Get(key ^ f.fields.hash)
		if ok && s.handler.number == f.handler && s.fields.text == f.fields.text && s.matchLine(line) {
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
	f.fields, f.handler = s.fields, h.number
	f.setTraces(string(text), traces)
	return s, traces
}

// setTraces sets the text of the last header and its traces, in their order.
func (f *finder) setTraces(text string, traces []trace) {
	end := 0
	f.parts, f.traces = nil, traces
	for _, t := range traces {
		f.parts = append(f.parts, text[end:t.at])
		end = t.at + len(t.value)
	}
	f.parts = append(f.parts, text[end:])
}

// readTraces reads the traces of a header. It returns false if the header differs from the last one in more than them, or if a value
// is not plain ASCII.
func (f *finder) readTraces(text []byte) bool {
	for i := range f.traces {
		after, ok := bytes.CutPrefix(text, []byte(f.parts[i]))
		end := bytes.IndexByte(after, '\r')
		if !ok || end <= 0 || slices.ContainsFunc(after[:end], func(c byte) bool { return c <= ' ' || c > '~' }) {
			return false
		}
		if f.values.Cap()-f.values.Len() < end {
			f.values = strings.Builder{}
			f.values.Grow(max(end, maxValues))
		}
		from := f.values.Len()
		f.values.Write(after[:end])
		f.traces[i].value, text = f.values.String()[from:], after[end:]
	}
	return string(text) == f.parts[len(f.traces)]
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
		folded := fields[0] == ' ' || fields[0] == '\t'
		if len(traces) == maxTraces || folded || !httpguts.ValidHeaderFieldValue(string(after)) {
			return text, nil
		}
		value := bytes.TrimLeft(after, " \t")
		at := len(text) - len(fields) - len(headEnd[:2]) - len(value)
		traces = append(traces, trace{name, string(bytes.TrimRight(value, " \t")), at})
	}
	return append(rest, fields...), traces
}

// tracedHeader is a header to which traces are added for one request after the other.
type tracedHeader struct {
	base   *fields // nil if a trace has several values
	header http.Header
	names  []string
	values [][]string // those in header of the names
}

// set returns the header with traces added. The result is valid until the next call.
func (t *tracedHeader) set(base *fields, traces []trace) http.Header {
	switch {
	case len(traces) == 0:
		return base.header
	case t.base == base && slices.EqualFunc(t.names, traces, func(name string, one trace) bool { return name == one.name }):
		for i := range traces {
			t.values[i][0] = traces[i].value
		}
		return t.header
	}
	*t = tracedHeader{base: base, header: maps.Clone(base.header)}
	for _, one := range traces {
		t.header[one.name] = append(t.header[one.name], one.value)
		t.names, t.values = append(t.names, one.name), append(t.values, t.header[one.name])
	}
	if len(t.header) < len(base.header)+len(traces) {
		t.base = nil
	}
	return t.header
}
