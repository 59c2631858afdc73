// Package charset turns text in the encodings that old APIs answer in into
// UTF-8 and back, without losing a byte.
//
// It knows UTF-8 behind a byte order mark, windows-1252 (which the web reads for every
// label of Latin-1 and ASCII: WHATWG Encoding Standard, section 4.2) and UTF-16 in both
// byte orders, with a mark or without. Decode refuses a text whose bytes Encode would
// not give back exactly. So a text that was decoded for a reader can be sent on
// unchanged.
package charset

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Charset names an encoding. The zero value is plain UTF-8, whose text is its
// bytes.
type Charset string

// The encodings, by the labels of the WHATWG Encoding Standard; "-sig" says
// that a byte order mark comes first, as it does in Python's codecs.
const (
	UTF8          Charset = ""
	UTF8Marked    Charset = "utf-8-sig"
	Windows1252   Charset = "windows-1252"
	UTF16LE       Charset = "utf-16le"
	UTF16BE       Charset = "utf-16be"
	UTF16LEMarked Charset = "utf-16le-sig"
	UTF16BEMarked Charset = "utf-16be-sig"
)

var marks = []struct {
	of   Charset
	mark string
}{{UTF8Marked, "\xef\xbb\xbf"}, {UTF16LEMarked, "\xff\xfe"}, {UTF16BEMarked, "\xfe\xff"}}

// latin are the labels that mean windows-1252.
var latin = []string{
	"ascii", "us-ascii", "ansi_x3.4-1968", "latin1", "l1", "iso-8859-1", "iso8859-1", "iso_8859-1", "iso88591",
	"cp819", "ibm819", "csisolatin1", "windows-1252", "cp1252", "x-cp1252",
}

// Of finds the encoding of a body that begins with ASCII, as JSON and XML do. It looks
// for a byte order mark, for the zero bytes of UTF-16, and at the declared label, in
// any letter case. The label counts when the body holds more than ASCII and is not
// UTF-8 in spite of it. known is false for UTF-32, for an unknown label, and for one
// that the body contradicts.
func Of(label string, b []byte) (c Charset, known bool) {
	if bytes.HasPrefix(b, []byte("\xff\xfe\x00\x00")) || bytes.HasPrefix(b, []byte("\x00\x00")) ||
		len(b) > 3 && b[0] != 0 && b[1] == 0 && b[2] == 0 && b[3] == 0 {
		return UTF8, false
	}
	for _, m := range marks {
		if bytes.HasPrefix(b, []byte(m.mark)) {
			return m.of, true
		}
	}
	if len(b) > 1 && (b[0] == 0) != (b[1] == 0) {
		if b[0] == 0 {
			return UTF16BE, true
		}
		return UTF16LE, true
	}
	switch label = strings.ToLower(strings.TrimSpace(label)); {
	case label == "" || label == "utf-8" || label == "utf8":
		return UTF8, true
	case !slices.Contains(latin, label) && !asciiBased(label):
		return UTF8, false
	case !slices.ContainsFunc(b, func(c byte) bool { return c >= utf8.RuneSelf }):
		return UTF8, true
	case !slices.Contains(latin, label) || utf8.Valid(b):
		return UTF8, false
	}
	return Windows1252, true
}

// asciiBased reports labels of single bytes whose first half is ASCII: a body
// that keeps to ASCII means the same in them and in UTF-8.
func asciiBased(label string) bool {
	return strings.HasPrefix(label, "iso-8859-") || strings.HasPrefix(label, "windows-125")
}

// Decode gives the text in UTF-8. ok is false when Encode would not give the same
// bytes back: a unit of UTF-16 is cut, then there is no text, or a surrogate stands
// alone, for which U+FFFD stands. The text of plain UTF-8 is b itself and is not
// looked at.
func (c Charset) Decode(b []byte) (text []byte, ok bool) {
	switch c {
	case UTF8:
		return b, true
	case UTF8Marked:
		text, ok = bytes.CutPrefix(b, []byte(marks[0].mark))
		return text, ok
	case Windows1252:
		text = make([]byte, 0, len(b)+len(b)/8)
		for _, x := range b {
			text = utf8.AppendRune(text, decode1252(x))
		}
	case UTF16LE, UTF16LEMarked:
		text = decode16(bytes.TrimPrefix(b, []byte(c.mark())), binary.LittleEndian)
	case UTF16BE, UTF16BEMarked:
		text = decode16(bytes.TrimPrefix(b, []byte(c.mark())), binary.BigEndian)
	}
	again, ok := c.Encode(text)
	return text, ok && bytes.Equal(again, b)
}

// Encode gives the bytes of a text in UTF-8. ok is false when the encoding has
// no bytes for one of its characters, or is not known.
func (c Charset) Encode(text []byte) (b []byte, ok bool) {
	switch c {
	case UTF8:
		return text, true
	case UTF8Marked:
		return append([]byte(marks[0].mark), text...), true
	case Windows1252:
		b = make([]byte, 0, len(text))
		for _, r := range string(text) {
			x, has := encode1252(r)
			if !has {
				return nil, false
			}
			b = append(b, x)
		}
		return b, true
	case UTF16LE, UTF16LEMarked:
		return encode16(c.mark(), text, binary.LittleEndian), true
	case UTF16BE, UTF16BEMarked:
		return encode16(c.mark(), text, binary.BigEndian), true
	}
	return nil, false
}

func (c Charset) mark() string {
	for _, m := range marks {
		if m.of == c {
			return m.mark
		}
	}
	return ""
}

// upper are the characters of windows-1252 at 0x80 to 0x9f. The five that the
// code page leaves open are the control characters of Latin-1, as on the web.
var upper = [32]rune{
	'€', 0x81, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0x8d, 'Ž', 0x8f,
	0x90, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0x9d, 'ž', 'Ÿ',
}

func decode1252(x byte) rune {
	if x >= 0x80 && x < 0xa0 {
		return upper[x-0x80]
	}
	return rune(x)
}

func encode1252(r rune) (byte, bool) {
	switch i := slices.Index(upper[:], r); {
	case i >= 0:
		return byte(0x80 + i), true
	case r < 0x80, r >= 0xa0 && r <= 0xff:
		return byte(r), true
	}
	return 0, false
}

func decode16(b []byte, order binary.ByteOrder) []byte {
	if len(b)%2 != 0 {
		return nil
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = order.Uint16(b[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

func encode16(mark string, text []byte, order binary.AppendByteOrder) []byte {
	b := append(make([]byte, 0, len(mark)+2*len(text)), mark...)
	for _, u := range utf16.Encode([]rune(string(text))) {
		b = order.AppendUint16(b, u)
	}
	return b
}
