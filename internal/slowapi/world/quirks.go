// Quirks: each of them reverses one behavior for which it is not certain what Twilio does.
package world

import (
	"fmt"
	"slices"
	"strings"
)

// The names of the quirks.
const (
	EdgeExclusive     = "edge-exclusive"     // time filters do not match a time equal to their limit
	BeforeWholeDay    = "before-whole-day"   // StartTime< with a date also matches the rest of that day
	BeforeMidnight    = "before-midnight"    // DateSent< with a date matches only the first second of that day, and times before it
	OperatorRefused   = "operator-refused"   // an operator in the value of a time filter is an error
	PageIgnored       = "page-ignored"       // the parameter Page has no effect without PageToken
	SizeRefused       = "size-refused"       // a PageSize above 1000 is an error
	SizeForgiven      = "size-forgiven"      // an invalid PageSize means 50
	Retention         = "retention"          // a DateSent filter for times more than 400 days ago is an error
	UnfinishedRefused = "unfinished-refused" // a record that is not in a final status cannot be emptied or deleted
	ParticipantsKept  = "participants-kept"  // a completed conference still has participants in its list
	MediaLate         = "media-late"         // the first request for a picture gets 404
	RangeForgiven     = "range-forgiven"     // alerts can be requested for more than 30 days at once
)

// quirkNames are the names of all quirks, in the order of the table in docs/reference/slowapi.md.
var quirkNames = []string{
	EdgeExclusive, BeforeWholeDay, BeforeMidnight, OperatorRefused,
	PageIgnored, SizeRefused, SizeForgiven, Retention, UnfinishedRefused,
	ParticipantsKept, MediaLate, RangeForgiven,
}

// Quirks has true for the name of each quirk that is turned on.
type Quirks map[string]bool

// ReadQuirks returns the quirks with the given names. It returns an error for an unknown name.
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
