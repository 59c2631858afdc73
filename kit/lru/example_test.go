package lru_test

import (
	"fmt"

	"understudy/kit/lru"
)

func Example() {
	c := lru.New[string, int](4) // two generations of two
	for i, key := range []string{"a", "b", "c", "d", "e"} {
		c.Put(key, i, 1)
	}
	_, first := c.Get("a")
	last, _ := c.Get("e")
	fmt.Println(first, last, c.Weight())
	// Output: false 4 3
}
