// Quirks: each turns one default around.
package world

import (
	"fmt"
	"slices"
	"strings"
)

// The quirks: each turns one default around.
const (
	EdgeExclusive     = "edge-exclusive"
	BeforeWholeDay    = "before-whole-day"
	BeforeMidnight    = "before-midnight"
	OperatorRefused   = "operator-refused"
	PageIgnored       = "page-ignored"
	SizeRefused       = "size-refused"
	SizeForgiven      = "size-forgiven"
	Retention         = "retention"
	UnfinishedRefused = "unfinished-refused"
	ParticipantsKept  = "participants-kept"
	MediaLate         = "media-late"
	RangeForgiven     = "range-forgiven"
)

// quirkNames are all of them, in the order of the table in docs/reference/slowapi.md.
var quirkNames = []string{
	EdgeExclusive, BeforeWholeDay, BeforeMidnight, OperatorRefused,
	PageIgnored, SizeRefused, SizeForgiven, Retention, UnfinishedRefused,
	ParticipantsKept, MediaLate, RangeForgiven,
}

// Quirks are those switched on.
type Quirks map[string]bool

// ReadQuirks checks the names.
func ReadQuirks(asked []string) (Quirks, error) {
	on := Quirks{}
	for _, name := range asked {
		if !slices.Contains(quirkNames, name) {
			return nil, fmt.Errorf("slowapi: unknown quirk %q; known are %s", name, strings.Join(quirkNames, ", "))
		}
		on[name] = true
	}
	return on, nil
}
