package upstream_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// minutes is the smallest spec of an API with one list.
const minutes = `
name: minutes
hosts: [{url: "https://api.example.com"}]
auth: {style: none}
paging: {style: body, next: next}
kinds:
  - name: calls
    id: [sid]
    fields: [{name: sid}]
    lists: [{path: /calls, key: calls}]
`

func ExampleClient_Fetch() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"calls": [{"sid": "CA1"}, {"sid": "CA2"}], "next": "/calls?page=2"}`)
	}))
	defer api.Close()

	s, err := upstream.ReadSpec("minutes.yaml", []byte(minutes))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := upstream.New(upstream.Options{Source: &spec.Source{Name: "main", Spec: s}, Base: api.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	target, _ := s.Resolve("main", "/calls", "")
	page, err := c.Fetch(context.Background(), request.Fetch{Target: target})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range page.Rows {
		fmt.Println(row.ID, string(page.Body[row.Start:row.End]))
	}
	fmt.Println("next:", page.Next.URI)
	// Output:
	// CA1 {"sid": "CA1"}
	// CA2 {"sid": "CA2"}
	// next: /calls?page=2
}

func ExampleReadSpec() {
	_, err := upstream.ReadSpec("minutes.yaml", []byte("name: minutes\nhosts: []\npagin: {}\n"))
	fmt.Println(err)
	// Output: upstream: spec minutes.yaml:3: unknown key "pagin" in the spec; did you mean "paging"?
}
