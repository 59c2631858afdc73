// Package markers has tests that no answer shows what its reader may not see, and that routes, settings and help are those of
// testdata/contract.
package markers

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
