// Package connect has tests with programs that reach an API through Understudy's tunnels, without a change to their code.
package connect

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
