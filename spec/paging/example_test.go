package paging_test

import (
	"fmt"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec/paging"
)

func ExampleRules_FindNext() {
	rules := paging.Rules{Style: "cursor", Next: "has_more", Cursor: "after"}
	if err := rules.Check(); err != nil {
		fmt.Println(err)
		return
	}
	body := []byte(`{"items":[{"id":"a"},{"id":"b"}],"has_more":true}`)
	doc, err := jsonspan.Parse(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	more, _ := jsonspan.Find(body, doc, rules.Next)
	step, err := rules.FindNext(&paging.Answer{Body: body, Next: more, Rows: []understudy.Row{{ID: "a"}, {ID: "b"}}})
	fmt.Println(step.Param.Name, step.Param.Value, err)
	// Output: after b <nil>
}
