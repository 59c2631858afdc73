// Quirks: each inverts one behaviour whose default is not verified against Twilio.
package world

import (
	"fmt"
	"slices"
	"strings"
)

// The names of the quirks.
const (
	EdgeExclusive     = "edge-exclusive"     // time filters exclude a time equal to their edge
	BeforeWholeDay    = "before-whole-day"   // StartTime< with a date includes the whole day
	BeforeMidnight    = "before-midnight"    // DateSent< with a date ends with the first second of the day
	OperatorRefused   = "operator-refused"   // an operator in the value of a time filter is an error
	PageIgnored       = "page-ignored"       // Page without PageToken shows the first page
	SizeRefused       = "size-refused"       // a PageSize above 1000 is an error
	SizeForgiven      = "size-forgiven"      // an invalid PageSize means 50
	Retention         = "retention"          // a DateSent filter reaching more than 400 days back is an error
	UnfinishedRefused = "unfinished-refused" // a record that is not in a final state cannot be emptied or deleted
	ParticipantsKept  = "participants-kept"  // a completed conference still lists its participants
	MediaLate         = "media-late"         // the first request for the content of a medium gets 404
	RangeForgiven     = "range-forgiven"     // alerts may be requested for more than 30 days
)

// quirkNames are the names of all quirks, in the order of the table in docs/reference/slowapi.md.
var quirkNames = []string{
	EdgeExclusive, BeforeWholeDay, BeforeMidnight, OperatorRefused,
	PageIgnored, SizeRefused, SizeForgiven, Retention, UnfinishedRefused,
	ParticipantsKept, MediaLate, RangeForgiven,
}

// Quirks are the names of the quirks that are on.
type Quirks map[string]bool

// ReadQuirks returns the quirks with these names. An unknown name is an error.
func ReadQuirks(names []string) (Quirks, error) {
	on := Quirks{}
	for _, name := range names {
		if !slices.Contains(quirkNames, name) {
			return nil, fmt.Errorf("slowapi: unknown quirk %q; known are %s", name, strings.Join(quirkNames, ", "))
		}
		on[name] = true
	}
	return on, nil
}
