package retry_test

import (
	"fmt"
	"time"

	"understudy/kit/retry"
)

func Example() {
	for failures := range 5 {
		fmt.Println(retry.Backoff(time.Second, 5*time.Second, failures))
	}
	// Output:
	// 1s
	// 2s
	// 4s
	// 5s
	// 5s
}
