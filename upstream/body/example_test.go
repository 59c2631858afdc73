package body_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"understudy/upstream/body"
)

func ExampleReader_Read() {
	r := body.NewReader("main", 16)
	quota := func() *body.Quota {
		return &body.Quota{
			Ctx: context.Background(), Length: -1, Max: 16,
			Weigh: func(context.Context, int64) error { return nil }, Pause: func() func() { return func() {} },
		}
	}
	data, err := r.Read(&http.Response{ContentLength: -1}, strings.NewReader(`{"a": 1}`), quota(), "")
	fmt.Printf("%s %v\n", data, err)
	_, err = r.Read(&http.Response{ContentLength: -1}, strings.NewReader(strings.Repeat("x", 17)), quota(), "")
	fmt.Println(errors.Is(err, body.ErrTooLarge))
	// Output:
	// {"a": 1} <nil>
	// true
}
