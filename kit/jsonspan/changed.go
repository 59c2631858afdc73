// Changed: which members differ between two objects.

package jsonspan

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// Changed calls yield with the dotted name of each member that differs between
// two documents that are objects, until it returns false. An object there on
// both sides is gone into ("meta.page"); anything else, an array too, is
// compared whole and named once. White space, the order of members and how a
// string is escaped make no difference; numbers are compared as written (1.0
// is not 1); of a name there twice the last counts. Names are raw, as the new
// document writes them, or the old one when it alone has them; a name with a
// dot in it looks like two, so the same name may come twice. They come in no
// particular order and stay valid after the call as long as the documents do.
// The error is an *Error, wrapped, when one is not a document or no object;
// then nothing was yielded. When nothing differs nothing is allocated, unless
// objects of more than 64 members differ in order.
func Changed(old, new []byte, yield func(name []byte) bool) error {
	a, err := object(old)
	if err != nil {
		return fmt.Errorf("jsonspan: the old one: %w", err)
	}
	if bytes.Equal(old, new) {
		return nil
	}
	b, err := object(new)
	if err != nil {
		return fmt.Errorf("jsonspan: the new one: %w", err)
	}
	d := differ{old: old, new: new, yield: yield}
	d.objects(a, b)
	return nil
}

// object is a document's outermost value, which must be an object.
func object(data []byte) (Value, error) {
	v, err := Document(data)
	if err == nil && v.Kind != Object {
		err = &Error{v.Start, "want an object"}
	}
	return v, err
}

// differ is one comparison. The offsets of values lead into old or new; which,
// their names tell.
type differ struct {
	old, new []byte
	yield    func(name []byte) bool

	names  [MaxDepth][]byte // that of the member looked at, behind those of the objects around it
	depth  int
	silent int // within an array, where the first difference is enough
}

// tell yields the member looked at, false when the comparison is to stop.
func (d *differ) tell() bool {
	switch {
	case d.silent > 0:
		return false
	case d.depth == 1:
		return d.yield(d.names[0])
	}
	return d.yield(bytes.Join(d.names[:d.depth], []byte(".")))
}

// values tells what differs between the values of one name.
func (d *differ) values(name []byte, old, new Value) bool {
	d.names[d.depth] = name
	d.depth++
	on := true
	if old.Kind == Object && new.Kind == Object {
		on = d.objects(old, new)
	} else if !d.same(old, new) {
		on = d.tell()
	}
	d.depth--
	return on
}

// one tells of a member that one side alone has.
func (d *differ) one(name []byte) bool {
	d.names[d.depth] = name
	d.depth++
	on := d.tell()
	d.depth--
	return on
}

// member is one member of an object.
type member struct {
	at    int // which, counted from 0
	name  []byte
	value Value
}

// lookAhead is how many differences in one object are each checked against a
// later member of the same name by going over the rest; with more of them,
// sorting is cheaper.
const lookAhead = 16

// objects tells what differs between two objects, false when it is to stop.
// Both are walked at once while their names are in the same order, which
// needs no memory; from the first other name on, members are matched by
// sorting.
func (d *differ) objects(old, new Value) bool {
	a, b := At(d.old, old), At(d.new, new)
	a.Enter()
	b.Enter()
	for at, looked := 0, 0; ; at++ {
		more := a.More()
		if more != b.More() {
			return d.shuffled(old, new, at)
		}
		if !more {
			return true
		}
		was, is := a.Name(), b.Name()
		if compareText(was, is) != 0 {
			return d.shuffled(old, new, at)
		}
		before, after := a.Skip(), b.Skip()
		if bytes.Equal(before.Of(d.old), after.Of(d.new)) {
			continue
		}
		if looked++; looked > lookAhead {
			return d.shuffled(old, new, at)
		}
		if comesAgain(a, was) || comesAgain(b, is) {
			continue // the later one counts
		}
		if !d.values(is, before, after) {
			return false
		}
	}
}

// comesAgain reports whether a member of that name is still to come.
func comesAgain(c Cursor, name []byte) bool {
	for c.More() {
		if compareText(c.Name(), name) == 0 {
			return true
		}
		c.Skip()
	}
	return false
}

// shuffled is objects for members in different orders, of which those before
// from have been told of, as far as they are the ones that count on both sides.
func (d *differ) shuffled(old, new Value, from int) bool {
	var bufA, bufB [64]member
	a, b := sorted(bufA[:0], d.old, old), sorted(bufB[:0], d.new, new)
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
			on = d.one(a[0].name)
		case side > 0:
			on = d.one(b[0].name)
		case a[0].at == b[0].at && a[0].at < from:
		default:
			on = d.values(b[0].name, a[0].value, b[0].value)
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

// sorted are the members of an object by name, the last one of each.
func sorted(into []member, data []byte, obj Value) []member {
	c := At(data, obj)
	c.Enter()
	for at := 0; c.More(); at++ {
		name := c.Name()
		into = append(into, member{at, name, c.Skip()})
	}
	slices.SortFunc(into, func(x, y member) int {
		return cmp.Or(compareText(x.name, y.name), cmp.Compare(y.at, x.at))
	})
	return slices.CompactFunc(into, func(x, y member) bool { return compareText(x.name, y.name) == 0 })
}

// same reports whether two values mean the same.
func (d *differ) same(old, new Value) bool {
	x, y := old.Of(d.old), new.Of(d.new)
	switch {
	case bytes.Equal(x, y):
		return true
	case old.Kind != new.Kind:
		return false
	case old.Kind == String:
		return compareText(x[1:len(x)-1], y[1:len(y)-1]) == 0
	case old.Kind == Object:
		d.silent++
		same := d.objects(old, new)
		d.silent--
		return same
	case old.Kind != Array:
		return false
	}
	a, b := At(d.old, old), At(d.new, new)
	a.Enter()
	b.Enter()
	for {
		more := a.More()
		if more != b.More() {
			return false
		}
		if !more {
			return true
		}
		if !d.same(a.Skip(), b.Skip()) {
			return false
		}
	}
}

// compareText compares raw strings or names as what they mean, by bytes, piece
// by piece: nothing is copied.
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
			x, a = piece(bufA[:0], a)
		}
		if len(y) == 0 {
			y, b = piece(bufB[:0], b)
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

// piece is the text raw begins with, decoded, and what comes after it: up to
// the next escape, or one escape, decoded into buf. It is empty at the end.
func piece(buf, raw []byte) (text, rest []byte) {
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
		_, n = surrogates(raw)
	}
	return appendDecoded(buf, raw[:n]), raw[n:]
}
