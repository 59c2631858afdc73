package csvline

import (
	"encoding/csv"
	"strings"
	"testing"

	"understudy/internal/checktest"
)

// No cell of a CSV is a formula; what is only a number stays one.
func TestHarmless(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "hello": "hello", "+15551234567": "+15551234567", "-0.0075": "-0.0075", "-": "'-", "+": "'+", "-1-1": "'-1-1", "+1+1": "'+1+1",
		"1.2.3": "1.2.3", "-1.2.3": "'-1.2.3",
		"=1+1": "'=1+1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t'=1", " =1": "' =1", "\r=1": "'\r'=1", "\n=1": "'\n'=1", "＝1": "'＝1",
		"|cmd": "'|cmd", "%0A": "'%0A", "+1 555": "'+1 555", "a=1": "a=1", "\u00a0=1": "'\u00a0=1",
		"********1234": "********1234", "\x00=1": "''\x00=1", "\ufeff=1": "'\ufeff=1",
		// L9: white space and format characters of every kind, other widths, other separators.
		"\u2003=1": "'\u2003=1", "\u200b=1": "'\u200b=1", "\u2060\u3000@x": "'\u2060\u3000@x", "\ufe66=1": "'\ufe66=1", "\u22121": "'\u22121",
		"x;=1+1": "x;'=1+1", "x\t=1": "x\t'=1", "x; \u200b@y": "x;' \u200b@y", "a;b": "a;b", "x;-5;+1;-a": "x;-5;+1;'-a", "x\r\n=1": "x\r\n'=1",
		"+1;=1": "+1;'=1", "https://x/?a=1;b=2": "https://x/?a=1;b=2",
	} {
		if got := EscapeFormulas(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// FuzzRecord: whatever the cells, a reader finds them again, and none of them
// begins like a formula.
func FuzzRecord(f *testing.F) {
	for _, s := range []string{"", "=1", "a,b", "\"", "a\r\nb", " x ", "+1", "\x00", "'="} {
		f.Add(s, "x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		cells := []string{EscapeFormulas(a), EscapeFormulas(b)}
		for _, c := range cells {
			for _, part := range strings.FieldsFunc(c, func(r rune) bool { return strings.ContainsRune(";\t\r\n", r) }) {
				if s := strings.TrimLeftFunc(part, isInvisible); s != "" && strings.ContainsRune("=@", []rune(s)[0]) {
					t.Fatalf("%q", c)
				}
			}
		}
		got, err := csv.NewReader(strings.NewReader(string(Append(nil, cells)))).Read()
		norm := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") } // as the reader has it
		checktest.MustNoError(t, err, "%q became %q", cells, got)
		checktest.MustEqual(t, len(got), 2, "%q became %q: len(got)", cells, got)
		checktest.MustEqual(t, got[0], norm(cells[0]), "%q became %q: got[0]", cells, got)
		checktest.MustEqual(t, got[1], norm(cells[1]), "%q became %q: got[1]", cells, got)
	})
}
