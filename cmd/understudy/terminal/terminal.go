// Text on a terminal: its columns, cut, padded and safe to print.

// Package terminal measures text in columns of a terminal and makes it safe to print there.
package terminal

import (
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// How words are set off.
const Bold, Plain = "\x1b[1m", "\x1b[0m"

// mostBeside is how much of a long query stands before and behind the place that
// is wrong, in columns.
const mostBeside = 36

// Underlined is a query as a line, and below it carets under its bytes from at to
// end. Of a long one only what stands around them is shown.
func Underlined(query string, at, end int) string {
	before, under, after := plainSpaces(query[:at]), plainSpaces(query[at:end]), plainSpaces(query[end:])
	if over := Columns(before) - mostBeside; over > 0 {
		for over >= 0 {
			r, n := utf8.DecodeRuneInString(before)
			before, over = before[n:], over-columnOf(r)
		}
		before = "…" + before
	}
	under = Fitted(under, mostBeside)
	return "  " + before + under + Fitted(after, mostBeside) + "\n  " + strings.Repeat(" ", Columns(before)) +
		strings.Repeat("^", max(Columns(under), 1))
}

// plainSpaces is a text on one line: tabs and line ends are spaces, what cannot be
// printed is marked.
func plainSpaces(text string) string {
	return Printable(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text))
}

// Fitted is a text cut to so many columns, with an ellipsis where it was cut.
func Fitted(text string, width int) string {
	if Columns(text) <= width {
		return text
	}
	at, end, used := 0, 0, 0 // where it is cut, and what came before
	for at < len(text) {
		if n := escape(text[at:]); n > 0 {
			at += n
			continue
		}
		r, n := utf8.DecodeRuneInString(text[at:])
		if used += columnOf(r); used > width-1 {
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

// escape is how long the sign for bold or plain is that a text begins with.
func escape(text string) int {
	for _, sign := range []string{Bold, Plain} {
		if strings.HasPrefix(text, sign) {
			return len(sign)
		}
	}
	return 0
}

// StripStyle returns a text without the signs for bold and plain.
func StripStyle(text string) string { return strings.NewReplacer(Bold, "", Plain, "").Replace(text) }

// Columns returns the number of columns that a text takes on a terminal.
func Columns(text string) (n int) {
	for _, r := range StripStyle(text) {
		n += columnOf(r)
	}
	return n
}

// columnOf is one, none for marks on the character before, two for those of
// East Asia and emoji.
func columnOf(r rune) int {
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

// DefaultWidth is the number of columns of a terminal whose width is not known.
const DefaultWidth = 80

// Width is how many columns a terminal has, 0 when that is not known.
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

func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Printable keeps what upstream wrote from steering a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
