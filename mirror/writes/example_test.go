// Writes to a record.

package writes_test

import (
	"fmt"
	"sync/atomic"

	"understudy/mirror/writes"
)

func ExampleTouches() {
	var generation atomic.Int64
	var touches writes.Touches
	began := touches.Touch(&generation, "CA01")
	touches.Touch(&generation, "CA02")
	// A fetch that began after the first write is old for the second record alone.
	fmt.Println(touches.Last("CA01") > began, touches.Last("CA02") > began)
	// Output: false true
}
