// The locks of the product: which are watched, and that a method locks the lock that it means.

package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// unwatched are the files whose locks belong to an object that lives shorter than the process, such as a connection or a request, or of
// which there are many. Only those of the pages in memory and of the counts for the audit log live long: each warm request takes them.
var unwatched = []string{
	"internal/jobs/run.go", "internal/frontend/reply.go", "internal/frontend/lane.go", "internal/http2lane/lane.go",
	"internal/search/find.go", "internal/crawl/sweep.go",
	"internal/crawl/fetch.go", "internal/crawl/sync.go", "internal/store/evict/sweep.go", "internal/tables/follow.go",
	"internal/watch/book.go", "internal/audit/counts.go",
	"mirror/cache/tier.go", "mirror/shared/fetch.go", "upstream/exchange.go", "request/trace.go",
	"cmd/understudy/terminal/progress.go", "internal/viewer/page/response.go",
}

// TestLongLivedLocksAreWatched: packages of kit import none of the product, and slowapi is no part of it.
func TestLongLivedLocksAreWatched(t *testing.T) {
	found := map[string]bool{}
	for _, f := range productFiles(t) {
		if strings.HasPrefix(f.dir, "kit/") || strings.HasPrefix(f.dir, "internal/slowapi") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if typ, ok := n.(ast.Expr); ok && strings.HasPrefix(lockType(typ), "sync.") {
				found[f.path] = true
				if !slices.Contains(unwatched, f.path) {
					t.Errorf("%s has a %s: use kit/lockwatch, or list the file in unwatched if its locks do not live long", f.path, lockType(typ))
				}
			}
			return true
		})
	}
	for _, path := range unwatched {
		if !found[path] {
			t.Errorf("%s has no lock of sync: remove it from unwatched", path)
		}
	}
}

// TestEachRWMutexHasABenchmark: an RWMutex is slower than a Mutex, unless many goroutines read at once.
func TestEachRWMutexHasABenchmark(t *testing.T) {
	measured := map[string]bool{"kit/lockwatch": true}
	for _, f := range goFiles(t) {
		if f.test && declares(f.ast, "BenchmarkRWMutex") {
			measured[f.dir] = true
		}
	}
	for _, f := range productFiles(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			typ, ok := n.(ast.Expr)
			if ok && strings.HasSuffix(lockType(typ), ".RWMutex") && !measured[f.dir] && !strings.HasPrefix(f.dir, "internal/slowapi") {
				t.Errorf("%s has an RWMutex: write a BenchmarkRWMutex beside it that shows that it is faster, or use a Mutex", f.path)
			}
			return true
		})
	}
}

// lockType returns the name of the type with its package if it is a mutex.
func lockType(typ ast.Expr) string {
	sel, ok := typ.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Mutex" && sel.Sel.Name != "RWMutex" {
		return ""
	}
	if pkg, ok := sel.X.(*ast.Ident); ok && (pkg.Name == "sync" || pkg.Name == "lockwatch") {
		return pkg.Name + "." + sel.Sel.Name
	}
	return ""
}

// TestEmbeddedLocksAreNotMixed: a struct that embeds a lock, also by way of another struct, has no second lock. Otherwise s.Lock() can be
// another lock than the one that the author means.
func TestEmbeddedLocksAreNotMixed(t *testing.T) {
	folders := map[string][]*ast.File{}
	for _, f := range productFiles(t) {
		folders[f.dir] = append(folders[f.dir], f.ast)
	}
	for dir, files := range folders {
		for _, name := range mixedLocks(files) {
			t.Errorf("%s: type %s mixes an embedded lock with another one; give both a name", dir, name)
		}
	}
}

// mixedLocks returns the structs of a package for which it is unclear what Lock locks.
func mixedLocks(files []*ast.File) (names []string) {
	structs := map[string]*ast.StructType{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					structs[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	var promoted func(s *ast.StructType, depth int) int // the number of locks whose methods the struct gets by embedding
	promoted = func(s *ast.StructType, depth int) (n int) {
		for _, field := range s.Fields.List {
			if len(field.Names) > 0 || depth > 10 {
				continue
			}
			typ := field.Type
			if star, ok := typ.(*ast.StarExpr); ok {
				typ = star.X
			}
			if lockType(typ) != "" {
				n++
			} else if id, ok := typ.(*ast.Ident); ok && structs[id.Name] != nil {
				n += promoted(structs[id.Name], depth+1)
			}
		}
		return n
	}
	for name, s := range structs {
		named := slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool { return len(f.Names) > 0 && lockType(f.Type) != "" })
		if n := promoted(s, 0); n > 1 || n == 1 && named {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestMixedLocksAreFound has the second and the third mistake of the article about MutexD.
func TestMixedLocksAreFound(t *testing.T) {
	for text, want := range map[string]string{
		// A Mutex and an RWMutex are embedded: Lock of the child hides that of the parent.
		"type parent struct { sync.Mutex }; type child struct { parent; sync.RWMutex }": "child",
		"type both struct { sync.Mutex; lockwatch.RWMutex }":                            "both",
		// s.Lock() locks the lock of the embedded struct, and mu guards the rest.
		"type inner struct { sync.RWMutex }; type outer struct { *inner; mu sync.Mutex; n int }":                   "outer",
		"type a struct { sync.Mutex }; type b struct { a }; type c struct { b; mu sync.Mutex }":                    "c",
		"type parent struct { n int }; type child struct { parent; sync.RWMutex }":                                 "",
		"type inner struct { sync.Mutex }; type outer struct { inner inner; mu sync.Mutex }; type o struct{inner}": "",
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(mixedLocks([]*ast.File{f}), " "); got != want {
			t.Errorf("%s: %q found, want %q", text, got, want)
		}
	}
}

// declares reports whether a file has a function with a name.
func declares(f *ast.File, name string) bool {
	return slices.ContainsFunc(f.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return ok && fn.Name.Name == name
	})
}
