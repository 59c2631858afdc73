// Cursor, and the ways through a document built on it.

package jsonspan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
)

// Cursor walks a document once, going into the values its owner names and
// over the others:
//
//	c := At(data, doc)
//	c.Enter()
//	for c.More() {
//		if name := c.Name(); NameIs(name, "calls") { … } else { c.Skip() }
//	}
//
// After each More (and Name, in an object) the value must be entered and
// walked to its end, or skipped.
type Cursor struct {
	data  []byte
	pos   int
	first bool // just entered: no comma comes first
}

// At is a cursor before v.
func At(data []byte, v Value) Cursor { return Cursor{data: data, pos: v.Start} }

// Pos is the offset the cursor stands at: before the value to come or, after a
// More that was false, behind the array or object.
func (c *Cursor) Pos() int { return c.pos }

// Kind is the kind of the value to come.
func (c *Cursor) Kind() Kind { return kinds[c.data[c.pos]] }

// Enter goes into the array or object to come.
func (c *Cursor) Enter() {
	c.pos++
	c.first = true
}

// More goes before the next member or element; false means that there is none,
// and that the cursor stands behind the array or object it walked.
func (c *Cursor) More() bool {
	c.pos = space(c.data, c.pos)
	switch b := c.data[c.pos]; {
	case b == '}' || b == ']':
		c.pos++
		c.first = false
		return false
	case c.first:
		c.first = false
	default: // the comma
		c.pos = space(c.data, c.pos+1)
	}
	return true
}

// Name is the member's name, raw: the bytes between its quotes. The cursor
// then stands before the member's value.
func (c *Cursor) Name() []byte {
	start := c.pos + 1
	end := skipString(c.data, start)
	c.pos = space(c.data, space(c.data, end)+1)
	return c.data[start : end-1]
}

// Skip goes over the value to come and returns it.
func (c *Cursor) Skip() Value {
	v := Value{kinds[c.data[c.pos]], c.pos, skip(c.data, c.pos)}
	c.pos = v.End
	c.first = false
	return v
}

// skip is the end of the value at data[i:], which is known to be well formed.
func skip(data []byte, i int) int {
	switch data[i] {
	case '"':
		return skipString(data, i+1)
	case '{', '[':
		for depth := 0; ; {
			switch data[i] {
			case '"':
				i = skipString(data, i+1)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for i < len(data) && data[i] > ' ' && data[i] != ',' && data[i] != '}' && data[i] != ']' {
		i++
	}
	return i
}

// skipString goes from after the opening quote to after the closing one.
func skipString(data []byte, i int) int {
	for {
		for i+8 <= len(data) {
			x := binary.LittleEndian.Uint64(data[i:])
			quote, slash := x^ones*'"', x^ones*'\\'
			if m := ((quote-ones)&^quote | (slash-ones)&^slash) & highs; m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		for data[i] != '"' && data[i] != '\\' {
			i++
		}
		if data[i] == '"' {
			return i + 1
		}
		i += 2
	}
}

// Members calls yield with each member of obj in order, until it returns
// false. A name is raw, as between its quotes (see NameIs); a name there twice
// comes twice.
func Members(data []byte, obj Value, yield func(name []byte, v Value) bool) {
	if obj.Kind != Object {
		return
	}
	c := At(data, obj)
	c.Enter()
	for c.More() {
		name := c.Name()
		if !yield(name, c.Skip()) {
			return
		}
	}
}

// Elements calls yield with each element of arr in order, until it returns
// false.
func Elements(data []byte, arr Value, yield func(v Value) bool) {
	if arr.Kind != Array {
		return
	}
	c := At(data, arr)
	c.Enter()
	for c.More() {
		if !yield(c.Skip()) {
			return
		}
	}
}

// Find follows a dotted name ("meta.next_page_url") through objects. In each object a
// member with the whole name that is left ("@odata.nextLink") comes before a path. Of a
// name there twice Find takes the last, as encoding/json does. The empty name is obj itself.
func Find(data []byte, obj Value, dotted string) (Value, bool) {
	for dotted != "" {
		name, rest, path := strings.Cut(dotted, ".")
		var whole, head Value
		if obj.Kind == Object {
			c := At(data, obj)
			c.Enter()
			for c.More() {
				member := c.Name()
				v := c.Skip()
				if NameIs(member, dotted) {
					whole = v
				} else if path && NameIs(member, name) {
					head = v
				}
			}
		}
		if whole.Kind != None {
			return whole, true
		}
		obj, dotted = head, rest
		if obj.Kind == None {
			return Value{}, false
		}
	}
	return obj, obj.Kind != None
}

// NameIs reports whether a raw name means want, escapes decoded: the name
// fr\u006fm is "from".
func NameIs(raw []byte, want string) bool {
	if len(raw) == len(want) && string(raw) == want {
		// A name holding a backslash can equal want only when want does too.
		return bytes.IndexByte(raw, '\\') < 0
	}
	if len(raw) <= len(want) || bytes.IndexByte(raw, '\\') < 0 {
		return false
	}
	var buf [64]byte
	return string(appendDecoded(buf[:0], raw)) == want
}
