// Tokenizer: cutting text into words in every script, and folding them.

// Package tokenizer cuts text into words, in every script, and finds words and
// phrases in it. Where a script puts no spaces between words (Chinese, Japanese,
// Korean, Thai, Lao, Khmer, Burmese) each character is a word, so that any part of a
// text is found as a phrase. It keeps no state; everything but a Cutter is safe
// for concurrent use.
package tokenizer

import (
	"iter"
	"unicode/utf8"
)

// MaxWord is how many bytes of a folded word tell it from others: what follows
// is left out, of the words of a text and of those that are looked for.
const MaxWord = 64

// Word is one word of a text.
type Word struct {
	// Folded is the word without case, diacritics and the like: lower-case
	// ASCII letters and digits, and characters beyond ASCII, at least one and at most MaxWord
	// bytes. It is valid until the next word is asked for.
	Folded     []byte
	Start, End int // its bytes in the text, marks that belong to it included
}

// Cut yields the words of a text in their order. Letters and digits that follow
// one another are a word, in their own script or mixed; anything else, invalid
// UTF-8 too, stands between words: an e-mail address, a URL, a hyphenated word
// are several, one right after the other. Cutting a word that Cut has folded
// gives the same word.
//
//   - case, diacritics, width and forms of letters are folded (folds.txt): É, é
//     and e are one, ß and ss, İ, ı and i, ς and σ, ё and е, ｶﾞ and ガ, the forms of alef;
//     harakat, niqqud, tatweel and what is invisible are dropped; the digits of
//     all scripts are 0 to 9
//   - vowel signs of Indic scripts belong to the word, the nukta is dropped
//   - an emoji is a word with all that is joined to it, but for its skin tone and
//     the choice of its rendering; so is a flag
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

// Fold are the folded words of a text as strings of their own.
func Fold(text string) []string {
	var all []string
	for w := range Cut(text) {
		all = append(all, string(w.Folded))
	}
	return all
}

// Cutter is Cut for many texts: it uses its memory again. The zero Cutter has no words.
// One goroutine at a time uses it.
type Cutter struct {
	Word  Word
	text  string
	at    int
	full  bool // the word has reached MaxWord
	looks int  // how often a character beyond ASCII was looked at: at most twice for each byte
}

// Reset begins a text.
func (c *Cutter) Reset(text string) {
	c.text, c.at, c.looks, c.Word.Folded = text, 0, 0, c.Word.Folded[:0]
}

// Next moves to the next word, false when there is none.
func (c *Cutter) Next() bool {
	c.Word.Folded, c.full = c.Word.Folded[:0], false
	for c.at < len(c.text) {
		if b := c.text[c.at]; b < utf8.RuneSelf {
			if !alnum[b] {
				c.at++
				continue
			}
			c.Word.Start = c.at
			c.letters()
			return true
		}
		r, n := c.look()
		c.Word.Start = c.at
		switch classOf(r) {
		case letter:
			c.letters()
			return true
		case single:
			c.at += n
			c.character(r)
			return true
		case symbol:
			if c.at += n; c.emoji(r) {
				return true
			}
		default:
			c.at += n
		}
	}
	return false
}

// alnum are ASCII letters and digits.
var alnum = func() (is [utf8.RuneSelf]bool) {
	for b := range is {
		is[b] = '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
	}
	return is
}()

// letters takes the letters and digits that follow; the first is there.
func (c *Cutter) letters() {
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
		r, n := c.look()
		if class := classOf(r); class != letter && class != silent {
			break
		}
		c.at += n
		c.fold(r)
	}
	c.Word.End = c.at
}

// fold appends what a character is folded to, as long as there is room.
func (c *Cutter) fold(r rune) {
	at, ok := folds.of(r)
	switch {
	case !ok:
		c.put(r)
	case len(at)+len(c.Word.Folded) > MaxWord || c.full:
		c.full = c.full || at != ""
	default:
		c.Word.Folded = append(c.Word.Folded, at...)
	}
}

// put appends a character as it is, as long as there is room.
func (c *Cutter) put(r rune) {
	if c.full || len(c.Word.Folded)+utf8.RuneLen(r) > MaxWord {
		c.full = true
		return
	}
	c.Word.Folded = utf8.AppendRune(c.Word.Folded, r)
}

// look is the next character; there is one.
func (c *Cutter) look() (r rune, n int) {
	c.looks++
	return utf8.DecodeRuneInString(c.text[c.at:])
}

// peek is the next character, 0 at the end.
func (c *Cutter) peek() (r rune, n int) {
	if c.at >= len(c.text) {
		return 0, 0
	}
	return c.look()
}

// character takes a character that is a word by itself, with the parts that
// follow it when it was written in parts.
func (c *Cutter) character(r rune) {
	if to, ok := folds.of(r); ok {
		r, _ = utf8.DecodeRuneInString(to)
	}
	for {
		next, n := c.peek()
		whole, ok := compose(r, next)
		if !ok && classOf(next) != silent {
			break
		}
		if c.at += n; ok {
			r = whole
		}
	}
	c.put(r)
	c.Word.End = c.at
}
