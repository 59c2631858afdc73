// Package faults has tests in which something fails: upstream, the disk, the memory, a connection, the process itself.
package faults

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
