// Search table: hits as lines that fit a terminal.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// hitRow is a hit on a terminal.
type hitRow struct{ at, kind, id, what string }

// How words are set off.
const bold, plain = "\x1b[1m", "\x1b[0m"

// leastWhat is how much room, in columns, what a hit says must have beside its
// name; where there is less it stands on a line of its own.
const leastWhat, indent = 32, "    "

// printRows writes rows in columns, each no wider than a terminal; width 0: as
// wide as they are.
func printRows(out io.Writer, rows []hitRow, width int) {
	var at, kind, id int
	for _, r := range rows {
		at, kind, id = max(at, columnsOf(r.at)), max(kind, columnsOf(r.kind)), max(id, columnsOf(r.id))
	}
	room := width - (at + kind + id + 3*2)
	for _, r := range rows {
		name := padded(r.at, at) + "  " + padded(r.kind, kind) + "  "
		switch {
		case width == 0:
			fmt.Fprintln(out, name+padded(r.id, id)+"  "+r.what)
		case room >= leastWhat:
			fmt.Fprintln(out, name+padded(r.id, id)+"  "+fitted(r.what, room))
		default:
			lines := []string{name + r.id, r.what}
			if columnsOf(lines[0]) > width { // an id that is cut short is none
				lines = []string{strings.TrimRight(name, " "), r.id, r.what}
			}
			before := ""
			for _, line := range lines {
				if line != "" {
					fmt.Fprintln(out, before+fitted(line, width-len(before)))
				}
				before = indent
			}
		}
	}
}

// mostBeside is how much of a long query stands before and behind the place that
// is wrong, in columns.
const mostBeside = 36

// underlined is a query as a line, and below it carets under its bytes from at to
// end. Of a long one only what stands around them is shown.
func underlined(query string, at, end int) string {
	before, under, after := plainSpaces(query[:at]), plainSpaces(query[at:end]), plainSpaces(query[end:])
	if over := columnsOf(before) - mostBeside; over > 0 {
		for over >= 0 {
			r, n := utf8.DecodeRuneInString(before)
			before, over = before[n:], over-columnOf(r)
		}
		before = "…" + before
	}
	under = fitted(under, mostBeside)
	return "  " + before + under + fitted(after, mostBeside) + "\n  " + strings.Repeat(" ", columnsOf(before)) +
		strings.Repeat("^", max(columnsOf(under), 1))
}

// plainSpaces is a text on one line: tabs and line ends are spaces, what cannot be
// printed is marked.
func plainSpaces(text string) string {
	return printable(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text))
}

func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(width-columnsOf(text), 0))
}

// fitted is a text cut to so many columns, with an ellipsis where it was cut.
func fitted(text string, width int) string {
	if columnsOf(text) <= width {
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
	if strings.LastIndex(cut, bold) > strings.LastIndex(cut, plain) {
		return cut + "…" + plain
	}
	return cut + "…"
}

// escape is how long the sign for bold or plain is that a text begins with.
func escape(text string) int {
	for _, sign := range []string{bold, plain} {
		if strings.HasPrefix(text, sign) {
			return len(sign)
		}
	}
	return 0
}

// columnsOf is how many columns of a terminal a text takes.
func columnsOf(text string) (n int) {
	for _, r := range strings.NewReplacer(bold, "", plain, "").Replace(text) {
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

// row is a hit as a line of a table: when, what, and where the words were found
// or else what it says.
func (h *found) row(columns []string) hitRow {
	row := hitRow{kind: printable(h.Kind), id: printable(h.ID)}
	if h.Clock != 0 {
		row.at = h.Clock.Time().Local().Format(time.DateTime)
	}
	if len(h.Snippets) > 0 {
		s := h.Snippets[0]
		row.what = marked(s.Text, s.Marks)
		if s.Before {
			row.what = "…" + row.what
		}
		if s.After {
			row.what += "…"
		}
		row.what = printable(s.Field) + ": " + row.what
	} else {
		var values map[string]json.RawMessage
		_ = json.Unmarshal(h.Body, &values) // what is no object shows nothing
		var parts []string
		for _, name := range columns {
			var text string
			if raw := values[name]; json.Unmarshal(raw, &text) != nil && !bytes.Equal(raw, []byte("null")) {
				text = string(raw)
			}
			if text != "" {
				parts = append(parts, short(printable(text)))
			}
		}
		row.what = strings.Join(parts, "  ")
	}
	return row
}

// shortest is how long a value in a table is, in characters.
const shortest = 80

func short(text string) string {
	if r := []rune(text); len(r) > shortest {
		return string(r[:shortest]) + "…"
	}
	return text
}

// marked is a snippet with its words in bold.
func marked(text string, marks [][2]int) string {
	var b strings.Builder
	at := 0
	for _, m := range marks {
		if m[0] < at || m[1] < m[0] || m[1] > len(text) {
			continue
		}
		b.WriteString(printable(text[at:m[0]]) + bold + printable(text[m[0]:m[1]]) + plain)
		at = m[1]
	}
	b.WriteString(printable(text[at:]))
	return b.String()
}

// widthOf is how many columns a terminal has, 0 when that is not known.
func widthOf(w io.Writer) int {
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

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
