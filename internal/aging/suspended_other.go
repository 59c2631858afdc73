//go:build !linux

package aging

import "time"

// suspendedTime returns 0. On these systems the machine's suspension is not known.
func suspendedTime() time.Duration { return 0 }
