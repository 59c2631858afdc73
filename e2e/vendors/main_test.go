// Package vendors has tests of the APIs behind Understudy: lists of GitHub and Stripe, published documents, drawn specs, sources
// without a spec.
package vendors

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
