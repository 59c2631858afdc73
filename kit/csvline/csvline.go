// Package csvline writes lines of CSV. It can also prevent spreadsheets from reading a cell as a formula.
package csvline

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Append appends one line of CSV (RFC 4180), with its line end. If the only cell of a line is empty, it is
// quoted, because an empty line would have no cell.
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

// EscapeFormulas returns a text that no spreadsheet reads as a formula. It puts an apostrophe before a text
// that begins like a formula, after any invisible characters; spreadsheets then show it as text. It does the
// same after a semicolon, a tab or a line end, where some spreadsheets begin a new cell. A sign followed only
// by digits is a number (+15551234567, -0.0075) and stays unchanged.
func EscapeFormulas(text string) string {
	var b strings.Builder
	if text != "" && text[0] < ' ' {
		b.WriteByte('\'')
	}
	for text != "" {
		end := cmp.Or(strings.IndexAny(text, separators)+1, len(text))
		if isFormula(strings.TrimLeftFunc(text[:end], isInvisible)) {
			b.WriteByte('\'')
		}
		b.WriteString(text[:end])
		text = text[end:]
	}
	return b.String()
}

// separators are the characters at which some spreadsheets begin a new cell or line.
const separators = ";\t\r\n"

// isInvisible reports whether a character is white space, a control or a format character.
func isInvisible(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.C, r) }

// formulaStarts are the characters that a formula may begin with, in all their width variants.
const formulaStarts = "=+-@|%＝＋－＠｜％﹦﹢﹣﹫﹪−"

// isFormula reports whether a cell begins like a formula and is not a number.
func isFormula(cell string) bool {
	first, size := utf8.DecodeRuneInString(cell)
	if size == 0 || !strings.ContainsRune(formulaStarts, first) {
		return false
	}
	return first != '+' && first != '-' || !isPlainNumber(strings.TrimRight(cell[1:], separators))
}

func isPlainNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789.") == "" && strings.Count(text, ".") <= 1 && text != "."
}
