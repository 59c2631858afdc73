// Traces: fields of a request that differ each time and change no answer.

package frontend

import (
	"bytes"
	"hash/maphash"
	"maps"
	"net/http"
	"slices"
)

// mostTraces is how many such fields a request on the lane has at most.
const mostTraces = 16

// trace is a field that another request of the same client has with another value.
type trace struct{ name, value string }

// find returns the request that net/http has read with this head, or with one that differs in its traces
// alone; nil: none is known. With traces the request is to be completed by them.
func (x *express) find(head []byte) (s *seen, traces []trace) {
	requests := x.kept.Load().requests
	if s, ok := requests.Get(maphash.Bytes(x.seed, head)); ok && s.is(head) {
		return s, nil
	}
	known := x.server.handler.now.Load().known
	if known == nil || len(head) > maxHead {
		return nil, nil
	}
	rest, traces := split(head, known.Traces)
	if len(traces) == 0 {
		return nil, nil
	}
	s, ok := requests.Get(maphash.Bytes(x.seed, rest))
	if !ok || !s.is(rest) {
		return nil, nil
	}
	if slices.Equal(traces, s.traces) { // they came again: the whole head is found sooner
		again := *s
		x.keep(head, with(s.request.Header, traces), &again)
	}
	return s, traces
}

// split takes the traces out of a head. It takes none out of a head that has too many, or
// whose traces are not written plainly: what is left is known only if net/http has read it.
func split(head []byte, isTrace func(name string) bool) (rest []byte, traces []trace) {
	line, fields, _ := bytes.Cut(head, crlf2[:2])
	rest = append(make([]byte, 0, len(head)), head[:len(line)+2]...)
	for len(fields) > 2 {
		var field []byte
		field, fields, _ = bytes.Cut(fields, crlf2[:2])
		before, after, ok := bytes.Cut(field, []byte(":"))
		name := http.CanonicalHeaderKey(string(before))
		if !ok || !isTrace(name) {
			rest = append(append(rest, field...), crlf2[:2]...)
			continue
		}
		odd := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
		folded := fields[0] == ' ' || fields[0] == '\t'
		if len(traces) == mostTraces || folded || bytes.ContainsFunc(after, odd) {
			return head, nil
		}
		traces = append(traces, trace{name, string(bytes.Trim(after, " \t"))})
	}
	return append(rest, fields...), traces
}

// with returns the header with traces added.
func with(h http.Header, traces []trace) http.Header {
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
