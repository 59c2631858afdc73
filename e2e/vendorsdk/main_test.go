// Package vendorsdk has tests with the packages and commands for GitHub and Stripe: they get through Understudy what they get directly.
package vendorsdk

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.MainOnLane(m) }
