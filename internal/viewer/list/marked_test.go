package list

import (
	"html"
	"html/template"
	"strings"
	"testing"

	"understudy/internal/query"
)

// Marks keep to their text, whatever they say, and everything is escaped.
func FuzzMarked(f *testing.F) {
	f.Add("a <b> & c", 2, 5, 6, 7)
	f.Add("äöü", 1, 2, 3, 4)
	f.Fuzz(func(t *testing.T, text string, a, b, c, d int) {
		got := string(highlight(query.SearchSnippet{Text: text, Marks: [][2]int{{a, b}, {c, d}}}))
		plain := strings.NewReplacer("<mark>", "", "</mark>", "").Replace(got)
		if strings.ContainsAny(plain, "<>\"'") || strings.Count(got, "<mark>") != strings.Count(got, "</mark>") {
			t.Fatalf("%q: %q", text, got)
		}
		want := strings.ReplaceAll(text, "\x00", "\uFFFD")
		if html.UnescapeString(plain) != html.UnescapeString(template.HTMLEscapeString(want)) {
			t.Fatalf("%q became %q", text, plain)
		}
	})
}
