// ID: an identifier whose type says what it identifies, and the encodings of its 16 bytes.

package understudy

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
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
	_   [0]*S // makes it a compile error to convert an id of one class to another class
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
		return fmt.Errorf("%w: %q is not an id of the form %s… with 32 hex digits or 22 of base64url", ErrInvalid,
			Clip(string(text)), id.prefix())
	}
	*id = read
	return nil
}

// UnmarshalBinary reads the 16 bytes. The error is ErrInvalid.
func (id *ID[S]) UnmarshalBinary(data []byte) error {
	if len(data) != len(id.Raw) {
		return fmt.Errorf("%w: the id has %d bytes instead of %d", ErrInvalid, len(data), len(id.Raw))
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

const (
	hexText   = 32 // the number of characters of the long form, without its prefix
	shortText = 22
	uuidText  = 36
)

// strict rejects the 15 other texts that decode to the same bytes: the last character has four unused bits.
var strict = base64.RawURLEncoding.Strict()

func appendHex(dst []byte, raw *[16]byte) []byte {
	var text [hexText]byte
	for i, b := range raw {
		binary.LittleEndian.PutUint16(text[2*i:], pairs[b])
	}
	return append(dst, text[:]...)
}

// appendShort appends 22 characters of base64url. It takes a third of the time of base64's AppendEncode. Each
// half of the id gives ten characters of six bits. The remaining bits give the characters 10 and 21.
func appendShort(dst []byte, raw *[16]byte) []byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	var text [shortText]byte
	high, low := binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	text[10], text[21] = alphabet[(high<<2|low>>62)&63], alphabet[low<<4&63]
	for i := range 10 {
		text[9-i], text[20-i] = alphabet[high>>4&63], alphabet[low>>2&63]
		high, low = high>>6, low>>6
	}
	return append(dst, text[:]...)
}

// readRaw decodes 32 hex digits or 22 characters of base64url.
func readRaw(text string) (raw [16]byte, ok bool) {
	if len(text) == shortText {
		return readShort(text)
	}
	return readHex(text)
}

// readBare decodes a UUID and the forms that readRaw accepts.
func readBare(text string) (raw [16]byte, ok bool) {
	if len(text) == uuidText && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' {
		return readHex(text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:])
	}
	return readRaw(text)
}

func readHex(text string) (raw [16]byte, ok bool) {
	if len(text) != hexText {
		return raw, false
	}
	for i := range raw {
		hi, lo := digits[text[2*i]], digits[text[2*i+1]]
		if hi|lo > 15 {
			return [16]byte{}, false
		}
		raw[i] = hi<<4 | lo
	}
	return raw, true
}

// readShort decodes 22 characters of base64url. A text with line breaks fails: the decoder skips them and finds
// too few characters.
func readShort(text string) (raw [16]byte, ok bool) {
	var src [shortText]byte
	copy(src[:], text)
	if n, err := strict.Decode(raw[:], src[:]); err != nil || n != len(raw) {
		return [16]byte{}, false
	}
	return raw, true
}

// pairs maps each byte to its two hex digits, the first digit in the low bits.
var pairs = func() (t [256]uint16) {
	const lowerHex = "0123456789abcdef"
	for c := range t {
		t[c] = uint16(lowerHex[c>>4]) | uint16(lowerHex[c&15])<<8
	}
	return t
}()

// digits maps each lower-case hex digit to its value, and every other byte to 255.
var digits = func() (t [256]uint8) {
	for c := range t {
		if t[c] = unhex(byte(c)); 'A' <= c && c <= 'F' {
			t[c] = 255
		}
	}
	return t
}()

// readColumn returns a database value as text. raw is the value itself if the database gave bytes.
func readColumn(from any) (text string, raw []byte, err error) {
	switch from := from.(type) {
	case []byte:
		return string(from), from, nil
	case string:
		return from, nil, nil
	case nil:
		return "", nil, fmt.Errorf("%w: no id: NULL", ErrInvalid)
	}
	return "", nil, fmt.Errorf("%w: no id: a %T", ErrInvalid, from)
}

// AnyID is an id of any class: two letters and 32 lower-case hex digits (CA0123…), stored in 18 bytes. Ids of
// another form stay text. The zero value is no id and has an empty text. AnyIDs can be compared with ==. The
// Append methods do not allocate if dst has room.
type AnyID struct {
	Prefix [2]byte
	Raw    [16]byte
}

// The sizes of an AnyID in bytes, in its binary form and as text.
const (
	AnyIDSize = 18
	AnyIDText = 34
)

// ParseAnyID parses an id. ok is false for any other form, so that AppendText always returns exactly the parsed
// text. It does not allocate.
func ParseAnyID(text string) (id AnyID, ok bool) {
	if len(text) != AnyIDText || !isLetter(text[0]) || !isLetter(text[1]) {
		return AnyID{}, false
	}
	if id.Raw, ok = readHex(text[2:]); !ok {
		return AnyID{}, false
	}
	id.Prefix = [2]byte{text[0], text[1]}
	return id, true
}

// AppendText appends the 34 characters to dst. The error is always nil.
func (id AnyID) AppendText(dst []byte) ([]byte, error) {
	if id.IsZero() {
		return dst, nil
	}
	return appendHex(append(dst, id.Prefix[:]...), &id.Raw), nil
}

// AppendBinary appends the 18 bytes to dst. The error is always nil.
func (id AnyID) AppendBinary(dst []byte) ([]byte, error) {
	return append(append(dst, id.Prefix[:]...), id.Raw[:]...), nil
}

// MarshalText returns the 34 characters, or nothing for the zero value. JSON uses it.
func (id AnyID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// MarshalBinary returns the 18 bytes. Pass them to a database.
func (id AnyID) MarshalBinary() ([]byte, error) { return id.AppendBinary(nil) }

// String returns the 34 characters, or "" for the zero value.
func (id AnyID) String() string {
	var buf [AnyIDText]byte
	b, _ := id.AppendText(buf[:0])
	return string(b)
}

// Compare orders ids as their texts are ordered.
func (id AnyID) Compare(other AnyID) int {
	return cmp.Or(bytes.Compare(id.Prefix[:], other.Prefix[:]), bytes.Compare(id.Raw[:], other.Raw[:]))
}

// IsZero reports whether the value is no id.
func (id AnyID) IsZero() bool { return id == AnyID{} }

// UnmarshalText parses 34 characters, two letters with 22 characters of base64url, or an empty text. The error
// is ErrInvalid.
func (id *AnyID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = AnyID{}
		return nil
	}
	if len(text) > 2 && isLetter(text[0]) && isLetter(text[1]) {
		if raw, ok := readRaw(string(text[2:])); ok {
			*id = AnyID{Prefix: [2]byte(text), Raw: raw}
			return nil
		}
	}
	return fmt.Errorf("%w: %q is not an id of two letters with 32 hex digits or 22 of base64url", ErrInvalid, Clip(string(text)))
}

// UnmarshalBinary reads the 18 bytes. The error is ErrInvalid.
func (id *AnyID) UnmarshalBinary(data []byte) error {
	var read AnyID
	if len(data) == AnyIDSize {
		read = AnyID{Prefix: [2]byte(data), Raw: [16]byte(data[2:])}
	}
	if len(data) != AnyIDSize || !read.IsZero() && !(isLetter(data[0]) && isLetter(data[1])) {
		return fmt.Errorf("%w: %d bytes are not an id of two letters and 16 bytes", ErrInvalid, len(data))
	}
	*id = read
	return nil
}

// Scan implements sql.Scanner. It accepts 18 bytes or a text. NULL and everything else is ErrInvalid. Scan a
// column that may be NULL into a pointer to a pointer.
func (id *AnyID) Scan(from any) error {
	text, raw, err := readColumn(from)
	switch {
	case err != nil:
		return err
	case len(raw) == AnyIDSize:
		return id.UnmarshalBinary(raw)
	}
	return id.UnmarshalText([]byte(text))
}

func isLetter(c byte) bool { return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' }
