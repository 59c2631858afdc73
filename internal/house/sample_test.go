// A random sample of comments and names, for somebody who reads them without their code.

package house

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"math/rand/v2"
	"strings"
	"testing"
)

var sampleSeed = flag.Uint64("sample", 0, "print 120 comments and 80 names, chosen by this seed")

// TestSample prints what -sample asks for (make sample SEED=n).
func TestSample(t *testing.T) {
	var comments, names []string
	for _, f := range productFiles(t) {
		for _, group := range f.ast.Comments {
			if text := strings.TrimSpace(group.Text()); text != "" {
				text = strings.ReplaceAll(text, "\n", "\n    ")
				comments = append(comments, fmt.Sprintf("%s:%d\n    %s", f.path, fset.Position(group.Pos()).Line, text))
			}
		}
		for _, name := range declaredNames(f.ast) {
			names = append(names, fmt.Sprintf("%s.%s", f.ast.Name.Name, name))
		}
	}
	if len(comments) < 1000 || len(names) < 1000 {
		t.Fatalf("%d comments and %d names: this is not the whole product", len(comments), len(names))
	}
	if *sampleSeed == 0 {
		return
	}
	random := rand.New(rand.NewPCG(*sampleSeed, 0))
	for i, n := range random.Perm(len(comments))[:120] {
		fmt.Printf("%3d %s\n", i+1, comments[n])
	}
	for i, n := range random.Perm(len(names))[:80] {
		fmt.Printf("%3d %s\n", i+1, names[n])
	}
}

// declaredNames returns the functions, methods, types, fields, constants and variables that a file declares.
func declaredNames(f *ast.File) (names []string) {
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names = append(names, name+"()")
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
					if fields, ok := s.Type.(*ast.StructType); ok {
						for _, field := range fields.Fields.List {
							for _, name := range field.Names {
								names = append(names, s.Name.Name+"."+name.Name)
							}
						}
					}
				case *ast.ValueSpec:
					if d.Tok == token.CONST || d.Tok == token.VAR {
						for _, name := range s.Names {
							names = append(names, name.Name)
						}
					}
				}
			}
		}
	}
	return names
}
