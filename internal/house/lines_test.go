// The size of the product: its lines and tokens of Go.

package house

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const linesPath = "internal/house/lines.txt"

var reportLines = flag.Bool("lines", false, "print the lines and tokens of Go in each part")

// size is how much Go there is. Folding lines saves no tokens.
type size struct{ files, lines, tokens int }

func (s *size) add(more size) {
	s.files, s.lines, s.tokens = s.files+more.files, s.lines+more.lines, s.tokens+more.tokens
}

// TestTheProductStaysBelowItsCeiling counts every Go file without tests of every module but bench, e2e and tools.
// Packages for tests and generated files do not count. lines.txt has the ceiling: each issue lowers it, or raises it
// by its budget at most.
func TestTheProductStaysBelowItsCeiling(t *testing.T) {
	text, err := os.ReadFile(linesPath)
	if err != nil {
		t.Fatal(err)
	}
	ceiling, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatalf("%s: want one number: %v", linesPath, err)
	}
	var product size
	aside, parts := map[string]*size{}, map[string]*size{}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		n := measure(t, f.path)
		switch where := part(f.dir); {
		case ast.IsGenerated(f.ast):
			addTo(aside, "generated files", n)
		case strings.HasSuffix(f.dir, "test"):
			addTo(aside, "packages for tests", n)
		default:
			product.add(n)
			addTo(parts, where, n)
		}
	}
	if *reportLines {
		fmt.Print(table(parts, aside, product))
	}
	if product.lines > ceiling {
		t.Errorf("the product has %d lines of Go, %s allows %d: delete before you add (make lines)", product.lines, linesPath, ceiling)
	}
}

// measure counts the lines and tokens of a file.
func measure(t *testing.T, name string) size {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	n := size{files: 1, lines: strings.Count(string(data), "\n")}
	fset := token.NewFileSet()
	var s scanner.Scanner
	s.Init(fset.AddFile(name, -1, len(data)), data, nil, 0)
	for _, tok, text := s.Scan(); tok != token.EOF; _, tok, text = s.Scan() {
		if tok != token.SEMICOLON || text == ";" { // the others are ends of lines
			n.tokens++
		}
	}
	return n
}

// part returns the part of the tree that a folder is counted with: itself, or the folder of internal, kit or cmd above it.
func part(dir string) string {
	names := strings.Split(dir, "/")
	if slices.Contains([]string{"internal", "kit", "cmd"}, names[0]) {
		return path.Join(names[:min(len(names), 2)]...)
	}
	return names[0]
}

func addTo(sizes map[string]*size, name string, n size) {
	if sizes[name] == nil {
		sizes[name] = &size{}
	}
	sizes[name].add(n)
}

// table returns the parts, the largest first, and their sum.
func table(parts, aside map[string]*size, product size) string {
	var b strings.Builder
	row := func(name string, n size) { fmt.Fprintf(&b, "%-24s %6d %8d %9d\n", name, n.files, n.lines, n.tokens) }
	fmt.Fprintf(&b, "%-24s %6s %8s %9s\n", "Go without tests", "files", "lines", "tokens")
	byLines := slices.SortedFunc(maps.Keys(parts), func(x, y string) int {
		return cmp.Or(cmp.Compare(parts[y].lines, parts[x].lines), cmp.Compare(x, y))
	})
	for _, name := range byLines {
		row(name, *parts[name])
	}
	row("the product", product)
	for _, name := range slices.Sorted(maps.Keys(aside)) {
		row("beside it: "+name, *aside[name])
	}
	return b.String()
}
