package jsonhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"understudy/kit/jsonhttp"
)

func Example() {
	greet := func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Name string }
		if err := jsonhttp.Read(w, r, 1<<10, &in); err != nil {
			jsonhttp.Error(w, http.StatusBadRequest, err.Error())
			return
		}
		jsonhttp.Write(w, http.StatusOK, map[string]string{"hello": in.Name})
	}
	for _, body := range []string{`{"name":"Anna"}`, `{"nane":"Anna"}`} {
		w := httptest.NewRecorder()
		greet(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 200 {"hello":"Anna"}
	// 400 {"error":"jsonhttp: body: unknown field \"nane\""}
}
