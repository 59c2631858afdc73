// This file parses SQLite's file format to find which bytes of a page are in use. See
// https://www.sqlite.org/fileformat2.html.

package sqlite

import (
	"encoding/binary"
	"fmt"
)

// The types of pages of a B-tree in an SQLite file.
const (
	indexInterior = 2
	tableInterior = 5
	indexLeaf     = 10
	tableLeaf     = 13
)

// treePage is one parsed page of a B-tree.
type treePage struct {
	kind     byte
	children []uint32 // the numbers of the child pages; only an interior page has any
	chains   []chain  // the payloads of this page that continue in overflow pages
	used     []bool   // for each byte of the page, whether it is in use
}

// chain is the part of a payload that lies in overflow pages.
type chain struct {
	first uint32
	bytes int64
}

func (t *treePage) isLeaf() bool { return t.kind == indexLeaf || t.kind == tableLeaf }

// layout is the size of the pages of a file, and their number.
type layout struct {
	size   int // the size of a page in bytes
	usable int // the size of a page without the reserved bytes at its end
	pages  uint32
}

// readLayout reads the layout from the file's header.
func readLayout(header []byte) (l layout, err error) {
	if len(header) < 100 || string(header[:16]) != "SQLite format 3\x00" {
		return l, fmt.Errorf("the file has no header")
	}
	if l.size = int(binary.BigEndian.Uint16(header[16:])); l.size == 1 {
		l.size = 1 << 16
	}
	l.usable = l.size - int(header[20])
	l.pages = binary.BigEndian.Uint32(header[28:])
	switch {
	case l.size < 512 || l.size&(l.size-1) != 0 || l.usable < 480:
		return l, fmt.Errorf("pages of %d bytes", l.size)
	case binary.BigEndian.Uint32(header[52:]) != 0:
		return l, fmt.Errorf("a file that vacuums itself")
	case binary.BigEndian.Uint32(header[24:]) != binary.BigEndian.Uint32(header[92:]):
		return l, fmt.Errorf("its header does not say how many pages there are")
	}
	return l, nil
}

// parse parses a page of a tree. It returns an error if the page differs from the file format. Then no byte of the page
// may be overwritten.
func (l layout) parse(number uint32, data []byte) (t *treePage, err error) {
	head := 0
	if number == 1 {
		head = 100
	}
	t = &treePage{kind: data[head], used: make([]bool, l.size)}
	cells, width := int(binary.BigEndian.Uint16(data[head+3:])), 8
	switch t.kind {
	case indexInterior, tableInterior:
		width = 12
	case indexLeaf, tableLeaf:
	default:
		return nil, fmt.Errorf("page %d is of kind %d", number, data[head])
	}
	start := head + width + 2*cells
	if start > l.usable {
		return nil, fmt.Errorf("page %d has %d cells", number, cells)
	}
	for i := range start {
		t.used[i] = true
	}
	for i := l.usable; i < l.size; i++ {
		t.used[i] = true
	}
	for i := range cells {
		at := int(binary.BigEndian.Uint16(data[head+width+2*i:]))
		length, err := l.measureCell(t, data, at)
		if err == nil && at < start {
			err = fmt.Errorf("it begins at %d", at)
		}
		if err == nil {
			err = t.claim(at, length, l.usable)
		}
		if err != nil {
			return nil, fmt.Errorf("page %d, cell %d: %w", number, i, err)
		}
	}
	if width == 12 {
		t.children = append(t.children, binary.BigEndian.Uint32(data[head+8:]))
	}
	for at := int(binary.BigEndian.Uint16(data[head+1:])); at != 0; {
		if at < start || at+4 > l.usable {
			return nil, fmt.Errorf("page %d: a free block at %d", number, at)
		}
		if err := t.claim(at, 4, l.usable); err != nil {
			return nil, fmt.Errorf("page %d: a free block: %w", number, err)
		}
		next := int(binary.BigEndian.Uint16(data[at:]))
		if next != 0 && next < at+4 {
			return nil, fmt.Errorf("page %d: a free block at %d after %d", number, next, at)
		}
		at = next
	}
	return t, nil
}

// claim marks bytes as used. It returns an error if a byte is already marked.
func (t *treePage) claim(at, length, end int) error {
	if at+length > end {
		return fmt.Errorf("%d bytes at %d", length, at)
	}
	for i := at; i < at+length; i++ {
		if t.used[i] {
			return fmt.Errorf("byte %d is used twice", i)
		}
		t.used[i] = true
	}
	return nil
}

// measureCell returns how many bytes the cell at a position takes on its page.
func (l layout) measureCell(t *treePage, data []byte, at int) (length int, err error) {
	r := data[min(at, l.usable):l.usable]
	n := 0
	if t.kind == tableInterior || t.kind == indexInterior {
		if len(r) < 4 {
			return 0, fmt.Errorf("it is cut off")
		}
		t.children = append(t.children, binary.BigEndian.Uint32(r))
		n = 4
	}
	var payload uint64
	if t.kind != tableInterior {
		v, w := readVarint(r[n:])
		payload, n = v, n+w
		if w == 0 {
			return 0, fmt.Errorf("it is cut off")
		}
	}
	if t.kind == tableInterior || t.kind == tableLeaf {
		_, w := readVarint(r[n:])
		if n += w; w == 0 {
			return 0, fmt.Errorf("it is cut off")
		}
	}
	if t.kind != tableInterior {
		local := l.localBytes(t.kind, payload)
		if n += local; uint64(local) < payload {
			if n+4 > len(r) {
				return 0, fmt.Errorf("it is cut off")
			}
			t.chains = append(t.chains, chain{binary.BigEndian.Uint32(r[n:]), int64(payload) - int64(local)})
			n += 4
		}
	}
	return max(n, 4), nil
}

// localBytes returns how many bytes of a payload are on the page itself, not on overflow pages.
func (l layout) localBytes(kind byte, payload uint64) int {
	maxLocal := (l.usable-12)*64/255 - 23
	if kind == tableLeaf {
		maxLocal = l.usable - 35
	}
	if payload <= uint64(maxLocal) {
		return int(payload)
	}
	minLocal := (l.usable-12)*32/255 - 23
	if k := minLocal + int((payload-uint64(minLocal))%uint64(l.usable-4)); k <= maxLocal {
		return k
	}
	return minLocal
}

// readVarint reads a variable-length number and its length n. n is 0 if the bytes end too early.
func readVarint(b []byte) (v uint64, n int) {
	for i := range min(len(b), 9) {
		if i == 8 {
			return v<<8 | uint64(b[8]), 9
		}
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
