package header_test

import (
	"fmt"

	"understudy/kit/header"
)

func ExampleItems() {
	for item := range header.Items([]string{`max-age=60, x="a, b"`, "no-cache"}) {
		fmt.Println(item)
	}
	// Output:
	// max-age=60
	// x="a, b"
	// no-cache
}

func ExampleWait() {
	fmt.Println(header.Wait([]string{"respond-async, wait=2"}))
	// Output: 2s true
}
