// The house rules of size: files a folder, methods a type, fields a struct,
// columns a line, bytes a file, lines of tests beside a package. internal/house/sizes.txt lists what is over today.

package house

import (
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	mostFiles   = 20  // Go files without tests in a folder
	mostMethods = 40  // of a type, promoted ones among them
	mostFields  = 20  // of a struct that is no options, no settings and no wire shape
	mostColumns = 140 // of a line; a tab is one
	mostBytes   = 256 << 10

	testedLines = 200 // a package with more lines than this has tests beside it:
	minTested   = 15  // test lines for each hundred lines of the package
)

const overPath = "internal/house/sizes.txt"

var writeSizes = flag.Bool("sizes", false, "write "+overPath+" anew")

// over is what breaks a rule: "files mirror" has 41, for example.
type over map[string]int

// add notes n when it is more than the rule allows.
func (o over) add(n, most int, rule, what string) {
	if n > most {
		o[rule+" "+what] = n
	}
}

// structs of these names hold options, settings or figures.
var shape = regexp.MustCompile(`(?i)(Options|Settings|Config|Limits|Stats)$`)

// nouns are domain types that are as wide as what they name, each with the reason
// why no part of it is a type of its own.
var nouns = map[string]string{
	"..Job":  "a row of the job queue: what is promised, and how its runs went",
	"..Page": "one answer of upstream, as the store keeps it",
}

// sizesOf measures the Go files.
func sizesOf(t *testing.T, files []file) over {
	found, perDir, names := over{}, map[string]int{}, map[string]int{}
	ownersOf(files).measure(found)
	for _, f := range files {
		if !ast.IsGenerated(f.ast) {
			found.add(longLines(t, f.path), 0, "columns", f.path)
		}
		if f.test {
			continue
		}
		perDir[f.dir]++
		names[f.dir+"/"+stem(strings.TrimSuffix(path.Base(f.path), ".go"))]++
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				for _, spec := range d.Specs {
					fieldsOf(found, f.dir, spec)
				}
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if a, ok := n.(*ast.TypeAssertExpr); ok {
				if _, anonymous := a.Type.(*ast.InterfaceType); anonymous {
					found["assertions "+f.path]++
				}
			}
			return true
		})
	}
	for noun := range nouns {
		delete(found, "fields "+noun)
	}
	for dir, n := range perDir {
		found.add(n, mostFiles, "files", dir)
	}
	for name, n := range names {
		found.add(n, 1, "names", name)
	}
	addUntested(t, found, files)
	return found
}

// addUntested lists the packages that have too few lines of tests in their folder.
func addUntested(t *testing.T, found over, files []file) {
	product, tests := map[string]int{}, map[string]int{}
	for _, f := range files {
		switch n := measure(t, f.path).lines; {
		case f.test:
			tests[f.dir] += n
		case !ast.IsGenerated(f.ast) && !strings.HasSuffix(f.dir, "test"):
			product[f.dir] += n
		}
	}
	for dir, n := range product {
		if n > testedLines && 100*tests[dir] < minTested*n {
			found["untested "+dir] = 1
		}
	}
}

func longLines(t *testing.T, path string) (n int) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > mostColumns {
			n++
		}
	}
	return n
}

// fieldsOf counts the fields of a struct without tags.
func fieldsOf(found over, dir string, spec ast.Spec) {
	typ, ok := spec.(*ast.TypeSpec)
	if !ok || shape.MatchString(typ.Name.Name) {
		return
	}
	s, ok := typ.Type.(*ast.StructType)
	if !ok || slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool { return f.Tag != nil }) {
		return
	}
	n := 0
	for _, f := range s.Fields.List {
		n += max(len(f.Names), 1)
	}
	found.add(n, mostFields, "fields", dir+"."+typ.Name.Name)
}

// A noun is a domain type that is over the limit, and stands at the bottom of the
// table of imports.
func TestNounsAreDomainTypes(t *testing.T) {
	fields := over{}
	for _, f := range goFiles(t) {
		domain := slices.Contains([]string{".", "spec", "spec/paging", "request", "internal/query"}, f.dir)
		for _, decl := range f.ast.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && domain && !f.test {
				for _, spec := range d.Specs {
					fieldsOf(fields, f.dir, spec)
				}
			}
		}
	}
	for noun := range nouns {
		if fields["fields "+noun] == 0 {
			t.Errorf("%s is no domain type of more than %d fields", noun, mostFields)
		}
	}
}

// receiver is the name of a method's type.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// forms are verbs whose forms do not share an ending.
var forms = map[string]string{
	"found": "find", "held": "hold", "sought": "seek", "made": "make", "sent": "send", "built": "build", "kept": "keep", "told": "tell",
	"shown": "show", "bound": "bind", "written": "write", "wrote": "write", "stood": "stand", "spread": "spread",
}

var ending = regexp.MustCompile(`(ings?|ers?|ors?|ed|es|e|s|d)$`)

// stem is a file's name without the ending of its word: find, finder and found
// are one.
func stem(name string) string {
	if base, ok := forms[name]; ok {
		name = base
	}
	if cut := ending.ReplaceAllString(name, ""); len(cut) >= 3 {
		return cut
	}
	return name
}

// The list of what is over may only get shorter. A file that moves takes its
// line along: go test -run TestSizes . -sizes
func TestSizes(t *testing.T) {
	found, listed := sizesOf(t, goFiles(t)), readOver(t)
	if *writeSizes {
		writeOver(t, found)
		return
	}
	for _, what := range slices.Sorted(maps.Keys(found)) {
		if most := listed[what]; found[what] > most {
			t.Errorf("%s: %d, and %s allows %d (a file that moved takes its line along: -sizes)", what, found[what], overPath, most)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(listed)) {
		if found[what] < listed[what] {
			t.Errorf("%s: %d now; write %s anew: go test -run TestSizes . -sizes", what, found[what], overPath)
		}
	}
}

// readOver reads lines of "rule what most".
func readOver(t *testing.T) over {
	data, err := os.ReadFile(overPath)
	if err != nil {
		t.Fatal(err)
	}
	out := over{}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 3 {
			n, err := strconv.Atoi(fields[2])
			if err != nil {
				t.Fatalf("%s: %q", overPath, line)
			}
			out[fields[0]+" "+fields[1]] = n
		}
	}
	return out
}

// writeOver writes what is over today.
func writeOver(t *testing.T, found over) {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintln(&b, what, found[what])
	}
	if err := os.WriteFile(overPath, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// largeFiles may be larger than the rule says.
var largeFiles = []string{}

func TestTrackedFilesAreSmall(t *testing.T) {
	if _, err := os.Stat(".git"); err != nil {
		t.Skip("no repository")
	}
	list, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.FromSlash(name))
		if err != nil || strings.HasPrefix(name, "docs/screens/") || slices.Contains(largeFiles, name) {
			continue
		}
		if info.Size() > mostBytes {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
		if name == "understudy" {
			t.Errorf("the binary %s is tracked", name)
		}
	}
	ignored, err := os.ReadFile(".gitignore")
	if err != nil || !slices.Contains(strings.Fields(string(ignored)), "/understudy") {
		t.Errorf("a binary at the root is not ignored: %v", err)
	}
}
