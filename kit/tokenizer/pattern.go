// Pattern: a word, the beginning of a word, or a phrase that is searched in a text.

package tokenizer

import (
	"bytes"
	"iter"
	"slices"
)

// MaxPhrase is the maximum number of words of a phrase. Further words are ignored.
const MaxPhrase = 64

// Pattern is a sequence of words that must follow each other directly. The zero Pattern has no words and
// matches nothing.
type Pattern struct {
	words     []string
	prefix    bool
	truncated bool
}

// Phrase returns the pattern of the words in the given texts, in their order. If prefix is set, the last word may be
// the beginning of a longer word.
func Phrase(prefix bool, texts ...string) Pattern {
	p := Pattern{prefix: prefix}
	for _, text := range texts {
		for w := range Cut(text) {
			if len(p.words) == MaxPhrase {
				p.truncated, p.prefix = true, false
				return p
			}
			p.words = append(p.words, string(w.Folded))
			p.truncated = p.truncated || len(w.Folded) > MaxWord-4
		}
	}
	return p
}

// Words returns the folded words of the pattern.
func (p Pattern) Words() []string { return slices.Clone(p.words) }

// IsPrefix reports whether the last word may be the beginning of a longer word.
func (p Pattern) IsPrefix() bool { return p.prefix }

// IsEmpty reports whether the pattern has no words and so matches nothing.
func (p Pattern) IsEmpty() bool { return len(p.words) == 0 }

// IsTruncated reports whether words were shortened or left out. Such a pattern may also match texts that the
// full phrase would not match.
func (p Pattern) IsTruncated() bool { return p.truncated }

// MatchText reports whether a text contains the pattern.
func (p Pattern) MatchText(text string) bool {
	for range p.Find(text) {
		return true
	}
	return false
}

// Find yields the start and end of each match in a text, in their order. Matches may overlap.
func (p Pattern) Find(text string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		n := len(p.words)
		if n == 0 {
			return
		}
		var starts [MaxPhrase]int // the start in the text of each of the last words
		var state uint64          // bit i is set if the last i+1 words match the first words of the pattern
		c := Cutter{text: text}
		for at := 0; c.Next(); at++ {
			starts[at%MaxPhrase] = c.Word.Start
			state = (state<<1 | 1) & p.matchPlaces(c.Word.Folded, state<<1|1)
			if state>>(n-1)&1 == 1 && !yield(starts[(at-n+1)%MaxPhrase], c.Word.End) {
				return
			}
		}
	}
}

// matchPlaces returns, as bits, the positions in the pattern at which its word equals the given word. It tries only the
// positions whose bit is set in among.
func (p *Pattern) matchPlaces(word []byte, among uint64) (fits uint64) {
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
