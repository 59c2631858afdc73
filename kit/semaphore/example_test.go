package semaphore_test

import (
	"context"
	"fmt"

	"understudy/kit/semaphore"
)

func Example() {
	memory := semaphore.New(semaphore.Options{Limit: 100, Refuse: true})
	load, _ := memory.Acquire(context.Background(), 80)
	fmt.Println(memory.TryAcquire(30) == nil, memory.Stats().Held)
	load.Shrink(20)
	fmt.Println(memory.TryAcquire(30) == nil, memory.Stats().Held)
	_, err := memory.Acquire(context.Background(), 101)
	fmt.Println(err)
	// Output:
	// true 80
	// false 90
	// semaphore: heavier than the limit: 101 of 100 bytes
}
