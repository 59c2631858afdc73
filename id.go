// ID: an identifier whose type says what it identifies.

package understudy

import (
	"bytes"
	"fmt"
)

// IDKind is a class of ids. Each class is an empty type, declared by the package that makes or reads its ids:
//
//	type session struct{}
//
//	func (session) Prefix() string { return "ses_" }
type IDKind interface {
	// Prefix returns the constant beginning of the ids' texts: ASCII, possibly "".
	Prefix() string
}

// ID is an id of class S: 16 bytes. Only its texts have the prefix. IDs of different classes are different
// types, so mixing them does not compile. Ids in record bodies, whose class is known only at run time, are
// AnyID.
//
// An id has exactly two text forms. The long form is the prefix and 32 lower-case hex digits, as providers
// write their ids. The short form is the prefix and 22 characters of base64url (RFC 4648, 5). Parsing accepts
// these two forms and nothing else. IDs can be compared with ==. The zero value is the id of 16 zero bytes. The
// Append methods do not allocate if dst has room.
type ID[S IDKind] struct {
	_   [0]*S // makes a conversion between two classes a compile error
	Raw [16]byte
}

// ParseID parses the long or the short form. ok is false for any other text. It does not allocate.
func ParseID[S IDKind](text string) (id ID[S], ok bool) {
	prefix := id.prefix()
	if len(text) < len(prefix) || text[:len(prefix)] != prefix {
		return ID[S]{}, false
	}
	id.Raw, ok = readRaw(text[len(prefix):])
	return id, ok
}

func (ID[S]) prefix() string {
	var s S
	return s.Prefix()
}

// AppendText appends the long form to dst. The error is always nil.
func (id ID[S]) AppendText(dst []byte) ([]byte, error) {
	return appendHex(append(dst, id.prefix()...), &id.Raw), nil
}

// AppendShort appends the short form to dst.
func (id ID[S]) AppendShort(dst []byte) []byte {
	return appendShort(append(dst, id.prefix()...), &id.Raw)
}

// AppendBinary appends the 16 bytes to dst. The error is always nil.
func (id ID[S]) AppendBinary(dst []byte) ([]byte, error) { return append(dst, id.Raw[:]...), nil }

// MarshalText returns the long form. JSON uses it.
func (id ID[S]) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// MarshalBinary returns the 16 bytes. Pass them to a database. ID has no Value method because its result type
// belongs to database/sql/driver, which only the store imports.
func (id ID[S]) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// String returns the long form.
func (id ID[S]) String() string {
	var buf [64]byte
	b, _ := id.AppendText(buf[:0])
	return string(b)
}

// ShortString returns the short form.
func (id ID[S]) ShortString() string {
	var buf [64]byte
	return string(id.AppendShort(buf[:0]))
}

// Compare orders ids by their bytes, which is also the order of their hex digits.
func (id ID[S]) Compare(other ID[S]) int { return bytes.Compare(id.Raw[:], other.Raw[:]) }

// IsZero reports whether all bytes are zero.
func (id ID[S]) IsZero() bool { return id == ID[S]{} }

// UnmarshalText parses the long or the short form. The error is ErrInvalid.
func (id *ID[S]) UnmarshalText(text []byte) error {
	read, ok := ParseID[S](string(text))
	if !ok {
		return fmt.Errorf("%w: %q is no id of the form %s… with 32 hex digits or 22 of base64url", ErrInvalid, Clip(string(text)), id.prefix())
	}
	*id = read
	return nil
}

// UnmarshalBinary reads the 16 bytes. The error is ErrInvalid.
func (id *ID[S]) UnmarshalBinary(data []byte) error {
	if len(data) != len(id.Raw) {
		return fmt.Errorf("%w: an id of %d bytes, want %d", ErrInvalid, len(data), len(id.Raw))
	}
	id.Raw = [16]byte(data)
	return nil
}

// Scan implements sql.Scanner. It accepts 16 bytes, the bytes of an AnyID with this prefix, both text forms, a
// text without the prefix and a UUID. NULL and everything else is ErrInvalid. Scan a column that may be NULL
// into a pointer to a pointer.
func (id *ID[S]) Scan(from any) error {
	text, raw, err := readColumn(from)
	if err != nil {
		return err
	}
	if len(raw) == len(id.Raw) {
		return id.UnmarshalBinary(raw)
	}
	prefix := id.prefix()
	if len(raw) == AnyIDSize && len(prefix) == AnyIDSize-len(id.Raw) && string(raw[:len(prefix)]) == prefix {
		return id.UnmarshalBinary(raw[len(prefix):])
	}
	if err = id.UnmarshalText([]byte(text)); err == nil {
		return nil
	}
	if bare, ok := readBare(text); ok {
		id.Raw = bare
		return nil
	}
	return err
}
