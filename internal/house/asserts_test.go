// What a failure of a test says.

package house

import (
	"go/ast"
	"go/token"
	"testing"
)

// maxJoined is how many conditions of tests may join three or more by OR. A test checks one value after the other, for which
// internal/checktest has helpers: a failure says which value was wrong.
const maxJoined = 50

func TestTestsSayWhichValueIsWrong(t *testing.T) {
	n, last := 0, ""
	for _, f := range goFiles(t) {
		if !f.test {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			if c, ok := node.(*ast.IfStmt); ok && alternatives(c.Cond) >= 3 {
				n++
				last = f.path
			}
			return true
		})
	}
	if n > maxJoined {
		t.Errorf("%d conditions of tests join three or more by OR, %d may: split what was added (%s)", n, maxJoined, last)
	}
}

// alternatives counts what a condition joins by OR.
func alternatives(x ast.Expr) int {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return alternatives(x.X)
	case *ast.BinaryExpr:
		if x.Op == token.LOR {
			return alternatives(x.X) + alternatives(x.Y)
		}
	}
	return 1
}
