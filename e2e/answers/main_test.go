// Package answers has tests of what programs are answered: how new, from which records, from which lane.
package answers

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.MainOnLane(m) }
