// Package hidden has tests that a role learns nothing of records that it may not find: by no answer, no time, no size.
package hidden

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
