// ID: an id of one sort, which no id of another sort is taken for.

package understudy

import (
	"bytes"
	"fmt"
)

// IDKind is a sort of ids. It is an empty type of the package that makes or reads them:
//
//	type session struct{}
//
//	func (session) Prefix() string { return "ses_" }
type IDKind interface {
	// Prefix is what their texts begin with: always the same, ASCII, possibly "".
	Prefix() string
}

// ID is an id of sort S: 16 bytes, and a prefix that only its texts have. IDs of
// different sorts are different types, so mixing them does not compile. The ids in
// bodies, whose sort is known at run time alone, are AnyID.
//
// An id has two texts. One is the prefix with 32 lower-case hex digits, as providers
// write theirs. The other is the prefix with 22 characters of base64url (RFC 4648, 5),
// for places where length counts. Each id has exactly one of either. Reading takes both
// and nothing else. IDs can be compared with ==. The zero value is the id of 16 zero
// bytes. The Append methods do not allocate when dst has room.
type ID[S IDKind] struct {
	_   [0]*S // sorts that are converted into each other do not compile, either
	Raw [16]byte
}

// ParseID reads either text; ok is false for any other. It does not allocate.
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

// AppendText appends the prefix and the 32 hex digits to dst; the error is nil.
func (id ID[S]) AppendText(dst []byte) ([]byte, error) {
	return appendHex(append(dst, id.prefix()...), &id.Raw), nil
}

// AppendShort appends the prefix and the 22 characters of base64url to dst.
func (id ID[S]) AppendShort(dst []byte) []byte {
	return appendShort(append(dst, id.prefix()...), &id.Raw)
}

// AppendBinary appends the 16 bytes to dst; the error is nil.
func (id ID[S]) AppendBinary(dst []byte) ([]byte, error) { return append(dst, id.Raw[:]...), nil }

// MarshalText is AppendText to nothing, and what JSON holds.
func (id ID[S]) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// MarshalBinary is the 16 bytes, which is also what to give a database: there
// is no Value method, because its type is one of package driver, which only
// the store imports.
func (id ID[S]) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// String is the text of hex digits.
func (id ID[S]) String() string {
	var buf [64]byte
	b, _ := id.AppendText(buf[:0])
	return string(b)
}

// Short is the text of base64url.
func (id ID[S]) Short() string {
	var buf [64]byte
	return string(id.AppendShort(buf[:0]))
}

// Compare orders ids by their bytes, which is the order of their hex digits.
func (id ID[S]) Compare(other ID[S]) int { return bytes.Compare(id.Raw[:], other.Raw[:]) }

// IsZero reports whether all bytes are zero.
func (id ID[S]) IsZero() bool { return id == ID[S]{} }

// UnmarshalText reads either text. The error is ErrInvalid.
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

// Scan reads what a database holds (it is an sql.Scanner): 16 bytes, those of
// an AnyID with this prefix, either text, and a text without the prefix or as
// a UUID. NULL and anything else is ErrInvalid; a column that may be NULL is
// scanned into a pointer to a pointer.
func (id *ID[S]) Scan(from any) error {
	text, raw, err := column(from)
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
