// Documents are read in parts: no paragraph is longer than a screen of a phone.

package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// longestParagraph is in characters. What is longer becomes paragraphs, a list or a table.
const longestParagraph = 500

var (
	codeBlock = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```")
	blankLine = regexp.MustCompile(`\n\s*\n`)
	listItem  = regexp.MustCompile(`(?m)^\s*(?:[-*+]|\d+[.)]) `)
)

func TestParagraphsAreShort(t *testing.T) {
	pages, err := filepath.Glob("docs/*/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages in docs: %v", len(pages), err)
	}
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md", "docs/measuring.md", "CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blankLine.Split(codeBlock.ReplaceAllString(string(text), ""), -1) {
			for _, paragraph := range listItem.Split(block, -1) {
				paragraph = strings.TrimSpace(paragraph)
				table := strings.HasPrefix(paragraph, "|") || strings.Contains(paragraph, "\n|")
				if n := utf8.RuneCountInString(paragraph); n > longestParagraph && !table {
					t.Errorf("%s: a paragraph has %d characters, at most %d: %.60s", page, n, longestParagraph, paragraph)
				}
			}
		}
	}
}
