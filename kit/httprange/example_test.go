package httprange_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"understudy/kit/httprange"
)

func ExampleSend() {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Range", "bytes=0-4")
	w := httptest.NewRecorder()
	sent, err := httprange.Send(w, r, httprange.Content{File: strings.NewReader("hello, world"), Type: "text/plain"})
	fmt.Println(sent.Status, sent.Bytes, err, w.Body, w.Header().Get("Content-Range"))
	// Output: 206 5 <nil> hello bytes 0-4/12
}
