// The list of tests: none goes without being missed.

package house

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var writeTests = flag.Bool("tests", false, "write internal/house/tests.txt anew")

var testName = regexp.MustCompile(`^(Test|Fuzz|Example)([A-Z_]|$)`)

// testFiles returns the test files of all modules.
func testFiles(t *testing.T) (files []file) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") ||
			slices.Contains([]string{"testdata", "bin", "node_modules"}, d.Name())):
			return filepath.SkipDir
		case !strings.HasSuffix(p, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(fset, p, nil, parser.SkipObjectResolution)
		p = filepath.ToSlash(p)
		files = append(files, file{path: p, dir: path.Dir(p), test: true, ast: parsed})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// testNames are the tests of all modules, a name for each declaration.
func testNames(t *testing.T) (names []string) {
	t.Helper()
	for _, f := range testFiles(t) {
		for _, decl := range f.ast.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && testName.MatchString(f.Name.Name) && f.Name.Name != "TestMain" {
				names = append(names, f.Name.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// A test that moves keeps its name. One that goes leaves the list in the same
// commit, which says what asserts the same: go test ./internal/house -run NoTestIsLost -tests
func TestNoTestIsLost(t *testing.T) {
	const listPath = "internal/house/tests.txt"
	names := testNames(t)
	if *writeTests {
		if err := os.WriteFile(listPath, []byte(strings.Join(names, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	list, err := os.ReadFile(listPath)
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]int{}
	for _, name := range names {
		left[name]++
	}
	listed := strings.Fields(string(list))
	for _, name := range listed {
		if left[name]--; left[name] < 0 {
			t.Errorf("%s is gone", name)
		}
	}
	if len(listed) < 1000 {
		t.Errorf("%s has only %d tests", listPath, len(listed))
	}
}

// Tests that make test leaves out in turn exist under their names.
func TestSlowTestsExist(t *testing.T) {
	list, err := os.ReadFile("tools/slow.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := testNames(t)
	for line := range strings.Lines(string(list)) {
		line = strings.TrimSpace(line)
		if name := line[strings.LastIndexByte(line, '.')+1:]; !strings.HasPrefix(line, "#") && !slices.Contains(names, name) {
			t.Errorf("tools/slow.txt names %s, which is no test", line)
		}
	}
}
