// Package house holds the rules of the whole tree, as tests: what imports what, how large
// files and types may be, which tests there are.
package house

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests at the root of the tree, so that they name files as git does.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
	m.Run()
}
