// Terminal: the width of a text on a terminal, and text that is safe to print.

// Package terminal computes how wide text is on a terminal, and makes text safe to print there.
package terminal

import (
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// The control sequences that begin and end bold text.
const Bold, Plain = "\x1b[1m", "\x1b[0m"

// maxContextColumns is how many columns of a long query are shown on each side of its wrong part.
const maxContextColumns = 36

// Underline returns a query, and a second line with carets below its bytes from at to end. Of a long query it shows
// only the part around these bytes.
func Underline(query string, at, end int) string {
	before, under, after := flattenSpaces(query[:at]), flattenSpaces(query[at:end]), flattenSpaces(query[end:])
	if over := Columns(before) - maxContextColumns; over > 0 {
		for over >= 0 {
			r, n := utf8.DecodeRuneInString(before)
			before, over = before[n:], over-runeColumns(r)
		}
		before = "…" + before
	}
	under = Shorten(under, maxContextColumns)
	return "  " + before + under + Shorten(after, maxContextColumns) + "\n  " + strings.Repeat(" ", Columns(before)) +
		strings.Repeat("^", max(Columns(under), 1))
}

// flattenSpaces replaces tabs and line ends in a text by spaces, and characters that cannot be printed by question marks.
func flattenSpaces(text string) string {
	return Printable(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text))
}

// Shorten cuts a text so that it is at most width columns wide. A text that was cut ends with an ellipsis.
func Shorten(text string, width int) string {
	if Columns(text) <= width {
		return text
	}
	at, end, used := 0, 0, 0 // the next byte, the number of bytes to keep, and the width of the text so far
	for at < len(text) {
		if n := styleLength(text[at:]); n > 0 {
			at += n
			continue
		}
		r, n := utf8.DecodeRuneInString(text[at:])
		if used += runeColumns(r); used > width-1 {
			break
		}
		at += n
		end = at
	}
	cut := text[:end]
	if strings.LastIndex(cut, Bold) > strings.LastIndex(cut, Plain) {
		return cut + "…" + Plain
	}
	return cut + "…"
}

// styleLength returns the length of the control sequence for bold or plain text at the beginning of a text. It
// returns 0 if there is none.
func styleLength(text string) int {
	for _, sign := range []string{Bold, Plain} {
		if strings.HasPrefix(text, sign) {
			return len(sign)
		}
	}
	return 0
}

// StripStyle removes the control sequences for bold and plain text.
func StripStyle(text string) string { return strings.NewReplacer(Bold, "", Plain, "").Replace(text) }

// Columns returns the number of columns that a text takes on a terminal.
func Columns(text string) (n int) {
	for _, r := range StripStyle(text) {
		n += runeColumns(r)
	}
	return n
}

// runeColumns returns the width of a character: 0 for combining marks, 2 for East Asian characters and emoji, otherwise 1.
func runeColumns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 &&
		r <= 0xfe6f,
		r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3ffff:
		return 2
	}
	return 1
}

// DefaultWidth is the assumed width in columns of a terminal whose width is not known.
const DefaultWidth = 80

// Width returns the width of a terminal in columns. It returns 0 if w is not a terminal.
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// IsTerminal reports whether w is a terminal or another character device.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Printable replaces characters that could control a terminal by question marks. Text from a provider must go through it.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
