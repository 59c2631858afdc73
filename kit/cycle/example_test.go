package cycle_test

import (
	"fmt"

	"understudy/kit/cycle"
)

func Example() {
	var f cycle.Finder
	for i, value := range []uint64{9, 1, 2, 3, 1, 2, 3, 1, 2, 3} {
		if f.Next(value) > 0 {
			fmt.Println("a cycle at step", i)
			break
		}
	}
	// Output: a cycle at step 5
}
