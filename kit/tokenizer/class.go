// Classes of characters, and characters written in several parts.

package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// class says how a character is treated when a text is cut into words.
type class uint8

const (
	separator class = iota // characters that separate words
	letter                 // characters that form a word together with their neighbours
	single                 // characters that are a word on their own
	symbol                 // characters that may begin an emoji
	ignored                // characters that are ignored, as if they were not there
)

// span is a range of characters, both ends included.
type span struct{ first, last rune }

// spaceless are the blocks of scripts that have no spaces between words. Korean is included, because its words have
// endings.
var spaceless = []span{
	{0x0e00, 0x0eff}, // Thai, Lao
	{0x1000, 0x109f}, // Burmese
	{0x1100, 0x11ff}, // Korean jamo
	{0x1780, 0x17ff}, // Khmer
	{0x1950, 0x19df}, // Tai Le, New Tai Lue
	{0x1a20, 0x1aaf}, // Tai Tham, a script of northern Thailand
	{0x2e80, 0x2fdf}, // radicals of Chinese characters
	{0x3005, 0x3007}, {0x3021, 0x3029}, {0x3031, 0x3035}, {0x3038, 0x303c},
	{0x3041, 0x31ff}, // kana, bopomofo and Korean jamo
	{0x3400, 0x4dbf}, {0x4e00, 0xa4cf},
	{0xa960, 0xa97f}, {0xa9e0, 0xa9ff}, {0xaa60, 0xaadf},
	{0xac00, 0xd7ff},
	{0xf900, 0xfaff},
	{0xff66, 0xffdc}, // halfwidth kana and Korean jamo
	{0x16fe0, 0x18cff}, {0x1aff0, 0x1b2ff},
	{0x20000, 0x3ffff},
}

// emojiBlocks are the blocks with the characters that begin an emoji.
var emojiBlocks = []span{
	{0x2190, 0x21ff}, {0x2300, 0x23ff}, {0x25aa, 0x25fe}, {0x2600, 0x27bf}, {0x2934, 0x2935}, {0x2b00, 0x2bff},
	{0x3030, 0x3030}, {0x303d, 0x303d}, {0x3297, 0x3299}, {0x1f000, 0x1faff},
}

// isInSpans reports whether a character is in one of the spans, which must be sorted.
func isInSpans(r rune, in []span) bool {
	for _, s := range in {
		if r <= s.last {
			return r >= s.first
		}
	}
	return false
}

// classOf returns the class of a character. ASCII and Latin letters are decided without a table.
func classOf(r rune) class {
	switch {
	case r < 0x80:
		if r >= 0 && alnum[r] {
			return letter
		}
		return separator
	case r >= 0xc0 && r < 0x2b0:
		if r == 0xd7 || r == 0xf7 {
			return separator
		}
		return letter
	}
	if to, ok := folds.fold(r); ok {
		switch {
		case to == "":
			return ignored
		case len(to) == 1: // an ASCII letter, or a digit of any script
			return letter
		case isInSpans(r, spaceless):
			return single
		}
		if first, _ := utf8.DecodeRuneInString(to); isInSpans(first, spaceless) {
			return single // for example, a circled Chinese character
		}
		return letter
	}
	switch {
	case unicode.Is(unicode.Nd, r):
		return letter
	case isInSpans(r, spaceless):
		if unicode.In(r, unicode.L, unicode.M, unicode.N) {
			return single
		}
		return pictureClass(r)
	case unicode.In(r, unicode.L, unicode.M, unicode.N):
		return letter
	}
	return pictureClass(r)
}

// pictureClass returns symbol for a character that can begin an emoji, else separator.
func pictureClass(r rune) class {
	if isInSpans(r, emojiBlocks) {
		return symbol
	}
	return separator
}

// The parts of Korean syllables (The Unicode Standard, 3.12).
const (
	leads, leadsEnd   = 0x1100, 0x1113
	vowels, vowelsEnd = 0x1161, 0x1176
	tails, tailsEnd   = 0x11a7, 0x11c3 // tails is one less than the first tail, because index 0 means no tail
	syllables         = 0xac00
	syllablesEnd      = 0xd7a4
)

// compose returns the character that r and next form together, if there is one.
func compose(r, next rune) (whole rune, ok bool) {
	switch {
	case next == 0x3099 || next == 0xff9e:
		return addVoicing(r, 1)
	case next == 0x309a || next == 0xff9f:
		return addVoicing(r, 2)
	case r >= leads && r < leadsEnd && next >= vowels && next < vowelsEnd:
		return syllables + ((r-leads)*(vowelsEnd-vowels)+next-vowels)*(tailsEnd-tails), true
	case r >= syllables && r < syllablesEnd && (r-syllables)%(tailsEnd-tails) == 0 && next > tails && next < tailsEnd:
		return r + next - tails, true
	}
	return 0, false
}

// addVoicing returns the kana r with its voicing mark (by is 1) or its half-voicing mark (by is 2).
func addVoicing(r rune, by rune) (rune, bool) {
	h := r // the character converted to hiragana
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

// Characters that belong to an emoji (UTS #51).
const (
	zeroWidthJoiner = 0x200d
	skinTones       = 0x1f3fb
	skinTonesEnd    = 0x1f400
	tags            = 0xe0020
	tagsEnd         = 0xe0080
	flagLetters     = 0x1f1e6 // the regional indicators, two of which make a flag
	flagLettersEnd  = 0x1f200
)

// takeEmoji takes an emoji that begins with r, with the characters that belong to it.
func (c *Cutter) takeEmoji(r rune) {
	c.put(r)
	if r >= flagLetters && r < flagLettersEnd {
		if next, n := c.peek(); next >= flagLetters && next < flagLettersEnd {
			c.put(next)
			c.at += n
		}
	}
	for {
		next, n := c.peek()
		switch {
		case next >= tags && next < tagsEnd:
			c.put(next)
		case next == zeroWidthJoiner:
			at := c.at
			c.at += n
			after, m := c.peek()
			if classOf(after) != symbol {
				c.at = at + n
				c.Word.End = c.at
				return
			}
			c.put(zeroWidthJoiner)
			c.put(after)
			n = m
		case next >= skinTones && next < skinTonesEnd || n > 0 && classOf(next) == ignored:
		default:
			c.Word.End = c.at
			return
		}
		c.at += n
	}
}
