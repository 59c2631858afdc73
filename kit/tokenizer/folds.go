// Folds: what characters are folded to.

package tokenizer

import (
	_ "embed"
	"strconv"
	"strings"
	"unicode"
)

//go:embed folds.txt
var foldsText string

// folds is read once and never changed.
var folds = readFolds(foldsText)

// table is what characters are folded to: pages of 256, of which 0 is empty.
type table struct {
	pages [(unicode.MaxRune + 1) >> 8]uint16
	rows  [][256]uint16 // places in texts; 0: itself
	texts []string
}

// of is what a character is folded to; ok is false for itself.
func (t *table) of(r rune) (to string, ok bool) {
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

// readFolds reads the table; it panics when it is not one, which its test
// would find first.
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
					to += string(hex(part))
				}
			}
			for _, from := range f[2:] {
				t.put(hex(from), to)
			}
		default:
			t.span(f[0], f[1])
		}
	}
	t.digits()
	return t
}

// span reads a range of characters that are folded in step.
func (t *table) span(from, to string) {
	from, by, stepped := strings.Cut(from, "/")
	first, last, _ := strings.Cut(from, "-")
	step := rune(1)
	if stepped {
		step = hex(by)
	}
	for r := hex(first); r <= hex(last); r += step {
		if to == "-" {
			t.put(r, "")
			continue
		}
		t.put(r, string(hex(to)+r-hex(first)))
	}
}

// digits folds those of all scripts; they stand in tens.
func (t *table) digits() {
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

func hex(text string) rune {
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		panic("tokenizer: folds.txt: " + err.Error())
	}
	return rune(n)
}
