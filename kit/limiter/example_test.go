package limiter_test

import (
	"fmt"

	"understudy/kit/limiter"
)

func Example() {
	l := limiter.New(4, 2) // four at once, two of one name
	leave, _ := l.Take("anna")
	_, _ = l.Take("anna")
	_, err := l.Take("anna")
	fmt.Println(err)
	leave()
	_, err = l.Take("anna")
	fmt.Println(err, l.Load().InUse)
	// Output:
	// limiter: every place of this name is taken
	// <nil> 2
}
