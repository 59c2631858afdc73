// A write beside two fetches.

package writes_test

import (
	"fmt"
	"time"

	"understudy/mirror/writes"
)

func ExampleSet() {
	set := writes.New("twilio", "calls", 0, nil)
	began := set.Now()
	w, err := set.Begin("CA01")
	if err != nil {
		fmt.Println(err)
		return
	}
	w.End(time.Now(), "CA01", nil)
	// Of what was fetched before the write returned, the written record and every list are old.
	fmt.Println(set.IsStale("CA01", began), set.IsStale("CA02", began), set.IsStale("", began))
	fmt.Println(set.IsStale("CA01", set.Now()))
	// Output:
	// true false true
	// false
}
