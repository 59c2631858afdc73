package throttle_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"understudy"
	"understudy/request"
	"understudy/upstream/throttle"
)

func options() throttle.Options {
	return throttle.Options{
		Rate: 10, Concurrency: 1, Queue: 5, Prefetch: time.Second, Source: "main", Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
}

func ExampleBudget() {
	b := throttle.NewBudget(options())
	defer b.Close()
	reason, err := b.Take(context.Background(), throttle.Claim{Reason: request.ReasonWaiting})
	fmt.Println(reason, err)
	fmt.Println(b.TryTake(throttle.Claim{Reason: request.ReasonPoll})) // one request at once is under way
	b.Release()
	// Output:
	// waiting <nil>
	// false
}

func ExampleBreaker() {
	b := throttle.NewBreaker(options())
	failed := &understudy.UpstreamError{Why: understudy.FailUnreachable}
	for _, key := range []string{"/a", "/b", "/c", "/d", "/e"} {
		b.RecordFailure(key, failed, false)
		b.Pause(key, failed)
	}
	state, _, _, _ := b.State("")
	fmt.Println(state)
	fmt.Println(b.Admit("/f", "", false).Err != nil)
	// Output:
	// down
	// true
}
