// Classes of characters, and characters written in parts.

package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// class is what a character is to cutting.
type class uint8

const (
	between class = iota // it stands between words
	letter               // with its neighbours it makes a word
	single               // a word by itself
	symbol               // perhaps the beginning of an emoji
	silent               // dropped: within a word as if it were not there
)

// span is a range of characters.
type span struct{ first, last rune }

// spaceless are the blocks of scripts without spaces between words, and of
// Korean, whose words carry endings.
var spaceless = []span{
	{0x0e00, 0x0eff}, // Thai, Lao
	{0x1000, 0x109f}, // Burmese
	{0x1100, 0x11ff}, // jamo
	{0x1780, 0x17ff}, // Khmer
	{0x1950, 0x19df}, // Tai Le, New Tai Lue
	{0x1a20, 0x1aaf}, // Tai Tham
	{0x2e80, 0x2fdf}, // radicals
	{0x3005, 0x3007}, {0x3021, 0x3029}, {0x3031, 0x3035}, {0x3038, 0x303c},
	{0x3041, 0x31ff}, // kana, bopomofo, jamo
	{0x3400, 0x4dbf}, {0x4e00, 0xa4cf},
	{0xa960, 0xa97f}, {0xa9e0, 0xa9ff}, {0xaa60, 0xaadf},
	{0xac00, 0xd7ff},
	{0xf900, 0xfaff},
	{0xff66, 0xffdc}, // halfwidth kana and jamo
	{0x16fe0, 0x18cff}, {0x1aff0, 0x1b2ff},
	{0x20000, 0x3ffff},
}

// pictures are the blocks emoji begin in.
var pictures = []span{
	{0x2190, 0x21ff}, {0x2300, 0x23ff}, {0x25aa, 0x25fe}, {0x2600, 0x27bf}, {0x2934, 0x2935}, {0x2b00, 0x2bff},
	{0x3030, 0x3030}, {0x303d, 0x303d}, {0x3297, 0x3299}, {0x1f000, 0x1faff},
}

// within reports whether a character is in one of some rising spans.
func within(r rune, in []span) bool {
	for _, s := range in {
		if r <= s.last {
			return r >= s.first
		}
	}
	return false
}

func classOf(r rune) class {
	switch {
	case r < 0x80:
		if r >= 0 && alnum[r] {
			return letter
		}
		return between
	case r >= 0xc0 && r < 0x2b0:
		if r == 0xd7 || r == 0xf7 {
			return between
		}
		return letter
	}
	if to, ok := folds.of(r); ok {
		switch {
		case to == "":
			return silent
		case len(to) == 1: // a letter or digit of ASCII, wherever it is from
			return letter
		case within(r, spaceless):
			return single
		}
		if first, _ := utf8.DecodeRuneInString(to); within(first, spaceless) {
			return single // such as a character in a circle
		}
		return letter
	}
	switch {
	case unicode.Is(unicode.Nd, r):
		return letter
	case within(r, spaceless):
		if unicode.In(r, unicode.L, unicode.M, unicode.N) {
			return single
		}
		return pictured(r)
	case unicode.In(r, unicode.L, unicode.M, unicode.N):
		return letter
	}
	return pictured(r)
}

func pictured(r rune) class {
	if within(r, pictures) {
		return symbol
	}
	return between
}

// The parts Korean syllables are written in (The Unicode Standard, 3.12).
const (
	leads, leadsEnd   = 0x1100, 0x1113
	vowels, vowelsEnd = 0x1161, 0x1176
	tails, tailsEnd   = 0x11a7, 0x11c3 // the first stands for none
	syllables         = 0xac00
	syllablesEnd      = 0xd7a4
)

// compose is the character that two make together.
func compose(r, next rune) (whole rune, ok bool) {
	switch {
	case next == 0x3099 || next == 0xff9e:
		return voiced(r, 1)
	case next == 0x309a || next == 0xff9f:
		return voiced(r, 2)
	case r >= leads && r < leadsEnd && next >= vowels && next < vowelsEnd:
		return syllables + ((r-leads)*(vowelsEnd-vowels)+next-vowels)*(tailsEnd-tails), true
	case r >= syllables && r < syllablesEnd && (r-syllables)%(tailsEnd-tails) == 0 && next > tails && next < tailsEnd:
		return r + next - tails, true
	}
	return 0, false
}

// voiced is a kana with its voicing mark (by 1) or its half-voicing mark (2).
func voiced(r rune, by rune) (rune, bool) {
	h := r // as hiragana
	if r > 0x30a0 && r < 0x30f6 {
		h -= 0x60
	}
	switch {
	case h == 0x3046 && by == 1:
		return r + 0x4e, true
	case h >= 0x306f && h <= 0x307b && (h-0x306f)%3 == 0:
		return r + by, true
	case by == 1 && (h >= 0x304b && h <= 0x3061 && h%2 == 1 || h == 0x3064 || h == 0x3066 || h == 0x3068):
		return r + 1, true
	}
	return 0, false
}

// What emoji are joined by (UTS #51).
const (
	joiner    = 0x200d
	tones     = 0x1f3fb
	tonesEnd  = 0x1f400
	tags      = 0xe0020
	tagsEnd   = 0xe0080
	letters   = 0x1f1e6 // of flags
	lettersEd = 0x1f200
)

// emoji takes an emoji that begins with r.
func (c *Cutter) emoji(r rune) bool {
	c.put(r)
	if r >= letters && r < lettersEd {
		if next, n := c.peek(); next >= letters && next < lettersEd {
			c.put(next)
			c.at += n
		}
	}
	for {
		next, n := c.peek()
		switch {
		case next >= tags && next < tagsEnd:
			c.put(next)
		case next == joiner:
			at := c.at
			c.at += n
			after, m := c.peek()
			if classOf(after) != symbol {
				c.at = at + n
				c.Word.End = c.at
				return true
			}
			c.put(joiner)
			c.put(after)
			n = m
		case next >= tones && next < tonesEnd || n > 0 && classOf(next) == silent:
		default:
			c.Word.End = c.at
			return true
		}
		c.at += n
	}
}
