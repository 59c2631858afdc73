// Package brokers has tests with real message brokers, and with a bucket, as receivers of changes.
package brokers

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
