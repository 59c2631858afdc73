// Tokenizer: cuts text into words in every script, and folds the words.

// Package tokenizer cuts text into words, in every script, and finds words and phrases in it. In scripts
// without spaces between words (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) each character is a word,
// so that any part of a text is found as a phrase. The package keeps no state. Everything except a Cutter is
// safe for concurrent use.
package tokenizer

import (
	"iter"
	"unicode/utf8"
)

// MaxWord is the maximum length in bytes of a folded word. The rest of a longer word is ignored, both in texts
// and in patterns.
const MaxWord = 64

// Word is a word of a text.
type Word struct {
	// Folded is the word without case, diacritics and the like. It consists of lower-case ASCII letters and
	// digits, and of characters beyond ASCII; it has 1 to MaxWord bytes. It is valid until the next word is
	// read.
	Folded     []byte
	Start, End int // the bytes of the word in the text, including combining marks
}

// Cut yields the words of a text in their order. A sequence of letters and digits is a word, also in mixed
// scripts. Anything else separates words, also invalid UTF-8. So an e-mail address, a URL or a hyphenated word
// is several words that follow each other directly. Cutting a folded word again gives the same word.
//
//   - Case, diacritics, width and forms of letters are folded (folds.txt). É and é become e, ß becomes ss, İ
//     and ı become i, ς becomes σ, ё becomes е, ｶﾞ becomes ガ, and the forms of alef are folded. Harakat,
//     niqqud, tatweel and invisible characters are dropped. The digits of all scripts become 0 to 9.
//   - Vowel signs of Indic scripts belong to the word; the nukta is dropped.
//   - An emoji is a word with everything that is joined to it, except its skin tone and its variation selector.
//     A flag is a word too.
func Cut(text string) iter.Seq[Word] {
	return func(yield func(Word) bool) {
		c := Cutter{text: text}
		for c.Next() {
			if !yield(c.Word) {
				return
			}
		}
	}
}

// Fold returns the folded words of a text as new strings.
func Fold(text string) []string {
	var all []string
	for w := range Cut(text) {
		all = append(all, string(w.Folded))
	}
	return all
}

// Field is one text of a record that has several texts.
type Field struct{ Class, Name, Text string }

// Cutter cuts many texts like Cut and reuses its memory. The zero Cutter has no words. It is not safe for
// concurrent use.
type Cutter struct {
	Word  Word
	text  string
	at    int
	full  bool // whether the folded word has reached MaxWord
	looks int  // how many times a character beyond ASCII was decoded, to check that it is at most twice for each byte
}

// Reset starts with a new text.
func (c *Cutter) Reset(text string) {
	c.text, c.at, c.looks, c.Word.Folded = text, 0, 0, c.Word.Folded[:0]
}

// Next moves to the next word. It returns false if there is none.
func (c *Cutter) Next() bool {
	c.Word.Folded, c.full = c.Word.Folded[:0], false
	for c.at < len(c.text) {
		if b := c.text[c.at]; b < utf8.RuneSelf {
			if !alnum[b] {
				c.at++
				continue
			}
			c.Word.Start = c.at
			c.takeLetters()
			return true
		}
		r, n := c.nextRune()
		c.Word.Start = c.at
		switch classOf(r) {
		case letter:
			c.takeLetters()
			return true
		case single:
			c.at += n
			c.takeCharacter(r)
			return true
		case symbol:
			c.at += n
			c.takeEmoji(r)
			return true
		default:
			c.at += n
		}
	}
	return false
}

// alnum marks the ASCII letters and digits.
var alnum = func() (is [utf8.RuneSelf]bool) {
	for b := range is {
		is[b] = '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
	}
	return is
}()

// takeLetters takes the letters and digits at the current position, of which there is at least one.
func (c *Cutter) takeLetters() {
	for c.at < len(c.text) {
		b := c.text[c.at]
		if b < utf8.RuneSelf {
			if !alnum[b] {
				break
			}
			if 'A' <= b && b <= 'Z' {
				b += 'a' - 'A'
			}
			if c.at++; len(c.Word.Folded) < MaxWord && !c.full {
				c.Word.Folded = append(c.Word.Folded, b)
			} else {
				c.full = true
			}
			continue
		}
		r, n := c.nextRune()
		if class := classOf(r); class != letter && class != ignored {
			break
		}
		c.at += n
		c.fold(r)
	}
	c.Word.End = c.at
}

// fold appends the folded form of a character if there is room.
func (c *Cutter) fold(r rune) {
	at, ok := folds.fold(r)
	switch {
	case !ok:
		c.put(r)
	case len(at)+len(c.Word.Folded) > MaxWord || c.full:
		c.full = c.full || at != ""
	default:
		c.Word.Folded = append(c.Word.Folded, at...)
	}
}

// put appends a character unchanged if there is room.
func (c *Cutter) put(r rune) {
	if c.full || len(c.Word.Folded)+utf8.RuneLen(r) > MaxWord {
		c.full = true
		return
	}
	c.Word.Folded = utf8.AppendRune(c.Word.Folded, r)
}

// nextRune returns the next character. There must be one.
func (c *Cutter) nextRune() (r rune, n int) {
	c.looks++
	return utf8.DecodeRuneInString(c.text[c.at:])
}

// peek returns the next character, or 0 at the end.
func (c *Cutter) peek() (r rune, n int) {
	if c.at >= len(c.text) {
		return 0, 0
	}
	return c.nextRune()
}

// takeCharacter takes a character that is a word on its own, together with the parts that follow it.
func (c *Cutter) takeCharacter(r rune) {
	if to, ok := folds.fold(r); ok {
		r, _ = utf8.DecodeRuneInString(to)
	}
	for {
		next, n := c.peek()
		whole, ok := compose(r, next)
		if !ok && classOf(next) != ignored {
			break
		}
		if c.at += n; ok {
			r = whole
		}
	}
	c.put(r)
	c.Word.End = c.at
}
