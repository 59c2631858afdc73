// Package operation has tests of what people who operate a server do: commands of the documents, settings, erasing, mail.
package operation

import (
	"testing"

	"understudy/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }
