// Escaping: characters that cannot stand in a document unescaped.

package xmldoc

import "unicode/utf8"

// What a byte of a text is; from entity on, which of the entities stands for
// it.
const (
	plain   = iota
	wide    // begins or continues a character of several bytes
	control // a character that no document can hold
	entity
)

// Line feeds, tabs and returns are written as references where a parser would
// make something else of them (XML 1.0, 2.11 and 3.3.3).
var entities = [...]string{"&amp;", "&lt;", "&gt;", "&quot;", "&#xD;", "&#xA;", "&#x9;"}

var inText, inAttr = bytesOf("&<>\x00\r"), bytesOf("&<>\"\r\n\t")

// bytesOf is the table for a text in which the bytes of special, each at the
// place of its entity, cannot stand; a zero byte keeps a place.
func bytesOf(special string) (t [256]uint8) {
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

// nameByte tells which bytes a name is made of: 1 anywhere, 2 not at its
// beginning.
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

func named(name string) bool {
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

// escape appends a text in stretches so short that what waits stays within
// twice the buffer; no stretch ends within a character.
func (w *Writer) escape(text string, special *[256]uint8) {
	const longest = 6 // bytes of an entity
	for stretch := w.limit / (longest + 2); w.out != nil && len(text) > stretch && w.err == nil; {
		cut := stretch
		for cut > stretch-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
			cut--
		}
		if cut == stretch-utf8.UTFMax { // no character reaches so far: what is here is none
			cut = stretch
		}
		w.append(text[:cut], special)
		text = text[cut:]
		w.drain()
	}
	w.append(text, special)
}

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
		w.bad++
		if w.illegal == Replace {
			dst = utf8.AppendRune(dst, utf8.RuneError)
		}
	}
	w.buf = append(dst, text[done:]...)
}
