// History: what was seen of a record, and when.

package understudy

import "time"

// Version is one period in which a record looked the same in one shape, or was gone.
type Version struct {
	Number int64  // the store's number of the body; 0 when the record was gone
	Shape  string // "" when the record was gone
	Body   []byte // as upstream sent it; nil when it was gone, or when the body was not kept
	From   time.Time
	Until  time.Time // when the next one was first seen; zero: it is the newest
	Gone   bool
}
