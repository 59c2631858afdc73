// A write asks for the record that it changed.

package hints_test

import (
	"context"
	"fmt"
	"time"

	"understudy/mirror/hints"
)

func ExampleQueue() {
	queue := hints.New(hints.Options{
		Context: context.Background(),
		Now:     time.Now,
		Wait:    func(time.Time, time.Duration) error { return nil }, // a real one waits
		Go:      func(f func()) bool { go f(); return true },
		Fetch: func(_ context.Context, r *hints.Record) (early bool, err error) {
			fmt.Println("fetch", r.Kind, r.ID)
			return false, nil
		},
		Limit: func() int { return 1024 },
	})
	told := make(chan struct{})
	queue.Add(hints.Record{Source: "twilio", Kind: "calls", ID: "CA01"}, func() { close(told) })
	<-told
	// Output: fetch calls CA01
}
