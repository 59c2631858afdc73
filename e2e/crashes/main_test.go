// Package crashes has tests in which the process is killed, its disk is full or damaged, or its memory is limited.
package crashes

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
