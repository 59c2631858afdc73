// The forms of an id's 16 bytes: hex digits, base64url, what a database has.

package understudy

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

const (
	hexText   = 32 // characters
	shortText = 22
	uuidText  = 36
)

// strict refuses the other 15 texts that decode to the same bytes: the last
// character has four bits to spare.
var strict = base64.RawURLEncoding.Strict()

func appendHex(dst []byte, raw *[16]byte) []byte {
	var text [hexText]byte
	for i, b := range raw {
		binary.LittleEndian.PutUint16(text[2*i:], pairs[b])
	}
	return append(dst, text[:]...)
}

// appendShort takes a third of the time of base64's AppendEncode: ten
// characters of six bits from either half, the two between and the last apart.
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

// readRaw reads either form.
func readRaw(text string) (raw [16]byte, ok bool) {
	if len(text) == shortText {
		return readShort(text)
	}
	return readHex(text)
}

// readBare reads either form and that of a UUID.
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

// readShort leaves a text with line breaks, which the decoder skips, too short.
func readShort(text string) (raw [16]byte, ok bool) {
	var src [shortText]byte
	copy(src[:], text)
	if n, err := strict.Decode(raw[:], src[:]); err != nil || n != len(raw) {
		return [16]byte{}, false
	}
	return raw, true
}

// pairs are the two hex digits of each byte, the first one in the low bits.
var pairs = func() (t [256]uint16) {
	const lowerHex = "0123456789abcdef"
	for c := range t {
		t[c] = uint16(lowerHex[c>>4]) | uint16(lowerHex[c&15])<<8
	}
	return t
}()

// digits are the values of lower-case hex digits; anything else is 255.
var digits = func() (t [256]uint8) {
	for c := range t {
		if t[c] = unhex(byte(c)); 'A' <= c && c <= 'F' {
			t[c] = 255
		}
	}
	return t
}()

// column is what a database handed over: a text, as bytes as well when it came
// as bytes.
func column(from any) (text string, raw []byte, err error) {
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
