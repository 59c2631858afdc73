// This file escapes characters that may not occur unescaped in an XML document.

package xmldoc

import "unicode/utf8"

// The classes of a byte in a text. A class of entity or more is entity plus the index of the byte's entity.
const (
	plain   = iota
	wide    // a byte of a character that has several bytes
	control // a control character that XML cannot represent
	entity
)

// entities are the references that replace special characters. Line feeds, tabs and carriage returns are
// escaped where a parser would change them (XML 1.0, 2.11 and 3.3.3).
var entities = [...]string{"&amp;", "&lt;", "&gt;", "&quot;", "&#xD;", "&#xA;", "&#x9;"}

var inText, inAttr = escapeTable("&<>\x00\r"), escapeTable("&<>\"\r\n\t")

// escapeTable returns the classes of all bytes for a context in which the bytes of special must be escaped. The index
// of a byte in special is the index of its entity; a zero byte skips an index.
func escapeTable(special string) (t [256]uint8) {
	for c := range t {
		switch {
		case c >= utf8.RuneSelf:
			t[c] = wide
		case c < ' ' && c != '\t' && c != '\n' && c != '\r':
			t[c] = control
		}
	}
	for i := range len(special) {
		if special[i] != 0 {
			t[special[i]] = uint8(entity + i)
		}
	}
	return t
}

// nameByte says where a byte may occur in a name: 1 anywhere, 2 anywhere except at the beginning, 0 nowhere.
var nameByte = func() (t [256]uint8) {
	for c := byte('a'); c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = 1, 1
	}
	for c := byte('0'); c <= '9'; c++ {
		t[c] = 2
	}
	t['_'], t['-'], t['.'] = 1, 2, 2
	return t
}()

func isValidName(name string) bool {
	if name == "" || len(name) > MaxName || nameByte[name[0]] != 1 {
		return false
	}
	for i := range len(name) {
		if nameByte[name[i]] == 0 {
			return false
		}
	}
	return true
}

// escape appends an escaped text in pieces, so that the buffer stays below twice its limit. No piece ends
// within a character.
func (w *Writer) escape(text string, special *[256]uint8) {
	const longest = 6 // the maximum number of bytes of an entity
	for stretch := w.limit / (longest + 2); w.out != nil && len(text) > stretch && w.err == nil; {
		cut := stretch
		for cut > stretch-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
			cut--
		}
		if cut == stretch-utf8.UTFMax { // no valid character is so long, so these bytes are not UTF-8
			cut = stretch
		}
		w.append(text[:cut], special)
		text = text[cut:]
		w.drain()
	}
	w.append(text, special)
}

// append appends a text with its special characters escaped. It replaces or drops illegal characters and counts them.
func (w *Writer) append(text string, special *[256]uint8) {
	dst, done := w.buf, 0
	for i := 0; i < len(text); {
		what := special[text[i]]
		if what == plain {
			i++
			continue
		}
		n := 1
		if what == wide {
			var r rune
			r, n = utf8.DecodeRuneInString(text[i:])
			if (r != utf8.RuneError || n > 1) && r != 0xFFFE && r != 0xFFFF {
				i += n
				continue
			}
		}
		dst = append(dst, text[done:i]...)
		i += n
		done = i
		if what >= entity {
			dst = append(dst, entities[what-entity]...)
			continue
		}
		w.illegalCount++
		if w.illegal == Replace {
			dst = utf8.AppendRune(dst, utf8.RuneError)
		}
	}
	w.buf = append(dst, text[done:]...)
}
