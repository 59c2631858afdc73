package dispatch_test

import (
	"context"
	"fmt"

	"understudy/kit/dispatch"
)

func Example() {
	bus := dispatch.New[string](dispatch.Options{})
	bus.Subscribe(func(_ context.Context, page string) error {
		fmt.Println("within Dispatch:", page)
		return nil
	})
	later := bus.SubscribeAsync(dispatch.Async[string]{Call: func(_ context.Context, page string) error {
		fmt.Println("on its own goroutine:", page)
		return nil
	}})
	ctx := context.Background()
	_ = bus.Dispatch(ctx, "calls")
	_ = bus.Close(ctx) // waits for the queue
	fmt.Println(later.LostCount(), "lost")
	// Unordered output:
	// within Dispatch: calls
	// on its own goroutine: calls
	// 0 lost
}
