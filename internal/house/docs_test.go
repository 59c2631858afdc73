// Documents are read in parts: no paragraph is longer than a screen of a phone.

package house

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// TestTheChangelogIsForUsers allows a section of at most 120 lines for each version, with the parts of
// https://keepachangelog.com, whose lines name no package.
func TestTheChangelogIsForUsers(t *testing.T) {
	parts := []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
	versions := strings.Split(readFile(t, "CHANGELOG.md"), "\n## ")[1:]
	if len(versions) == 0 {
		t.Error("CHANGELOG.md names no version")
	}
	for _, v := range versions {
		name, text, _ := strings.Cut(v, "\n")
		if n := strings.Count(text, "\n"); n > 120 {
			t.Errorf("CHANGELOG.md: %s has %d lines, at most 120", name, n)
		}
		for _, m := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(text, -1) {
			if !slices.Contains(parts, m[1]) {
				t.Errorf("CHANGELOG.md: %s has a part %q, which is none of %v", name, m[1], parts)
			}
		}
		if m := regexp.MustCompile(`(?m)^- ([a-z]+(?:/[a-z]+)*): |internal/`).FindString(text); m != "" {
			t.Errorf("CHANGELOG.md: %s names a package: %q", name, m)
		}
	}
}

// TestTheRootFolderIsShort allows at most 30 files beside the README.
func TestTheRootFolderIsShort(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.IsDir() || e.Name() == ".git" })
	if len(files) > 30 {
		t.Errorf("the root folder has %d files, at most 30: %v", len(files), files)
	}
}
