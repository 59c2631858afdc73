// Pattern: a word, the beginning of one, or a phrase, looked for in a text.

package tokenizer

import (
	"bytes"
	"iter"
	"slices"
)

// MaxPhrase is how many words of a phrase are looked for; the others are left
// out.
const MaxPhrase = 64

// Pattern is words that stand one right after the other. The zero Pattern has
// none, and is found nowhere.
type Pattern struct {
	words  []string
	prefix bool
	cut    bool
}

// Phrase is the pattern of the words in some texts, in that order; with prefix
// the last one may go on.
func Phrase(prefix bool, texts ...string) Pattern {
	p := Pattern{prefix: prefix}
	for _, text := range texts {
		for w := range Cut(text) {
			if len(p.words) == MaxPhrase {
				p.cut, p.prefix = true, false
				return p
			}
			p.words = append(p.words, string(w.Folded))
			p.cut = p.cut || len(w.Folded) > MaxWord-4
		}
	}
	return p
}

// Words are the folded words that are looked for.
func (p Pattern) Words() []string { return slices.Clone(p.words) }

// Prefix reports whether the last word may go on.
func (p Pattern) Prefix() bool { return p.prefix }

// Empty reports that there is no word in it, so that it is found nowhere.
func (p Pattern) Empty() bool { return len(p.words) == 0 }

// Loose reports that it may be found where what was asked for is not: it has a
// word, or more words, than are looked at in full.
func (p Pattern) Loose() bool { return p.cut }

// In reports whether a text has it.
func (p Pattern) In(text string) bool {
	for range p.Find(text) {
		return true
	}
	return false
}

// Find yields where it is in a text: the bytes from start to end, in their
// order; they may overlap.
func (p Pattern) Find(text string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		n := len(p.words)
		if n == 0 {
			return
		}
		var starts [MaxPhrase]int // of the last words
		var state uint64          // bit i: the last i+1 words are the first ones of the pattern
		c := Cutter{text: text}
		for at := 0; c.Next(); at++ {
			starts[at%MaxPhrase] = c.Word.Start
			state = (state<<1 | 1) & p.fits(c.Word.Folded, state<<1|1)
			if state>>(n-1)&1 == 1 && !yield(starts[(at-n+1)%MaxPhrase], c.Word.End) {
				return
			}
		}
	}
}

// fits has a bit for each place of the pattern, among some, that a word can take.
func (p *Pattern) fits(word []byte, among uint64) (fits uint64) {
	last := len(p.words) - 1
	for i, want := range p.words {
		if among>>i&1 == 0 {
			continue
		}
		if string(word) == want || i == last && p.prefix && bytes.HasPrefix(word, []byte(want)) {
			fits |= 1 << i
		}
	}
	return fits
}
