// Cursor: walks through a document.

package jsonspan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
)

// Cursor walks a document once. The caller enters the values it needs and skips the others:
//
//	c := NewCursor(data, doc)
//	c.Enter()
//	for c.Next() {
//		if name := c.Name(); MatchName(name, "calls") { … } else { c.Skip() }
//	}
//
// After each Next, and in an object after Name, the caller must either skip the value or enter it and walk it to its end.
type Cursor struct {
	data  []byte
	pos   int
	first bool // whether the cursor has just entered a value, so that no comma comes before the next member
}

// NewCursor returns a cursor that stands before v.
func NewCursor(data []byte, v Value) Cursor { return Cursor{data: data, pos: v.Start} }

// Pos returns the offset of the cursor. It is before the next value or, after Next returned false, after the
// array or object.
func (c *Cursor) Pos() int { return c.pos }

// Kind returns the kind of the next value.
func (c *Cursor) Kind() Kind { return kinds[c.data[c.pos]] }

// Enter enters the array or object that comes next.
func (c *Cursor) Enter() {
	c.pos++
	c.first = true
}

// Next moves the cursor to the next member or element. It returns false if there is none; the cursor then
// stands after the array or object.
func (c *Cursor) Next() bool {
	c.pos = skipSpace(c.data, c.pos)
	switch b := c.data[c.pos]; {
	case b == '}' || b == ']':
		c.pos++
		c.first = false
		return false
	case c.first:
		c.first = false
	default: // the next byte is a comma
		c.pos = skipSpace(c.data, c.pos+1)
	}
	return true
}

// Name returns the raw name of the member: the bytes between its quotes. It moves the cursor before the
// member's value.
func (c *Cursor) Name() []byte {
	start := c.pos + 1
	end := skipString(c.data, start)
	c.pos = skipSpace(c.data, skipSpace(c.data, end)+1)
	return c.data[start : end-1]
}

// Skip moves the cursor over the next value and returns that value.
func (c *Cursor) Skip() Value {
	v := Value{kinds[c.data[c.pos]], c.pos, skip(c.data, c.pos)}
	c.pos = v.End
	c.first = false
	return v
}

// skip returns the end of the value at data[i:]. The value must be well formed.
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

// skipString takes the offset after an opening quote and returns the offset after the closing quote.
func skipString(data []byte, i int) int {
	for {
		for i+8 <= len(data) {
			x := binary.LittleEndian.Uint64(data[i:])
			quote, slash := x^lowBits*'"', x^lowBits*'\\'
			if m := ((quote-lowBits)&^quote | (slash-lowBits)&^slash) & highBits; m != 0 {
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

// VisitMembers calls yield with each member of obj in order, until yield returns false. Names are raw, as
// between their quotes (see MatchName). A name that occurs twice is yielded twice.
func VisitMembers(data []byte, obj Value, yield func(name []byte, v Value) bool) {
	if obj.Kind != Object {
		return
	}
	c := NewCursor(data, obj)
	c.Enter()
	for c.Next() {
		name := c.Name()
		if !yield(name, c.Skip()) {
			return
		}
	}
}

// VisitElements calls yield with each element of arr in order, until yield returns false.
func VisitElements(data []byte, arr Value, yield func(v Value) bool) {
	if arr.Kind != Array {
		return
	}
	c := NewCursor(data, arr)
	c.Enter()
	for c.Next() {
		if !yield(c.Skip()) {
			return
		}
	}
}

// Find follows a dotted name ("meta.next_page_url") through objects. In each object, a member whose name is the
// whole remaining text ("@odata.nextLink") takes precedence over a path. If a name occurs twice, its last
// member counts, as in encoding/json. For the empty name Find returns obj.
func Find(data []byte, obj Value, dotted string) (Value, bool) {
	for dotted != "" {
		name, rest, path := strings.Cut(dotted, ".")
		var whole, head Value
		if obj.Kind == Object {
			c := NewCursor(data, obj)
			c.Enter()
			for c.Next() {
				member := c.Name()
				v := c.Skip()
				if MatchName(member, dotted) {
					whole = v
				} else if path && MatchName(member, name) {
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

// MatchName reports whether a raw name means want once its escapes are decoded: the name fr\u006fm means "from".
func MatchName(raw []byte, want string) bool {
	if len(raw) == len(want) && string(raw) == want {
		// A raw name with a backslash has an escape, so its meaning differs from its bytes.
		return bytes.IndexByte(raw, '\\') < 0
	}
	if len(raw) <= len(want) || bytes.IndexByte(raw, '\\') < 0 {
		return false
	}
	var buf [64]byte
	return string(appendDecoded(buf[:0], raw)) == want
}
