package shadow_test

import (
	"fmt"

	"understudy/mirror/shadow"
)

func ExampleAnswers_Check() {
	fmt.Println(shadow.Records.Check())
	fmt.Println(shadow.Answers("recrds").Check())
	// Output:
	// <nil>
	// "recrds" is not a value of lists_from; did you mean "records"?
}
