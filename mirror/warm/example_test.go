// Polls of a source at ten requests a second.

package warm_test

import (
	"fmt"
	"time"

	"understudy/mirror/warm"
)

func ExampleBudget() {
	var budget warm.Budget
	budget.Set(10) // requests a second, of which polls may take a tenth
	now := time.Unix(1_780_000_000, 0)
	fmt.Println(budget.Take(now, 2), budget.Take(now, 2), budget.Take(now, 2))
	fmt.Println(budget.Wait(now, 2).Round(time.Millisecond))
	// Output:
	// true true false
	// 1s
}
