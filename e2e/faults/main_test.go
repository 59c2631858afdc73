// Package faults has tests in which upstream or a connection to it fails, in every way it can, while readers read.
package faults

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
