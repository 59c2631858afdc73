// Package lists has tests of lists and of the search in a real browser.
package lists

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
