package jsonspan_test

import (
	"fmt"

	"understudy/kit/jsonspan"
)

func ExampleFind() {
	data := []byte(`{"meta": {"next": "\/calls?page=2"}, "calls": [{"sid": "CA1"}, {"sid": "CA2"}]}`)
	doc, err := jsonspan.Parse(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	next, _ := jsonspan.Find(data, doc, "meta.next")
	fmt.Println(jsonspan.Text(data, next))
	calls, _ := jsonspan.Find(data, doc, "calls")
	jsonspan.VisitElements(data, calls, func(call jsonspan.Value) bool {
		fmt.Printf("bytes %d to %d: %s\n", call.Start, call.End, call.Bytes(data))
		return true
	})
	// Output:
	// /calls?page=2
	// bytes 47 to 61: {"sid": "CA1"}
	// bytes 63 to 77: {"sid": "CA2"}
}

func ExampleFindChanges() {
	before, after := []byte(`{"a": 1, "b": {"c": 1, "d": 2}}`), []byte(`{"b": {"d": 3, "c": 1}, "a": 1}`)
	_ = jsonspan.FindChanges(before, after, func(name []byte) bool {
		fmt.Printf("%s\n", name)
		return true
	})
	// Output: b.d
}
