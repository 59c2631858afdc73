// Package csvline writes lines of CSV whose cells no spreadsheet takes for formulas.
package csvline

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Append appends one line of CSV (RFC 4180), its end included. An empty cell that is alone is
// in quotes, so that the line is none.
func Append(dst []byte, cells []string) []byte {
	for i, cell := range cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		if !strings.ContainsAny(cell, ",\"\r\n") && strings.TrimSpace(cell) == cell && (cell != "" || len(cells) > 1) {
			dst = append(dst, cell...)
			continue
		}
		dst = append(dst, '"')
		dst = append(dst, strings.ReplaceAll(cell, `"`, `""`)...)
		dst = append(dst, '"')
	}
	return append(dst, "\r\n"...)
}

// Harmless is a text that no spreadsheet takes for a formula: one that begins
// like one, after anything that is not seen, gets an apostrophe before it, which
// they show as text; so does what stands behind a semicolon, a tab or a line's
// end, where some begin a cell. A sign before nothing but digits is a number
// (+15551234567, -0.0075) and stays.
func Harmless(text string) string {
	var b strings.Builder
	if text != "" && text[0] < ' ' {
		b.WriteByte('\'')
	}
	for text != "" {
		end := strings.IndexAny(text, separators) + 1
		if end == 0 {
			end = len(text)
		}
		if startsFormula(strings.TrimLeftFunc(text[:end], unseen)) {
			b.WriteByte('\'')
		}
		b.WriteString(text[:end])
		text = text[end:]
	}
	return b.String()
}

// separators are what some spreadsheets part cells and lines at.
const separators = ";\t\r\n"

// unseen reports whether a character takes no ink.
func unseen(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.C, r) }

// formulas are what formulas begin with, in each width they are known in.
const formulas = "=+-@|%＝＋－＠｜％﹦﹢﹣﹫﹪−"

// startsFormula reports whether a cell begins like a formula and is no number.
func startsFormula(cell string) bool {
	first, size := utf8.DecodeRuneInString(cell)
	if size == 0 || !strings.ContainsRune(formulas, first) {
		return false
	}
	return first != '+' && first != '-' || !isPlainNumber(strings.TrimRight(cell[1:], separators))
}

func isPlainNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789.") == "" && strings.Count(text, ".") <= 1 && text != "."
}
