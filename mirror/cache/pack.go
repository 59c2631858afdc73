// Packing: pages compressed so that thousands fit into memory and one is restored in 50 µs.
//
// A packed page is ids | zstd(head | text). The ids of the rows have 18 bytes each and are not compressed,
// because they are random. The head is everything except the body, with the row fields by column. The text is
// the body, with a mark in place of each row's id inside the row. No JSON document contains the mark.
//
// A list repeats a record's id in a dozen links. Without the id, the links of all records are equal and
// compress to almost nothing.

package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"understudy"
)

// idMark replaces the id of a row in the packed text. No JSON document contains it, because RFC 8259 allows no
// control characters except tab, line feed and carriage return.
const idMark = 0x01

// minMarkedID is the minimum length of an id that is replaced by a mark.
const minMarkedID = 8

// maxBody is the maximum size of a body in bytes that a head may have.
const maxBody = 1<<31 - 1

var errNotPacked = errors.New("mirror: packed page is damaged")

// appendHead appends all fields of a page except the body, the kind and the shape. It returns the ids of 34
// characters separately, without compression.
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

// appendRows appends the fields of all rows, column by column. It returns the ids of 34 characters separately.
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

// appendMarked appends the body with each row's id replaced by a mark. The rows must be in order, and the body must
// not contain the mark.
func appendMarked(dst, body []byte, rows []understudy.Row) []byte {
	at := 0
	var id []byte
	for i := range rows {
		r := &rows[i]
		dst = append(dst, body[at:r.Start]...)
		at = r.End
		if len(r.ID) < minMarkedID {
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
			dst = append(append(dst, rest[:n]...), idMark)
			rest = rest[n+len(id):]
		}
		dst = append(dst, rest...)
	}
	return append(dst, body[at:]...)
}

// canPack reports whether the page can be packed: its rows must be ranges of the body in order, and the body must not
// contain the mark.
func canPack(p *understudy.Page) bool {
	end := 0
	for i := range p.Rows {
		r := &p.Rows[i]
		if r.Start < end || r.End < r.Start || r.End > len(p.Body) {
			return false
		}
		end = r.End
	}
	return len(p.Rows) == 0 || bytes.IndexByte(p.Body, idMark) < 0
}

// unmark replaces the marks in a text by the ids of the rows. The result must have exactly size bytes.
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
			n := bytes.IndexByte(text, idMark)
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

// reader reads the fields of a packed head one after another.
type reader struct {
	data   []byte
	failed bool
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
		r.failed = true
		return 0
	}
	r.data = r.data[n:]
	return v
}

// size reads a number. If it is above the limit, the head counts as damaged, so that damaged data cannot cause a
// large allocation.
func (r *reader) size(limit int) int {
	v := r.uint()
	if v > uint64(limit) {
		r.failed = true
		return 0
	}
	return int(v)
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.data) {
		r.failed = true
		return make([]byte, n)
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) text() string { return string(r.bytes(r.size(len(r.data)))) }

// readHead returns the page that a head describes, without its body. It also returns the text that follows the head,
// and the size of the body.
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
	if n := r.size(len(r.data)); n > 0 && !r.failed {
		p.Rows = make([]understudy.Row, n)
		r.readRows(p.Rows, ids)
	}
	if r.failed {
		return nil, nil, 0, fmt.Errorf("%w: head", errNotPacked)
	}
	return p, r.data, size, nil
}

// readRows reads the fields of the rows.
func (r *reader) readRows(rows []understudy.Row, ids []byte) {
	for i := range rows {
		rows[i].Start = r.size(maxBody)
	}
	end := 0
	for i := range rows {
		rows[i].Start += end
		end = rows[i].Start + r.size(maxBody)
		rows[i].End = end
	}
	r.readIDs(rows, ids)
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

// readIDs reads the ids into one string and sets the id of each row to a part of it.
func (r *reader) readIDs(rows []understudy.Row, ids []byte) {
	const short, long = understudy.AnyIDSize, understudy.AnyIDText
	all := make([]byte, 0, len(ids)/short*long)
	var id understudy.AnyID
	for i := range rows {
		switch {
		case r.bytes(1)[0] == 1:
			rows[i].ID = r.text()
		case len(ids) < short || id.UnmarshalBinary(ids[:short]) != nil || id.IsZero():
			r.failed = true
		default:
			all, _ = id.AppendText(all)
			rows[i].End, ids = -rows[i].End-1, ids[short:] // a negative value means that the id of the row is among the separate ids
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
