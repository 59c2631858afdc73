// Hits on terminals of every width.

package main

import (
	"strings"
	"testing"
)

func TestFitted(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"short", 5, "short"},
		{"shorter", 5, "shor…"},
		{"", 0, ""},
		{"x", 0, "…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"e\u0301te\u0301", 3, "e\u0301te\u0301"},
		{"a " + bold + "word" + plain + " b", 8, "a " + bold + "word" + plain + " b"},
		{"a " + bold + "word" + plain + " b", 7, "a " + bold + "word…" + plain},
		{"a " + bold + "word" + plain + " b", 5, "a " + bold + "wo…" + plain},
	} {
		if got := fitted(c.text, c.width); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestRowsFit(t *testing.T) {
	rows := []hitRow{
		{"2026-06-01 12:00:00", "messages", "SM0123456789abcdef0123456789abcdef", "body: " + bold + "late" + plain +
			strings.Repeat(" and later", 20)},
		{"", "participants", "CF0123456789abcdef0123456789abcdef~CA0123456789abcdef0123456789abcdef", ""},
	}
	for _, width := range []int{0, 1, 40, 80, 120, 132, 200} {
		var out strings.Builder
		printRows(&out, rows, width)
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		for _, line := range lines {
			if n := columnsOf(line); width > 0 && n > max(width, len(indent)+1) {
				t.Errorf("%d columns in %d: %q", n, width, line)
			}
		}
		if want := map[int]int{0: 2, 1: 5, 40: 5, 80: 4, 120: 3, 132: 3, 200: 2}[width]; len(lines) != want {
			t.Errorf("%d lines in %d columns, want %d:\n%s", len(lines), width, want, out.String())
		}
		for _, r := range rows {
			if width >= 80 && !strings.Contains(out.String(), r.id) {
				t.Errorf("in %d columns %s is cut:\n%s", width, r.id, out.String())
			}
		}
		if strings.Count(out.String(), bold) != strings.Count(out.String(), plain) {
			t.Errorf("in %d columns bold does not end: %q", width, out.String())
		}
	}
}

func TestUnderlined(t *testing.T) {
	long := strings.Repeat("word ", 100)
	for _, c := range []struct {
		before, wrong, after string
		want                 string
	}{
		{"kind:calls ", "stauts", ":failed", "  kind:calls stauts:failed\n             ^^^^^^"},
		{"", "", "", "  \n  ^"},
		{"a", "", "", "  a\n   ^"},
		{"😀日本 ", "stauts", ":x", "  😀日本 stauts:x\n         ^^^^^^"},
		{"x ", "状態", ":x", "  x 状態:x\n    ^^^^"},
		{"e\u0301 ", "(", "b", "  e\u0301 (b\n    ^"},
		{"a\tb\r\nc ", "(", "d\ne", "  a b  c (d e\n         ^"},
		{"\x1b ", "(", "", "  ? (\n    ^"},
		{long, "(", long, "  …" + strings.Repeat("word ", 7) + "(" + strings.Repeat("word ", 7) + "…\n" + strings.Repeat(" ", 38) + "^"},
	} {
		if got := underlined(c.before+c.wrong+c.after, len(c.before), len(c.before)+len(c.wrong)); got != c.want {
			t.Errorf("%.30q %q:\n%s\nwant\n%s", c.before, c.wrong, got, c.want)
		}
	}
}
