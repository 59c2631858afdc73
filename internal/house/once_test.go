// What may be written only once, and where.

package house

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

const oncePath = "internal/house/once.txt"

// home is a line of once.txt: what may occur in some places only.
type home struct {
	line    int
	pattern *regexp.Regexp
	words   []string // what matches has one of these; none: it may have anything
	places  []string // files, folders, and folders with all below them ("internal/store/..."); none: it occurs nowhere
	what    string
}

// allows returns the places of a home that a file is in.
func (h *home) allows(f file) (all []string) {
	for _, place := range h.places {
		tree, whole := strings.CutSuffix(place, "...")
		if place == f.path || place == f.dir || whole && strings.HasPrefix(f.path, tree) {
			all = append(all, place)
		}
	}
	return all
}

// TestMechanismsHaveOneHome compares the Go source without comments with internal/house/once.txt. Tests, packages for
// tests and the simulator may write anything. A place that has nothing of its line any more leaves the list.
func TestMechanismsHaveOneHome(t *testing.T) {
	homes := readHomes(t)
	used := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test || strings.HasSuffix(f.dir, "test") || strings.HasPrefix(f.dir, "internal/slowapi") || f.dir == "internal/house" {
			continue
		}
		code := uncommented(t, f)
		for _, h := range homes {
			if len(h.words) > 0 && !slices.ContainsFunc(h.words, func(word string) bool { return bytes.Contains(code, []byte(word)) }) {
				continue
			}
			for _, at := range h.pattern.FindAllIndex(code, -1) {
				places := h.allows(f)
				for _, place := range places {
					used[fmt.Sprint(h.line, place)] = true
				}
				if len(places) == 0 {
					t.Errorf("%s:%d: %q may occur in [%s] only, by %s:%d: %s", f.path, 1+bytes.Count(code[:at[0]], []byte("\n")), code[at[0]:at[1]],
						strings.Join(h.places, ", "), oncePath, h.line, h.what)
				}
			}
		}
	}
	for _, h := range homes {
		for _, place := range h.places {
			if !used[fmt.Sprint(h.line, place)] {
				t.Errorf("%s:%d: %s has no %q: %s", oncePath, h.line, place, h.pattern, h.what)
			}
		}
	}
}

// readHomes reads lines of a pattern, its places and what it is, with tabs between them. A line that begins with # is
// a comment.
func readHomes(t *testing.T) (all []*home) {
	t.Helper()
	data, err := os.ReadFile(oncePath)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := slices.DeleteFunc(strings.Split(line, "\t"), func(s string) bool { return s == "" })
		if len(fields) != 3 {
			t.Fatalf("%s:%d: want a pattern, its places and what it is, with tabs between them", oncePath, i+1)
		}
		pattern, err := regexp.Compile(fields[0])
		if err != nil {
			t.Fatalf("%s:%d: %v", oncePath, i+1, err)
		}
		tree, err := syntax.Parse(fields[0], syntax.Perl)
		if err != nil {
			t.Fatalf("%s:%d: %v", oncePath, i+1, err)
		}
		all = append(all, &home{i + 1, pattern, wordsOf(tree), strings.Fields(strings.TrimPrefix(fields[1], "-")), fields[2]})
	}
	return all
}

// wordsOf returns texts of which each match of a pattern has at least one; nil: none is known.
func wordsOf(tree *syntax.Regexp) (words []string) {
	switch tree.Op {
	case syntax.OpLiteral:
		if tree.Flags&syntax.FoldCase == 0 {
			return []string{string(tree.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return wordsOf(tree.Sub[0])
	case syntax.OpConcat:
		shortest := func(words []string) int {
			return len(slices.MinFunc(words, func(a, b string) int { return len(a) - len(b) }))
		}
		for _, sub := range tree.Sub {
			if more := wordsOf(sub); more != nil && (words == nil || shortest(more) > shortest(words)) {
				words = more
			}
		}
	case syntax.OpAlternate:
		for _, sub := range tree.Sub {
			more := wordsOf(sub)
			if more == nil {
				return nil
			}
			words = append(words, more...)
		}
	}
	return words
}

// uncommented returns a file's source with spaces in place of its comments.
func uncommented(t *testing.T, f file) []byte {
	t.Helper()
	code, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			part := code[c.Pos()-f.ast.FileStart : c.End()-f.ast.FileStart]
			for i := range part {
				if part[i] != '\n' {
					part[i] = ' '
				}
			}
		}
	}
	return code
}
