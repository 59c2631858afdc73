// Package sdk has tests with the packages for Twilio: they get through Understudy what they get directly.
package sdk

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.MainOnLane(m) }
