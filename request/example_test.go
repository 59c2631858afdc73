package request_test

import (
	"fmt"
	"time"

	"understudy"
	"understudy/request"
)

func ExampleResponse_CurrentAge() {
	r := request.Response{Page: &understudy.Page{InitialAge: 2 * time.Second}, Age: 3 * time.Second, Outcome: request.Warm}
	fmt.Println(r.Outcome, r.CurrentAge())
	// Output: warm 5s
}
