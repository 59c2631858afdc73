// Hits on terminals of every width.

package terminal

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
		{"a " + Bold + "word" + Plain + " b", 8, "a " + Bold + "word" + Plain + " b"},
		{"a " + Bold + "word" + Plain + " b", 7, "a " + Bold + "word…" + Plain},
		{"a " + Bold + "word" + Plain + " b", 5, "a " + Bold + "wo…" + Plain},
	} {
		if got := Shorten(c.text, c.width); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
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
		if got := Underline(c.before+c.wrong+c.after, len(c.before), len(c.before)+len(c.wrong)); got != c.want {
			t.Errorf("%.30q %q:\n%s\nwant\n%s", c.before, c.wrong, got, c.want)
		}
	}
}
