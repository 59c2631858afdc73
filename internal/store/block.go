// A block: up to 64 bodies of one shape laid out to be packed together.

package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// entry is one version in a block.
type entry struct {
	record int64
	id     string
	clock  int64
	final  bool
	body   []byte
}

// hollow reports that the body was taken out: a record's body is never empty.
func (e *entry) hollow() bool { return len(e.body) == 0 }

// appendBlock appends the unpacked form: a count, then column by column the
// record numbers and clocks (as differences), the final marks, the lengths of
// the bodies and the places of the ids in them, then the bodies. Columns of
// like numbers pack better than records would.
func appendBlock(dst []byte, entries []entry) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	var record, clock int64
	for i := range entries {
		dst = binary.AppendVarint(dst, entries[i].record-record)
		record = entries[i].record
	}
	for i := range entries {
		dst = binary.AppendVarint(dst, entries[i].clock-clock)
		clock = entries[i].clock
	}
	for i := range entries {
		final := byte(0)
		if entries[i].final {
			final = 1
		}
		dst = append(dst, final)
	}
	for i := range entries {
		dst = binary.AppendUvarint(dst, uint64(len(entries[i].body)))
	}
	for i := range entries {
		dst = appendPlace(dst, entries[i].body, entries[i].id)
	}
	for i := range entries {
		dst = append(dst, entries[i].body...)
	}
	return dst
}

// appendPlace says where text lies in body, counted from 1; 0 is followed by
// the text itself.
func appendPlace(dst, body []byte, text string) []byte {
	at := bytes.Index(body, []byte(text))
	dst = binary.AppendUvarint(dst, uint64(at+1))
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	if at < 0 {
		dst = append(dst, text...)
	}
	return dst
}

// parseBlock reads the unpacked form. The bodies are parts of data.
func parseBlock(data []byte) ([]entry, error) {
	r := reader{data: data}
	n := r.count(perBlock)
	entries := make([]entry, n)
	var record, clock int64
	for i := range entries {
		record += r.varint()
		entries[i].record = record
	}
	for i := range entries {
		clock += r.varint()
		entries[i].clock = clock
	}
	for i := range entries {
		entries[i].final = r.byte() == 1
	}
	lengths := make([]int, n)
	for i := range lengths {
		lengths[i] = r.count(len(data))
	}
	places := make([]place, n)
	for i := range places {
		places[i] = r.place(len(data))
	}
	for i := range entries {
		body := r.take(lengths[i])
		entries[i].body = body
		entries[i].id = r.text(places[i], body)
	}
	return entries, r.end()
}

// reader reads numbers and bytes; after the first fault it returns zeros.
type reader struct {
	data []byte
	err  error
}

// place is where a text lies: at at in a body (from 1), or here.
type place struct {
	at, length int
	here       []byte
}

func (r *reader) fault(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s, %d bytes before the end", what, len(r.data))
	}
	r.data = nil
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.fault("broken number")
		return 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.fault("broken number")
		return 0
	}
	r.data = r.data[n:]
	return v
}

// count reads a number that may be at most limit.
func (r *reader) count(limit int) int {
	v := r.uvarint()
	if v > uint64(limit) || v > math.MaxInt32 {
		r.fault("number too large")
		return 0
	}
	return int(v)
}

func (r *reader) byte() byte {
	if len(r.data) == 0 {
		r.fault("too short")
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

func (r *reader) take(n int) []byte {
	if n > len(r.data) {
		r.fault("too short")
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) place(limit int) place {
	p := place{at: r.count(limit + 1)}
	p.length = r.count(limit)
	if p.at == 0 {
		p.here = r.take(p.length)
	}
	return p
}

func (r *reader) text(p place, body []byte) string {
	if p.at == 0 {
		return string(p.here)
	}
	if p.at-1+p.length > len(body) {
		r.fault("text outside its body")
		return ""
	}
	return string(body[p.at-1 : p.at-1+p.length])
}

func (r *reader) end() error {
	if r.err == nil && len(r.data) > 0 {
		return fmt.Errorf("%d bytes too many", len(r.data))
	}
	return r.err
}
