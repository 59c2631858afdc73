// Changes: finds the members that differ between two objects.

package jsonspan

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// FindChanges calls yield with the dotted name of each member that differs between two documents, until yield
// returns false. Both documents must be objects. An object on both sides is compared member by member
// ("meta.page"). Any other value, also an array, is compared as a whole and yielded once. White space, the
// order of members and string escapes make no difference. Numbers are compared as written: 1.0 is not 1. If a
// name occurs twice in an object, its last member counts.
//
// Names are yielded raw, as the new document writes them, or the old one if only the old one has the member. A
// name that contains a dot looks like two names, so the same name may be yielded twice. The order is
// unspecified, and names stay valid as long as the documents. If a document is invalid or not an object,
// FindChanges returns a wrapped *Error and yields nothing. Equal documents need no allocation, unless objects
// of more than 64 members differ in order.
func FindChanges(old, new []byte, yield func(name []byte) bool) error {
	a, err := parseObject(old)
	if err != nil {
		return fmt.Errorf("jsonspan: the old one: %w", err)
	}
	if bytes.Equal(old, new) {
		return nil
	}
	b, err := parseObject(new)
	if err != nil {
		return fmt.Errorf("jsonspan: the new one: %w", err)
	}
	d := differ{old: old, new: new, yield: yield}
	d.compareObjects(a, b)
	return nil
}

// parseObject returns the outermost value of a document, or an error if it is not an object.
func parseObject(data []byte) (Value, error) {
	v, err := Parse(data)
	if err == nil && v.Kind != Object {
		err = &Error{v.Start, "want an object"}
	}
	return v, err
}

// differ compares two documents. Values called old or a are offsets into old, values called new or b are
// offsets into new.
type differ struct {
	old, new []byte
	yield    func(name []byte) bool

	names      [MaxDepth][]byte // the name of the current member, after the names of the objects around it
	depth      int
	arrayDepth int // the number of arrays around the current value; within an array no member is yielded
}

// report yields the dotted name of the current member. It returns false if the comparison must stop.
func (d *differ) report() bool {
	switch {
	case d.arrayDepth > 0:
		return false
	case d.depth == 1:
		return d.yield(d.names[0])
	}
	return d.yield(bytes.Join(d.names[:d.depth], []byte(".")))
}

// compareValues compares two values of the same name. It returns false if the comparison must stop.
func (d *differ) compareValues(name []byte, old, new Value) bool {
	d.names[d.depth] = name
	d.depth++
	on := true
	if old.Kind == Object && new.Kind == Object {
		on = d.compareObjects(old, new)
	} else if !d.isSame(old, new) {
		on = d.report()
	}
	d.depth--
	return on
}

// reportName yields the name of a member that only one document has.
func (d *differ) reportName(name []byte) bool {
	d.names[d.depth] = name
	d.depth++
	on := d.report()
	d.depth--
	return on
}

// member is a member of an object.
type member struct {
	index int // the position among the members of the object, from 0
	name  []byte
	value Value
}

// maxOrderedChanges is the maximum number of changed members of an object that are found without sorting. For
// each of them the rest of both objects is searched for a later member of the same name. With more changes,
// sorting is cheaper.
const maxOrderedChanges = 16

// compareObjects yields the differences between two objects. It returns false if the comparison must stop. It
// walks both objects side by side while their names are in the same order, which needs no memory. From the
// first name that differs on, it matches members by sorting.
func (d *differ) compareObjects(old, new Value) bool {
	a, b := NewCursor(d.old, old), NewCursor(d.new, new)
	a.Enter()
	b.Enter()
	for at, looked := 0, 0; ; at++ {
		more := a.Next()
		if more != b.Next() {
			return d.compareUnordered(old, new, at)
		}
		if !more {
			return true
		}
		was, is := a.Name(), b.Name()
		if compareText(was, is) != 0 {
			return d.compareUnordered(old, new, at)
		}
		before, after := a.Skip(), b.Skip()
		if bytes.Equal(before.Bytes(d.old), after.Bytes(d.new)) {
			continue
		}
		if looked++; looked > maxOrderedChanges {
			return d.compareUnordered(old, new, at)
		}
		if hasLaterMember(a, was) || hasLaterMember(b, is) {
			continue // an earlier member of the same name, which does not count
		}
		if !d.compareValues(is, before, after) {
			return false
		}
	}
}

// hasLaterMember reports whether a member of that name follows.
func hasLaterMember(c Cursor, name []byte) bool {
	for c.Next() {
		if compareText(c.Name(), name) == 0 {
			return true
		}
		c.Skip()
	}
	return false
}

// compareUnordered compares objects whose members are in different orders. Members before index from were
// already compared, if they are at the same index on both sides.
func (d *differ) compareUnordered(old, new Value, from int) bool {
	var bufA, bufB [64]member
	a, b := sortMembers(bufA[:0], d.old, old), sortMembers(bufB[:0], d.new, new)
	for len(a) > 0 || len(b) > 0 {
		side := 0
		switch {
		case len(a) == 0:
			side = 1
		case len(b) == 0:
			side = -1
		default:
			side = compareText(a[0].name, b[0].name)
		}
		on := true
		switch {
		case side < 0:
			on = d.reportName(a[0].name)
		case side > 0:
			on = d.reportName(b[0].name)
		case a[0].index == b[0].index && a[0].index < from:
		default:
			on = d.compareValues(b[0].name, a[0].value, b[0].value)
		}
		if !on {
			return false
		}
		if side <= 0 {
			a = a[1:]
		}
		if side >= 0 {
			b = b[1:]
		}
	}
	return true
}

// sortMembers returns the members of an object sorted by name. If a name occurs twice, only its last member is returned.
func sortMembers(into []member, data []byte, obj Value) []member {
	c := NewCursor(data, obj)
	c.Enter()
	for at := 0; c.Next(); at++ {
		name := c.Name()
		into = append(into, member{at, name, c.Skip()})
	}
	slices.SortFunc(into, func(x, y member) int {
		return cmp.Or(compareText(x.name, y.name), cmp.Compare(y.index, x.index))
	})
	return slices.CompactFunc(into, func(x, y member) bool { return compareText(x.name, y.name) == 0 })
}

// isSame reports whether two values have the same meaning.
func (d *differ) isSame(old, new Value) bool {
	x, y := old.Bytes(d.old), new.Bytes(d.new)
	switch {
	case bytes.Equal(x, y):
		return true
	case old.Kind != new.Kind:
		return false
	case old.Kind == String:
		return compareText(x[1:len(x)-1], y[1:len(y)-1]) == 0
	case old.Kind == Object:
		d.arrayDepth++
		same := d.compareObjects(old, new)
		d.arrayDepth--
		return same
	case old.Kind != Array:
		return false
	}
	a, b := NewCursor(d.old, old), NewCursor(d.new, new)
	a.Enter()
	b.Enter()
	for {
		more := a.Next()
		if more != b.Next() {
			return false
		}
		if !more {
			return true
		}
		if !d.isSame(a.Skip(), b.Skip()) {
			return false
		}
	}
}

// compareText compares two raw strings or names by their decoded bytes. It decodes them piece by piece and
// copies nothing.
func compareText(a, b []byte) int {
	if bytes.Equal(a, b) {
		return 0
	}
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return bytes.Compare(a, b)
	}
	var bufA, bufB [12]byte
	var x, y []byte
	for {
		if len(x) == 0 {
			x, a = nextPiece(bufA[:0], a)
		}
		if len(y) == 0 {
			y, b = nextPiece(bufB[:0], b)
		}
		n := min(len(x), len(y))
		if n == 0 {
			return cmp.Compare(len(x), len(y))
		}
		if c := bytes.Compare(x[:n], y[:n]); c != 0 {
			return c
		}
		x, y = x[n:], y[n:]
	}
}

// nextPiece returns the first part of raw, decoded, and the rest of raw. A part ends before the next escape, or
// is a single escape, which is decoded into buf. At the end of raw the part is empty.
func nextPiece(buf, raw []byte) (text, rest []byte) {
	if len(raw) == 0 {
		return nil, nil
	}
	if raw[0] != '\\' {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			n = len(raw)
		}
		return raw[:n], raw[n:]
	}
	n := 2
	if raw[1] == 'u' {
		_, n = decodeUnicodeEscape(raw)
	}
	return appendDecoded(buf, raw[:n]), raw[n:]
}
