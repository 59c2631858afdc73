package understudy_test

import (
	"errors"
	"fmt"

	"understudy"
)

func ExampleStatus() {
	err := fmt.Errorf("store: page calls: %w", understudy.ErrNotFound)
	fmt.Println(understudy.Status(err), errors.Is(err, understudy.ErrNotFound))
	// Output: 404 true
}

func ExampleParseQuery() {
	q, err := understudy.ParseQuery("To=%2B49&Start%3E=2026")
	fmt.Println(q.String(), err)
	// Output: To=%2B49&Start%3E=2026 <nil>
}
