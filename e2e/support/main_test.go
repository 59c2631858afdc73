// Package support has tests of what support people do in a real browser, from the sign-in on.
package support

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
