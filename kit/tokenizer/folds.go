// Folds: the table that maps characters to their folded form.

package tokenizer

import (
	_ "embed"
	"strconv"
	"strings"
	"unicode"
)

//go:embed folds.txt
var foldsText string

// folds is the table of folded characters. It is built once and never changes.
var folds = readFolds(foldsText)

// table maps characters to their folded form, in pages of 256 characters. Page 0 has no entries.
type table struct {
	pages [(unicode.MaxRune + 1) >> 8]uint16
	rows  [][256]uint16 // indexes into texts; 0 means that the character stays as it is
	texts []string
}

// fold returns the folded form of a character. ok is false if the character stays as it is.
func (t *table) fold(r rune) (to string, ok bool) {
	if uint32(r) > unicode.MaxRune {
		return "", false
	}
	n := t.rows[t.pages[r>>8]][r&0xff]
	return t.texts[n], n != 0
}

func (t *table) put(r rune, to string) {
	if t.pages[r>>8] == 0 {
		t.rows = append(t.rows, [256]uint16{})
		t.pages[r>>8] = uint16(len(t.rows) - 1)
	}
	n := len(t.texts)
	if t.texts[n-1] == to && n > 1 {
		n--
	} else {
		t.texts = append(t.texts, to)
	}
	t.rows[t.pages[r>>8]][r&0xff] = uint16(n)
}

// readFolds parses the table. It panics if the text is invalid, which a test would find.
func readFolds(text string) *table {
	t := &table{rows: make([][256]uint16, 1), texts: make([]string, 1)}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case f[0] == "#":
		case f[0] == "=":
			for _, r := range f[2] {
				t.put(r, f[1])
			}
		case f[0] == "+":
			to := ""
			if f[1] != "-" {
				for part := range strings.SplitSeq(f[1], ".") {
					to += string(parseHex(part))
				}
			}
			for _, from := range f[2:] {
				t.put(parseHex(from), to)
			}
		default:
			t.addRange(f[0], f[1])
		}
	}
	t.addDigits()
	return t
}

// addRange adds a range of characters whose folded forms also form a range.
func (t *table) addRange(from, to string) {
	from, by, stepped := strings.Cut(from, "/")
	first, last, _ := strings.Cut(from, "-")
	step := rune(1)
	if stepped {
		step = parseHex(by)
	}
	for r := parseHex(first); r <= parseHex(last); r += step {
		if to == "-" {
			t.put(r, "")
			continue
		}
		t.put(r, string(parseHex(to)+r-parseHex(first)))
	}
}

// addDigits adds the digits of all scripts, which Unicode arranges in groups of ten.
func (t *table) addDigits() {
	digit := func(first, last rune) {
		for r := first; r <= last; r++ {
			if r >= 0x80 {
				t.put(r, strconv.Itoa(int(r-first)%10))
			}
		}
	}
	for _, s := range unicode.Nd.R16 {
		digit(rune(s.Lo), rune(s.Hi))
	}
	for _, s := range unicode.Nd.R32 {
		digit(rune(s.Lo), rune(s.Hi))
	}
}

func parseHex(text string) rune {
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		panic("tokenizer: folds.txt: " + err.Error())
	}
	return rune(n)
}
