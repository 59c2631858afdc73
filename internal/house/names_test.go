// Names that carried a private meaning, each with the standard term in its place.

package house

import (
	"go/ast"
	"os"
	"path"
	"strings"
	"testing"
)

// TestNoPrivateVocabulary refuses types, functions, methods, fields and files with a
// name of internal/house/names.txt. Local variables are free.
func TestNoPrivateVocabulary(t *testing.T) {
	data, err := os.ReadFile("internal/house/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	instead := map[string]string{}
	for line := range strings.Lines(string(data)) {
		old, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			t.Fatalf("internal/house/names.txt: %q has no new name", line)
		}
		instead[strings.ToLower(old)] = strings.TrimSpace(name)
	}
	refuse := func(file, name string) {
		if term := instead[strings.ToLower(name)]; term != "" {
			t.Errorf("%s declares %s: the term is %s (internal/house/names.txt)", file, name, term)
		}
	}
	for _, f := range goFiles(t) {
		stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.path), ".go"), "_test")
		if f.dir != "internal/house" { // it holds the house rules
			refuse(f.path, stem)
		}
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				refuse(f.path, fn.Name.Name)
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					refuse(f.path, n.Name.Name)
				case *ast.StructType:
					for _, field := range n.Fields.List {
						for _, name := range field.Names {
							refuse(f.path, name.Name)
						}
					}
				}
				return true
			})
		}
	}
}
