// Package codec lays out what the store keeps as bytes: blocks of bodies, patches
// between versions, and the skeletons of pages; bytes in, bytes out.
//
// A block is up to 64 bodies of one shape laid out to be packed together.
package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// perBlock is how many bodies share a block; a version's number is its
// block's number times perBlock plus its place, so it is part of the format.
const PerBlock = 64

// entry is one version in a block.
type Entry struct {
	Record int64
	ID     string
	Clock  int64
	Final  bool
	Parent string
	Body   []byte
	Delta  *Delta // its body is made of another version's; nil: it is here
	Depth  int    // how many older versions rest on this one, each on the next
}

// delta is how a version is made of a later one of the same record and shape:
// the id is the same, and most of the body.
type Delta struct {
	Base      int64  // the other version's number
	Patch     []byte // patch.go
	Clock     int64  // how much more the clock is
	Parent    *string
	Completed bool // the entry has been completed
}

// Pruned reports that the body was taken out: a record's body is never empty.
func (e *Entry) Pruned() bool { return len(e.Body) == 0 && e.Delta == nil }

// text is what the block holds of the body.
func (e *Entry) text() []byte {
	if e.Delta != nil {
		return e.Delta.Patch
	}
	return e.Body
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

// appendBlock appends the unpacked form: a count, then column by column the
// record numbers and clocks (as differences), the final marks, the lengths of
// the bodies and the places of the ids in them, then the bodies. Columns of
// like numbers pack better than records would. A block whose entries have
// parents or rest on others has the newer form, with columns for those.
func AppendBlock(dst []byte, entries []Entry) []byte {
	form := uint64(0)
	for i := range entries {
		if entries[i].flags()&^flagFinal != 0 {
			form = newer
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
		dst = binary.AppendUvarint(dst, uint64(len(entries[i].text())))
	}
	for i := range entries {
		if entries[i].Delta == nil {
			dst = appendPlace(dst, entries[i].Body, entries[i].ID)
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
func ParseBlock(data []byte) ([]Entry, error) {
	r := NewReader(data)
	n, form := r.Count(PerBlock+newer), 0
	if n >= newer {
		n, form = n-newer, newer
	}
	if n > PerBlock {
		r.fault("number too large")
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
			r.fault("unknown flags")
		}
	}
	lengths := make([]int, n)
	for i := range lengths {
		lengths[i] = r.Count(len(data))
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

// rests reads the columns of the newer form.
func (r *Reader) deltas(entries []Entry, flags []byte, parents []place) {
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
		switch rest := entries[i].Delta; {
		case flags[i]&flagParent == 0:
		case rest == nil:
			parents[i] = r.place(math.MaxInt32 - 1)
		default:
			text := string(r.Take(r.Count(math.MaxInt32)))
			rest.Parent = &text
		}
	}
}

// complete makes what e shares with the version it rests on.
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
