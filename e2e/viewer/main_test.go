// Package viewer has tests of all pages in a real browser: they fit, are accessible, print and need no script.
package viewer

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
