// What a failure of a test says.

package house

import (
	"go/ast"
	"go/token"
	"testing"
)

// mostJoined is how many conditions of tests join three or more by OR under one message. Lower it with each that is
// split: a failure says which value was wrong.
const mostJoined = 988

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
	if n > mostJoined {
		t.Errorf("%d conditions of tests join three or more by OR, %d may: split what was added (%s)", n, mostJoined, last)
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
