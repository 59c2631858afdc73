// Hits on terminals of every width.

package main

import (
	"strings"
	"testing"

	"understudy/cmd/understudy/terminal"
)

func TestRowsFit(t *testing.T) {
	rows := []hitRow{
		{"2026-06-01 12:00:00", "messages", "SM0123456789abcdef0123456789abcdef", "body: " + terminal.Bold + "late" + terminal.Plain +
			strings.Repeat(" and later", 20)},
		{"", "participants", "CF0123456789abcdef0123456789abcdef~CA0123456789abcdef0123456789abcdef", ""},
	}
	for _, width := range []int{0, 1, 40, 80, 120, 132, 200} {
		var out strings.Builder
		printRows(&out, rows, width)
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		for _, line := range lines {
			if n := terminal.Columns(line); width > 0 && n > max(width, len(textIndent)+1) {
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
		if strings.Count(out.String(), terminal.Bold) != strings.Count(out.String(), terminal.Plain) {
			t.Errorf("in %d columns bold does not end: %q", width, out.String())
		}
	}
}
