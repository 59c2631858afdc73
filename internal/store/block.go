// A block: up to 64 bodies of one shape laid out to be packed together.

package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// perBlock is how many bodies share a block; a version's number is its
// block's number times perBlock plus its place, so it is part of the format.
const perBlock = 64

// entry is one version in a block.
type entry struct {
	record int64
	id     string
	clock  int64
	final  bool
	parent string
	body   []byte
	delta  *delta // its body is made of another version's; nil: it is here
	depth  int    // how many older versions rest on this one, each on the next
}

// delta is how a version is made of a later one of the same record and shape:
// the id is the same, and most of the body.
type delta struct {
	base      int64  // the other version's number
	patch     []byte // patch.go
	clock     int64  // how much more the clock is
	parent    *string
	completed bool // the entry has been completed
}

// hollow reports that the body was taken out: a record's body is never empty.
func (e *entry) pruned() bool { return len(e.body) == 0 && e.delta == nil }

// text is what the block holds of the body.
func (e *entry) text() []byte {
	if e.delta != nil {
		return e.delta.patch
	}
	return e.body
}

// The flags of an entry in the newer form of a block.
const (
	flagFinal = 1 << iota
	flagDelta
	flagDepth
	flagParent // it has one; or, when it rests on another, another one than that
)

// newer is added to the count of a block in the newer form.
const newer = 128

// flags are the flags of e.
func (e *entry) flags() (f byte) {
	if e.final {
		f |= flagFinal
	}
	if e.depth > 0 {
		f |= flagDepth
	}
	switch {
	case e.delta != nil:
		f |= flagDelta
		if e.delta.parent != nil {
			f |= flagParent
		}
	case e.parent != "":
		f |= flagParent
	}
	return f
}

// appendBlock appends the unpacked form: a count, then column by column the
// record numbers and clocks (as differences), the final marks, the lengths of
// the bodies and the places of the ids in them, then the bodies. Columns of
// like numbers pack better than records would. A block whose entries have
// parents or rest on others has the newer form, with columns for those.
func appendBlock(dst []byte, entries []entry) []byte {
	form := uint64(0)
	for i := range entries {
		if entries[i].flags()&^flagFinal != 0 {
			form = newer
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(entries))+form)
	var record, clock int64
	for i := range entries {
		dst = binary.AppendVarint(dst, entries[i].record-record)
		record = entries[i].record
	}
	for i := range entries {
		if r := entries[i].delta; r != nil {
			dst = binary.AppendVarint(dst, r.clock)
			continue
		}
		dst = binary.AppendVarint(dst, entries[i].clock-clock)
		clock = entries[i].clock
	}
	for i := range entries {
		dst = append(dst, entries[i].flags())
	}
	for i := range entries {
		dst = binary.AppendUvarint(dst, uint64(len(entries[i].text())))
	}
	for i := range entries {
		if entries[i].delta == nil {
			dst = appendPlace(dst, entries[i].body, entries[i].id)
		}
	}
	if form == newer {
		dst = appendDeltas(dst, entries)
	}
	for i := range entries {
		dst = append(dst, entries[i].text()...)
	}
	return dst
}

// appendDeltas appends the columns of the newer form: what versions rest on,
// as differences to the one after the last, how many rest on them, parents.
func appendDeltas(dst []byte, entries []entry) []byte {
	next := int64(0)
	for i := range entries {
		if r := entries[i].delta; r != nil {
			dst = binary.AppendVarint(dst, r.base-next)
			next = r.base + 1
		}
	}
	for i := range entries {
		if entries[i].depth > 0 {
			dst = binary.AppendUvarint(dst, uint64(entries[i].depth))
		}
	}
	for i := range entries {
		switch e := &entries[i]; {
		case e.delta != nil && e.delta.parent != nil:
			dst = appendText(dst, *e.delta.parent)
		case e.delta == nil && e.parent != "":
			dst = appendPlace(dst, e.body, e.parent)
		}
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

// parseBlock reads the unpacked form. The bodies are parts of data. Entries
// that rest on other versions lack what they share with them.
func parseBlock(data []byte) ([]entry, error) {
	r := reader{data: data}
	n, form := r.count(perBlock+newer), 0
	if n >= newer {
		n, form = n-newer, newer
	}
	if n > perBlock {
		r.fault("number too large")
		n = 0
	}
	entries := make([]entry, n)
	var record int64
	for i := range entries {
		record += r.varint()
		entries[i].record = record
	}
	for i := range entries {
		entries[i].clock = r.varint()
	}
	flags := make([]byte, n)
	for i := range flags {
		flags[i] = r.byte()
		if form == 0 && flags[i] > flagFinal || flags[i] >= flagParent<<1 {
			r.fault("unknown flags")
		}
	}
	lengths := make([]int, n)
	for i := range lengths {
		lengths[i] = r.count(len(data))
	}
	ids, parents := make([]place, n), make([]place, n)
	for i := range ids {
		if flags[i]&flagDelta == 0 {
			ids[i] = r.place(len(data))
		}
	}
	r.deltas(entries, flags, parents)
	clock := int64(0)
	for i := range entries {
		e, body := &entries[i], r.take(lengths[i])
		e.final = flags[i]&flagFinal != 0
		if e.delta != nil {
			e.delta.patch, e.delta.clock, e.clock = body, e.clock, 0
			continue
		}
		clock += e.clock
		e.clock, e.body = clock, body
		e.id = r.text(ids[i], body)
		if flags[i]&flagParent != 0 {
			e.parent = r.text(parents[i], body)
		}
	}
	return entries, r.end()
}

// rests reads the columns of the newer form.
func (r *reader) deltas(entries []entry, flags []byte, parents []place) {
	next := int64(0)
	for i := range entries {
		if flags[i]&flagDelta != 0 {
			entries[i].delta = &delta{base: next + r.varint()}
			next = entries[i].delta.base + 1
		}
	}
	for i := range entries {
		if flags[i]&flagDepth != 0 {
			entries[i].depth = r.count(maxDepth)
		}
	}
	for i := range entries {
		switch rest := entries[i].delta; {
		case flags[i]&flagParent == 0:
		case rest == nil:
			parents[i] = r.place(math.MaxInt32 - 1)
		default:
			text := string(r.take(r.count(math.MaxInt32)))
			rest.parent = &text
		}
	}
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

// complete makes what e shares with the version it rests on.
func (e *entry) complete(base *entry) error {
	if base.record != e.record {
		return fmt.Errorf("it is of record %d, not of %d", base.record, e.record)
	}
	body, err := applyPatch(base.body, e.delta.patch)
	if err != nil {
		return err
	}
	e.body, e.id, e.clock, e.parent, e.delta.completed = body, base.id, base.clock+e.delta.clock, base.parent, true
	if e.delta.parent != nil {
		e.parent = *e.delta.parent
	}
	return nil
}
