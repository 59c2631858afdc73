// Ages are computed from times that still have their monotonic clock.

package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// stripping are the methods of time.Time whose result has lost the monotonic clock (package time, "Monotonic Clocks").
var stripping = []string{"UTC", "Local", "In", "Round", "Truncate", "AddDate"}

// TestAgesUseTheMonotonicClock: no time that comes from one of these methods, in the same function, is subtracted from another one. After a
// step of the clock the difference would be wrong.
func TestAgesUseTheMonotonicClock(t *testing.T) {
	for _, f := range productFiles(t) {
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			for _, name := range strippedAges(fn.Body) {
				t.Errorf("%s: %s: %s of a time without its monotonic clock; strip the clock only where the time is written", f.path, fn.Name.Name, name)
			}
		}
	}
}

// strippedAges returns the calls of Sub, Since and Until with such a time.
func strippedAges(body *ast.BlockStmt) (found []string) {
	stripped := map[string]bool{} // variables
	isStripped := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.Ident:
			return stripped[e.Name]
		case *ast.CallExpr:
			sel, ok := e.Fun.(*ast.SelectorExpr)
			return ok && slices.Contains(stripping, sel.Sel.Name)
		}
		return false
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if name, ok := left.(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) {
					stripped[name.Name] = isStripped(n.Rhs[i])
				}
			}
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || len(n.Args) != 1 || !slices.Contains([]string{"Sub", "Since", "Until"}, sel.Sel.Name) {
				break
			}
			if isStripped(n.Args[0]) || sel.Sel.Name == "Sub" && isStripped(sel.X) {
				found = append(found, sel.Sel.Name)
			}
		}
		return true
	})
	return found
}

func TestStrippedAgesAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"time.Since(at.UTC())":                          1,
		"at := now().Round(0); time.Since(at)":          1,
		"at := now().In(zone); _ = now().Sub(at)":       1,
		"_ = at.Local().Sub(start)":                     1,
		"at := now(); time.Since(at); write(at.UTC())":  0,
		"at := now().UTC(); at = now(); time.Until(at)": 0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() { "+text+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if found := strippedAges(f.Decls[0].(*ast.FuncDecl).Body); len(found) != want {
			t.Errorf("%s: %v found, want %d", text, found, want)
		}
	}
}
