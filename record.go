// Record: one thing of the API, named by kind and id.

package understudy

import "time"

// Record is the newest held version of one thing in one shape.
type Record struct {
	Source, Kind, Shape, ID string

	Number  int64     // the store's number of the record, the same for every shape
	Version int64     // the store's number of this body
	Body    []byte    // the JSON object, byte for byte as upstream sent it; never changed
	Since   time.Time // when this body was first seen
	Seen    time.Time // when upstream last showed it
	Final   bool      // it is in one of the spec's final states
	Invalid bool      // a write touched it since: only a fetch may answer, or the outage rules
}
