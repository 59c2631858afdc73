// Pack: a page small enough to keep thousands of, and whole again in 50 µs.
//
// What stays is  ids | zstd(head | text):
//
//	ids   the rows' ids, 18 bytes each, uncompressed because they are random
//	head  everything of the page that is not its body, row tables by column
//	text  the body with every occurrence of a row's id inside the row replaced
//	      by one byte that no JSON document contains
//
// A list repeats a record's id in a dozen links; without it the links of all
// records are the same text and cost nothing.

package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"understudy"
)

// mark stands for a row's id in a text. RFC 8259 allows no control character
// in a document but tab, line feed and carriage return.
const mark = 0x01

// minMarked is the shortest id worth a mark.
const minMarked = 8

// maxBody bounds what a head may claim.
const maxBody = 1<<31 - 1

var errNotPacked = errors.New("mirror: packed page is damaged")

// appendHead appends what a page holds beside body, kind and shape. ids, the
// ids of 34 characters, come back separately.
func appendHead(dst []byte, p *understudy.Page) (head, ids []byte) {
	var flags uint64
	if p.List {
		flags |= 1
	}
	if p.Superseded {
		flags |= 2
	}
	dst = binary.AppendUvarint(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(p.Status))
	dst = binary.AppendVarint(dst, p.Generation)
	dst = binary.AppendVarint(dst, p.Version)
	dst = binary.AppendUvarint(dst, uint64(p.InitialAge/time.Second))
	dst = append(dst, p.Sum[:]...)
	for _, s := range []string{p.Key.Source, p.Key.URI, p.ID, p.ContentType, p.Charset, p.Header, p.NotStored, p.Next.Source, p.Next.URI} {
		dst = appendText(dst, s)
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.Body)))
	dst = binary.AppendUvarint(dst, uint64(len(p.Rows)))
	return appendRows(dst, p.Rows)
}

func appendRows(dst []byte, rows []understudy.Row) (head, ids []byte) {
	end := 0
	for i := range rows {
		dst = binary.AppendUvarint(dst, uint64(rows[i].Start-end))
		end = rows[i].End
	}
	for i := range rows {
		dst = binary.AppendUvarint(dst, uint64(rows[i].End-rows[i].Start))
	}
	for i := range rows {
		if id, ok := understudy.ParseAnyID(rows[i].ID); ok {
			dst = append(dst, 0)
			ids, _ = id.AppendBinary(ids)
			continue
		}
		dst = appendText(append(dst, 1), rows[i].ID)
	}
	var clock, record, version int64
	for i := range rows {
		dst = binary.AppendVarint(dst, rows[i].Clock-clock)
		clock = rows[i].Clock
	}
	for i := range rows {
		dst = binary.AppendVarint(dst, rows[i].Record-record)
		record = rows[i].Record
	}
	for i := range rows {
		dst = binary.AppendVarint(dst, rows[i].Version-version)
		version = rows[i].Version
	}
	for i := range rows {
		final := byte(0)
		if rows[i].Final {
			final = 1
		}
		dst = append(dst, final)
	}
	return dst, ids
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// appendMarked appends a body, row ids replaced by marks. Rows must be in
// order and the body free of marks.
func appendMarked(dst, body []byte, rows []understudy.Row) []byte {
	at := 0
	var id []byte
	for i := range rows {
		r := &rows[i]
		dst = append(dst, body[at:r.Start]...)
		at = r.End
		if len(r.ID) < minMarked {
			dst = append(dst, body[r.Start:r.End]...)
			continue
		}
		id = append(id[:0], r.ID...)
		rest := body[r.Start:r.End]
		for {
			n := bytes.Index(rest, id)
			if n < 0 {
				break
			}
			dst = append(append(dst, rest[:n]...), mark)
			rest = rest[n+len(id):]
		}
		dst = append(dst, rest...)
	}
	return append(dst, body[at:]...)
}

// packable reports whether rows are ranges of the body in order, and marks
// can be told from text.
func packable(p *understudy.Page) bool {
	end := 0
	for i := range p.Rows {
		r := &p.Rows[i]
		if r.Start < end || r.End < r.Start || r.End > len(p.Body) {
			return false
		}
		end = r.End
	}
	return len(p.Rows) == 0 || bytes.IndexByte(p.Body, mark) < 0
}

// unmark is the body again, exactly size bytes.
func unmark(text []byte, rows []understudy.Row, size int) ([]byte, error) {
	body := make([]byte, 0, size)
	for i := range rows {
		r := &rows[i]
		gap := r.Start - len(body)
		if gap < 0 || gap > len(text) || r.End > size {
			return nil, errNotPacked
		}
		body, text = append(body, text[:gap]...), text[gap:]
		for len(body) < r.End {
			n := bytes.IndexByte(text, mark)
			if left := r.End - len(body); n < 0 || n >= left {
				if left > len(text) {
					return nil, errNotPacked
				}
				body, text = append(body, text[:left]...), text[left:]
				break
			}
			body = append(append(body, text[:n]...), r.ID...)
			text = text[n+1:]
		}
		if len(body) != r.End {
			return nil, errNotPacked
		}
	}
	if body = append(body, text...); len(body) != size {
		return nil, errNotPacked
	}
	return body, nil
}

// reader takes a head apart.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.data)
	return uint64(r.skip(int64(v), n))
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.data)
	return r.skip(v, n)
}

func (r *reader) skip(v int64, n int) int64 {
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.data = r.data[n:]
	return v
}

// size is a count or length, bounded so that nothing absurd is allocated.
func (r *reader) size(most int) int {
	v := r.uint()
	if v > uint64(most) {
		r.bad = true
		return 0
	}
	return int(v)
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.data) {
		r.bad = true
		return make([]byte, n)
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) text() string { return string(r.bytes(r.size(len(r.data)))) }

// readHead is the page of a head, its body still missing, with what follows
// the head and the body's size.
func readHead(data, ids []byte) (p *understudy.Page, text []byte, size int, err error) {
	r := reader{data: data}
	p = &understudy.Page{}
	flags := r.uint()
	p.List, p.Superseded = flags&1 != 0, flags&2 != 0
	p.Status = r.size(1 << 16)
	p.Generation, p.Version = r.int(), r.int()
	p.InitialAge = time.Duration(r.size(1<<32)) * time.Second
	copy(p.Sum[:], r.bytes(len(p.Sum)))
	for _, s := range []*string{&p.Key.Source, &p.Key.URI, &p.ID, &p.ContentType, &p.Charset, &p.Header, &p.NotStored, &p.Next.Source,
		&p.Next.URI} {
		*s = r.text()
	}
	size = r.size(maxBody)
	if n := r.size(len(r.data)); n > 0 && !r.bad {
		p.Rows = make([]understudy.Row, n)
		r.rows(p.Rows, ids)
	}
	if r.bad {
		return nil, nil, 0, fmt.Errorf("%w: head", errNotPacked)
	}
	return p, r.data, size, nil
}

func (r *reader) rows(rows []understudy.Row, ids []byte) {
	for i := range rows {
		rows[i].Start = r.size(maxBody)
	}
	end := 0
	for i := range rows {
		rows[i].Start += end
		end = rows[i].Start + r.size(maxBody)
		rows[i].End = end
	}
	r.ids(rows, ids)
	var clock, record, version int64
	for i := range rows {
		clock += r.int()
		rows[i].Clock = clock
	}
	for i := range rows {
		record += r.int()
		rows[i].Record = record
	}
	for i := range rows {
		version += r.int()
		rows[i].Version = version
	}
	for i := range rows {
		rows[i].Final = r.bytes(1)[0] == 1
	}
}

// ids makes one string of all ids and cuts it.
func (r *reader) ids(rows []understudy.Row, ids []byte) {
	const short, long = understudy.AnyIDSize, understudy.AnyIDText
	all := make([]byte, 0, len(ids)/short*long)
	var id understudy.AnyID
	for i := range rows {
		switch {
		case r.bytes(1)[0] == 1:
			rows[i].ID = r.text()
		case len(ids) < short || id.UnmarshalBinary(ids[:short]) != nil || id.IsZero():
			r.bad = true
		default:
			all, _ = id.AppendText(all)
			rows[i].End, ids = -rows[i].End-1, ids[short:] // remembers that its id is in all
		}
	}
	text := string(all)
	for i := range rows {
		if rows[i].End < 0 {
			rows[i].End = -rows[i].End - 1
			rows[i].ID, text = text[:long], text[long:]
		}
	}
}
