// Package viewer has tests of the viewer in a real browser.
package viewer

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
