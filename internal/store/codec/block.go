// Package codec encodes what the store keeps as bytes: blocks of bodies, patches between versions, and the
// skeletons of pages.
//
// A block is up to 64 bodies of one shape, arranged so that they compress well together.
package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// PerBlock is the maximum number of bodies in a block. A version's number is its block's number times PerBlock
// plus its position, so PerBlock is part of the format.
const PerBlock = 64

// Entry is one version in a block.
type Entry struct {
	Record int64
	ID     string
	Clock  int64
	Final  bool
	Parent string
	Body   []byte
	Delta  *Delta // how to build the body from another version's body, or nil if Body is stored
	Depth  int    // the length of the chain of older versions whose deltas end at this version
}

// Delta says how to build a version from a later one of the same record and shape. Both have the same id and
// most of the body.
type Delta struct {
	Base      int64  // the number of the later version from which this version is built
	Patch     []byte // the differences from the later version, in the format of patch.go
	Clock     int64  // the clock of this version minus that of the later one
	Parent    *string
	Completed bool // the body was already built from the later version
}

// IsPruned reports whether the body was deleted. A stored body is never empty.
func (e *Entry) IsPruned() bool { return len(e.Body) == 0 && e.Delta == nil }

// storedBytes returns what the block stores of the body: the patch or the body itself.
func (e *Entry) storedBytes() []byte {
	if e.Delta != nil {
		return e.Delta.Patch
	}
	return e.Body
}

// Bits that say which parts of an entry a block stores.
const (
	flagFinal = 1 << iota
	flagDelta
	flagDepth
	flagParent // the entry has a parent or, if it is a delta, another parent than its later version
)

// newForm is added to the count at the start of a block that uses the newer format, which can store parents and deltas.
const newForm = 128

// flags returns the flags of e.
func (e *Entry) flags() (f byte) {
	if e.Final {
		f |= flagFinal
	}
	if e.Depth > 0 {
		f |= flagDepth
	}
	switch {
	case e.Delta != nil:
		f |= flagDelta
		if e.Delta.Parent != nil {
			f |= flagParent
		}
	case e.Parent != "":
		f |= flagParent
	}
	return f
}

// AppendBlock appends the unpacked form of a block: a count, then column by column the record numbers and
// clocks (as differences), the flags, the lengths of the bodies and the positions of the ids in them, then the
// bodies. Columns of similar numbers compress better than rows. A block with parents or deltas has the newer
// form, which adds columns for them.
func AppendBlock(dst []byte, entries []Entry) []byte {
	form := uint64(0)
	for i := range entries {
		if entries[i].flags()&^flagFinal != 0 {
			form = newForm
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(entries))+form)
	var record, clock int64
	for i := range entries {
		dst = binary.AppendVarint(dst, entries[i].Record-record)
		record = entries[i].Record
	}
	for i := range entries {
		if r := entries[i].Delta; r != nil {
			dst = binary.AppendVarint(dst, r.Clock)
			continue
		}
		dst = binary.AppendVarint(dst, entries[i].Clock-clock)
		clock = entries[i].Clock
	}
	for i := range entries {
		dst = append(dst, entries[i].flags())
	}
	for i := range entries {
		dst = binary.AppendUvarint(dst, uint64(len(entries[i].storedBytes())))
	}
	for i := range entries {
		if entries[i].Delta == nil {
			dst = appendPlace(dst, entries[i].Body, entries[i].ID)
		}
	}
	if form == newForm {
		dst = appendDeltas(dst, entries)
	}
	for i := range entries {
		dst = append(dst, entries[i].storedBytes()...)
	}
	return dst
}

// appendDeltas appends the columns of the newer form: the base versions as differences, the lengths of chains,
// and the parents.
func appendDeltas(dst []byte, entries []Entry) []byte {
	next := int64(0)
	for i := range entries {
		if r := entries[i].Delta; r != nil {
			dst = binary.AppendVarint(dst, r.Base-next)
			next = r.Base + 1
		}
	}
	for i := range entries {
		if entries[i].Depth > 0 {
			dst = binary.AppendUvarint(dst, uint64(entries[i].Depth))
		}
	}
	for i := range entries {
		switch e := &entries[i]; {
		case e.Delta != nil && e.Delta.Parent != nil:
			dst = appendText(dst, *e.Delta.Parent)
		case e.Delta == nil && e.Parent != "":
			dst = appendPlace(dst, e.Body, e.Parent)
		}
	}
	return dst
}

// appendPlace appends where body contains text: the position, counted from 1, and the length. If body does not
// contain text, it appends 0, the length and the text itself.
func appendPlace(dst, body []byte, text string) []byte {
	at := bytes.Index(body, []byte(text))
	dst = binary.AppendUvarint(dst, uint64(at+1))
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	if at < 0 {
		dst = append(dst, text...)
	}
	return dst
}

// ParseBlock reads the unpacked form of a block. The bodies are parts of data. Entries with a delta are
// incomplete until Complete is called.
func ParseBlock(data []byte) ([]Entry, error) {
	r := NewReader(data)
	n, form := r.Count(PerBlock+newForm), 0
	if n >= newForm {
		n, form = n-newForm, newForm
	}
	if n > PerBlock {
		r.fail("number too large")
		n = 0
	}
	entries := make([]Entry, n)
	var record int64
	for i := range entries {
		record += r.Varint()
		entries[i].Record = record
	}
	for i := range entries {
		entries[i].Clock = r.Varint()
	}
	flags := make([]byte, n)
	for i := range flags {
		flags[i] = r.Byte()
		if form == 0 && flags[i] > flagFinal || flags[i] >= flagParent<<1 {
			r.fail("unknown flags")
		}
	}
	lengths := make([]int, n)
	for i := range lengths {
		lengths[i] = r.Count(len(data))
	}
	ids, parents := make([]textPlace, n), make([]textPlace, n)
	for i := range ids {
		if flags[i]&flagDelta == 0 {
			ids[i] = r.place(len(data))
		}
	}
	r.readDeltas(entries, flags, parents)
	clock := int64(0)
	for i := range entries {
		e, body := &entries[i], r.Take(lengths[i])
		e.Final = flags[i]&flagFinal != 0
		if e.Delta != nil {
			e.Delta.Patch, e.Delta.Clock, e.Clock = body, e.Clock, 0
			continue
		}
		clock += e.Clock
		e.Clock, e.Body = clock, body
		e.ID = r.text(ids[i], body)
		if flags[i]&flagParent != 0 {
			e.Parent = r.text(parents[i], body)
		}
	}
	return entries, r.End()
}

// readDeltas reads the columns of the newer form.
func (r *Reader) readDeltas(entries []Entry, flags []byte, parents []textPlace) {
	next := int64(0)
	for i := range entries {
		if flags[i]&flagDelta != 0 {
			entries[i].Delta = &Delta{Base: next + r.Varint()}
			next = entries[i].Delta.Base + 1
		}
	}
	for i := range entries {
		if flags[i]&flagDepth != 0 {
			entries[i].Depth = r.Count(MaxDepth)
		}
	}
	for i := range entries {
		switch delta := entries[i].Delta; {
		case flags[i]&flagParent == 0:
		case delta == nil:
			parents[i] = r.place(math.MaxInt32 - 1)
		default:
			text := string(r.Take(r.Count(math.MaxInt32)))
			delta.Parent = &text
		}
	}
}

// Complete fills e from its base version: the body, the id, the clock and the parent.
func (e *Entry) Complete(base *Entry) error {
	if base.Record != e.Record {
		return fmt.Errorf("it is of record %d, not of %d", base.Record, e.Record)
	}
	body, err := applyPatch(base.Body, e.Delta.Patch)
	if err != nil {
		return err
	}
	e.Body, e.ID, e.Clock, e.Parent, e.Delta.Completed = body, base.ID, base.Clock+e.Delta.Clock, base.Parent, true
	if e.Delta.Parent != nil {
		e.Parent = *e.Delta.Parent
	}
	return nil
}
