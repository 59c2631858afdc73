// Documents of the tree.

package rig

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// ReadFile returns the text of a file.
func ReadFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Block is one fenced part of a page.
type Block struct {
	Language string
	Lines    []string
}

// Text returns the lines of a block as one text.
func (b Block) Text() string { return strings.Join(b.Lines, "\n") + "\n" }

// ReadBlocks returns the fenced parts of a page.
func ReadBlocks(t testing.TB, page string) []Block {
	t.Helper()
	f, err := os.Open(page)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []Block
	inside := false
	for in := bufio.NewScanner(f); in.Scan(); {
		language, fence := strings.CutPrefix(in.Text(), "```")
		switch {
		case fence && !inside:
			all = append(all, Block{Language: language})
			inside = true
		case fence:
			inside = false
		case inside:
			all[len(all)-1].Lines = append(all[len(all)-1].Lines, in.Text())
		}
	}
	if inside {
		t.Errorf("%s: a fence is not closed", page)
	}
	return all
}
