// Quirks: each turns one default around.
package slowapi

import (
	"fmt"
	"strings"
)

// The quirks: each turns one default around.
const (
	edgeExclusive     = "edge-exclusive"
	beforeWholeDay    = "before-whole-day"
	beforeMidnight    = "before-midnight"
	operatorRefused   = "operator-refused"
	pageIgnored       = "page-ignored"
	sizeRefused       = "size-refused"
	sizeForgiven      = "size-forgiven"
	retention         = "retention"
	unfinishedRefused = "unfinished-refused"
	participantsKept  = "participants-kept"
	mediaLate         = "media-late"
	rangeForgiven     = "range-forgiven"
)

// quirkNames are all of them, in the order of the table in docs/slowapi.md.
var quirkNames = []string{
	edgeExclusive, beforeWholeDay, beforeMidnight, operatorRefused,
	pageIgnored, sizeRefused, sizeForgiven, retention, unfinishedRefused,
	participantsKept, mediaLate, rangeForgiven,
}

// quirks are those switched on.
type quirks map[string]bool

func (q quirks) on(name string) bool { return q[name] }

// readQuirks checks the names.
func readQuirks(asked []string) (quirks, error) {
	on := quirks{}
	for _, name := range asked {
		known := false
		for _, k := range quirkNames {
			known = known || k == name
		}
		if !known {
			return nil, fmt.Errorf("slowapi: unknown quirk %q; known are %s", name, strings.Join(quirkNames, ", "))
		}
		on[name] = true
	}
	return on, nil
}
