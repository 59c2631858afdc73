// Package charset converts between UTF-8 and the encodings that old APIs use, without losing a byte.
//
// It supports UTF-8 with a byte order mark, windows-1252 and UTF-16. The web reads every label of Latin-1 and
// ASCII as windows-1252 (WHATWG Encoding Standard, section 4.2). UTF-16 may have either byte order, with or
// without a mark. Decode refuses a text whose bytes Encode would not restore exactly. So a decoded text can
// always be sent on unchanged.
package charset

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Charset names an encoding. The zero value is plain UTF-8, whose text equals its bytes.
type Charset string

// The encodings, named by the labels of the WHATWG Encoding Standard. The suffix "-sig" means that a byte order
// mark comes first, as in Python's codecs.
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

// latin lists the labels that mean windows-1252.
var latin = []string{
	"ascii", "us-ascii", "ansi_x3.4-1968", "latin1", "l1", "iso-8859-1", "iso8859-1", "iso_8859-1", "iso88591",
	"cp819", "ibm819", "csisolatin1", "windows-1252", "cp1252", "x-cp1252",
}

// Guess finds the encoding of a body that begins with ASCII, as JSON and XML do. It looks for a byte order
// mark and for the zero bytes of UTF-16, and then at the declared label, in any letter case. The label only
// matters if the body contains more than ASCII and is not valid UTF-8. known is false for UTF-32, for an
// unknown label, and for a label that the body contradicts.
func Guess(label string, b []byte) (c Charset, known bool) {
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
	case !slices.Contains(latin, label) && !isASCIIBased(label):
		return UTF8, false
	case !slices.ContainsFunc(b, func(c byte) bool { return c >= utf8.RuneSelf }):
		return UTF8, true
	case !slices.Contains(latin, label) || utf8.Valid(b):
		return UTF8, false
	}
	return Windows1252, true
}

// isASCIIBased reports whether the label names a single-byte encoding whose first half is ASCII. A body of
// ASCII characters means the same in such an encoding and in UTF-8.
func isASCIIBased(label string) bool {
	return strings.HasPrefix(label, "iso-8859-") || strings.HasPrefix(label, "windows-125")
}

// Decode returns the text in UTF-8. ok is false if Encode would not restore the same bytes. For a cut UTF-16
// unit no text is returned; for a lone surrogate the text contains U+FFFD. For plain UTF-8 Decode returns b
// itself without checking it.
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

// Encode returns the bytes of a text that is given in UTF-8. ok is false if the encoding is unknown or cannot
// represent a character of the text.
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

// windows1252High holds the characters of windows-1252 at 0x80 to 0x9f. The code page leaves five of them
// undefined; as on the web, these are the control characters of Latin-1.
var windows1252High = [32]rune{
	'€', 0x81, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0x8d, 'Ž', 0x8f,
	0x90, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0x9d, 'ž', 'Ÿ',
}

func decode1252(x byte) rune {
	if x >= 0x80 && x < 0xa0 {
		return windows1252High[x-0x80]
	}
	return rune(x)
}

func encode1252(r rune) (byte, bool) {
	switch i := slices.Index(windows1252High[:], r); {
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
