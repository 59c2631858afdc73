package follow_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"understudy/follow"
)

func ExampleReceive() {
	// A server with two changes, in place of a real one.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: 8\ndata: {\"n\":8,\"kind\":\"calls\",\"id\":\"CA1\",\"what\":\"came\"}\n\n")
		_, _ = io.WriteString(w, "id: 9\ndata: {\"n\":9,\"kind\":\"calls\",\"id\":\"CA1\",\"what\":\"changed\"}\n\n")
	}))
	defer server.Close()

	enough := errors.New("enough")
	o := follow.Options{URL: server.URL, After: "7"} // the cursor that was kept last
	err := follow.Receive(context.Background(), o, func(c follow.Change) error {
		fmt.Println(c.Kind, c.ID, c.What)
		if c.Cursor == "9" { // a program keeps the cursor with what it did
			return enough
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// calls CA1 came
	// calls CA1 changed
	// enough
}

func ExampleReceive_unavailable() {
	server := httptest.NewServer(nil)
	server.Close() // nobody listens at its address any more

	o := follow.Options{URL: server.URL, GiveUpAfter: 50 * time.Millisecond}
	err := follow.Receive(context.Background(), o, func(follow.Change) error { return nil })
	fmt.Println(errors.Is(err, follow.ErrUnavailable))
	// Output:
	// true
}
