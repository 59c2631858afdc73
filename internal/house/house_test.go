// The house rules of ARCHITECTURE.md, as tests.

package house

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// file is one Go file of the product.
type file struct {
	path, dir string // slash-separated, from the root; dir "." is the root package
	test      bool
	imports   []string
	ast       *ast.File
}

// goFiles returns every Go file of the root module, tests included. They are parsed once, and
// no test changes them.
func goFiles(t *testing.T) []file {
	t.Helper()
	files, err := parsedOnce()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var parsedOnce = sync.OnceValues(parseFiles)

// fset has the positions in the files that parseFiles reads.
var fset = token.NewFileSet()

func parseFiles() (files []file, err error) {
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		p = filepath.ToSlash(p)
		if d.IsDir() {
			_, merr := os.Stat(filepath.Join(p, "go.mod"))
			if p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin" || merr == nil) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f := file{path: p, dir: path.Dir(p), test: strings.HasSuffix(p, "_test.go"), ast: parsed}
		for _, im := range parsed.Imports {
			name, _ := strconv.Unquote(im.Path.Value)
			f.imports = append(f.imports, name)
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

// own reports an import of the product's; imports_test.go rules those.
func own(imp string) bool { return imp == "understudy" || strings.HasPrefix(imp, "understudy/") }

func standard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

// testSupport packages exist for tests alone.
var testSupport = []string{"internal/checktest", "internal/randomapitest", "internal/sample",
	"internal/store/pgtest", "internal/store/storetest", "internal/viewer/viewertest", "mirror/compose/composetest", "spec/spectest"}

// onlyStandard are the folders that use the standard library alone, beside kit;
// systemCalls those of kit that may use golang.org/x/sys too.
var (
	onlyStandard = []string{".", "spec", "spec/auth", "spec/paging", "request", "internal/query", "internal/slowapi", "follow"}
	systemCalls  = []string{"kit/wal", "kit/pidfile"}
)

func TestRootAndKitAndSlowAPIUseTheStandardLibraryOnly(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test || !slices.Contains(onlyStandard, f.dir) && !strings.HasPrefix(f.dir, "kit/") {
			continue
		}
		for _, imp := range f.imports {
			system := strings.HasPrefix(imp, "golang.org/x/sys/") && slices.Contains(systemCalls, f.dir)
			if !own(imp) && !standard(imp) && !system {
				t.Errorf("%s imports %s: only the standard library here", f.path, imp)
			}
		}
	}
}

func TestSlowAPIIsForCmdAndTests(t *testing.T) {
	for _, f := range goFiles(t) {
		if !f.test && !strings.HasPrefix(f.dir, "cmd/") && !strings.HasPrefix(f.dir, "internal/slowapi") &&
			!slices.Contains(testSupport, f.dir) && slices.Contains(f.imports, "understudy/internal/slowapi") {
			t.Errorf("%s imports slowapi: it checks the product and is not part of it", f.path)
		}
	}
}

func TestOnlyTheStoreSpeaksSQL(t *testing.T) {
	drivers := []string{
		"database/sql", "database/sql/driver", "modernc.org/sqlite", "github.com/pressly/goose/v3",
	}
	for _, f := range goFiles(t) {
		for _, imp := range f.imports {
			// Package tables writes to the user's own database, which has nothing to do with the store.
			pgx := strings.HasPrefix(imp, "github.com/jackc/") && f.dir != "internal/tables"
			if pgx && !f.test && f.dir != "internal/store/postgres" && !slices.Contains(testSupport, f.dir) {
				t.Errorf("%s imports %s: only internal/store/postgres speaks PostgreSQL", f.path, imp)
			}
			if (pgx || slices.Contains(drivers, imp)) && !strings.HasPrefix(f.dir, "internal/store") {
				t.Errorf("%s imports %s: only internal/store speaks SQL", f.path, imp)
			}
			if strings.Contains(imp, "crypto/ssh") && !strings.HasPrefix(f.dir, "internal/deploy") {
				t.Errorf("%s imports %s: only internal/deploy speaks SSH", f.path, imp)
			}
		}
	}
}

// startsProcess reports the packages that touch the process: environment, exit,
// system clocks. Tests give every other package its clock.
func startsProcess(dir string) bool {
	return strings.HasPrefix(dir, "cmd/") || dir == "internal/app" || dir == "internal/config" || slices.Contains(testSupport, dir)
}

// Only cmd, app and config touch the process, and only cmd reads flags.
func TestOnlyCmdTouchesTheProcess(t *testing.T) {
	banned := map[string]string{
		"os.Getenv": "", "os.LookupEnv": "", "os.Environ": "", "os.Exit": "", "log.Fatal": "", "log.Fatalf": "", "log.Fatalln": "",
	}
	for _, f := range goFiles(t) {
		if !f.test && !strings.HasPrefix(f.dir, "cmd/") && !slices.Contains(testSupport, f.dir) && slices.Contains(f.imports, "flag") {
			t.Errorf("%s imports flag: only cmd reads flags", f.path)
		}
		if f.test || startsProcess(f.dir) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok {
				if _, bad := banned[x.Name+"."+sel.Sel.Name]; bad {
					t.Errorf("%s uses %s.%s: only cmd may", f.path, x.Name, sel.Sel.Name)
				}
			}
			return true
		})
	}
}

// A test cannot step a clock that a package calls itself. Packages take Now from
// their options and may name time.Now only as its default.
func TestOnlyCmdReadsTheClock(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test || startsProcess(f.dir) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep"}, sel.Sel.Name) {
				t.Errorf("%s calls time.%s: take Now from the options", f.path, sel.Sel.Name)
			}
			return true
		})
	}
}

func TestPackageNames(t *testing.T) {
	drawers := []string{"util", "utils", "common", "helpers", "base", "models", "types", "manager", "service"}
	for _, f := range goFiles(t) {
		if slices.Contains(drawers, f.ast.Name.Name) {
			t.Errorf("%s: package %s is a drawer; name what it does", f.path, f.ast.Name.Name)
		}
	}
}

func TestEveryPackageHasItsSentence(t *testing.T) {
	docs := map[string]bool{}
	for _, f := range goFiles(t) {
		if !f.test {
			docs[f.dir] = docs[f.dir] || f.ast.Doc != nil
		}
	}
	for dir, has := range docs {
		if !has {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

// Other programs can import a package outside internal/ and cmd/. Its runnable
// example shows how.
func TestPublicPackagesHaveExamples(t *testing.T) {
	example := map[string]bool{}
	for _, f := range goFiles(t) {
		public := f.ast.Name.Name != "main" && !strings.Contains("/"+f.dir+"/", "/internal/") && !strings.HasPrefix(f.dir, "cmd/")
		if public && !slices.Contains(testSupport, f.dir) {
			example[f.dir] = example[f.dir] || f.test && hasExample(f.ast)
		}
	}
	for dir, has := range example {
		if !has {
			t.Errorf("%s has no example with an output", dir)
		}
	}
}

// hasExample reports whether a test file has an example that go test runs.
func hasExample(f *ast.File) bool {
	return slices.ContainsFunc(doc.Examples(f), func(x *doc.Example) bool { return x.Output != "" })
}

// Providers are named in spec files, the simulator and tests, nowhere else.
func TestNoProviderInGo(t *testing.T) {
	provider := regexp.MustCompile(`(?i)twilio|github\b|stripe`)
	for _, f := range goFiles(t) {
		if f.test || strings.HasPrefix(f.dir, "internal/slowapi") || slices.Contains(testSupport, f.dir) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				if provider.MatchString(n.Value) {
					t.Errorf("%s: literal %s names a provider", f.path, n.Value)
				}
			case *ast.Ident:
				if provider.MatchString(n.Name) {
					t.Errorf("%s: %s names a provider", f.path, n.Name)
				}
			}
			return true
		})
	}
}

// The SQLite driver and its C runtime only work as a tested pair.
func TestPinnedVersions(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, pin := range []string{"modernc.org/sqlite v1.60.1", "modernc.org/libc v1.77.1"} {
		if !strings.Contains(string(mod), pin+"\n") && !strings.Contains(string(mod), pin+" //") {
			t.Errorf("go.mod does not pin %s", pin)
		}
	}
}

// ARCHITECTURE.md names what exists: each path in backquotes, and each file in the last column
// of a table of packages. It names every package and every file that is no test, so that it is complete.
func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z0-9_]+(?:/[a-z0-9_.]+)*/?)`|`([a-z0-9_]+\\.go)`").FindAllStringSubmatch(string(text), -1) {
		name := m[1] + m[2]
		if named[name] = true; !strings.ContainsAny(name, "/.") {
			continue
		}
		if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
			t.Errorf("ARCHITECTURE.md names %s, which is not there", name)
		}
	}
	note := regexp.MustCompile(` \([^)]*\)`)
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_/]+/)` \\| [^|]* \\| ([^|]+) \\|$").FindAllStringSubmatch(string(text), -1) {
		for name := range strings.SplitSeq(note.ReplaceAllString(m[2], ""), ", ") {
			if path.Ext(name) == "" {
				name += ".go"
			}
			named[m[1]+name] = true
			if _, err := os.Stat(filepath.FromSlash(m[1] + name)); err != nil {
				t.Errorf("ARCHITECTURE.md names %s of %s, which is not there", name, m[1])
			}
		}
	}
	for _, f := range goFiles(t) {
		if f.test || ast.IsGenerated(f.ast) {
			continue
		}
		if f.dir != "." && !named[f.dir+"/"] {
			t.Errorf("ARCHITECTURE.md does not name %s/", f.dir)
		}
		if !named[f.path] && path.Base(f.path) != "doc.go" {
			t.Errorf("ARCHITECTURE.md does not name %s", f.path)
		}
	}
	_, glossary, _ := strings.Cut(string(text), "\n## Glossary\n")
	glossary, _, _ = strings.Cut(glossary, "\n## ")
	if words := strings.Count(glossary, "\n| ") - 1; words < 20 || words > 40 {
		t.Errorf("the glossary of ARCHITECTURE.md has %d words", words)
	}
}

// Files stay readable: past 500 lines there is a second topic in it.
func TestFilesAreShort(t *testing.T) {
	for _, f := range goFiles(t) {
		data, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(data), "\n"); n > 500 && !ast.IsGenerated(f.ast) {
			t.Errorf("%s has %d lines", f.path, n)
		}
	}
}
