package suggest_test

import (
	"fmt"

	"understudy/kit/suggest"
)

func Example() {
	known := []string{"calls", "messages", "recordings"}
	fmt.Println("unknown kind" + suggest.Hint("mesages", known))
	fmt.Printf("%q\n", suggest.ClosestWord("xyzzy", known))
	// Output:
	// unknown kind; did you mean "messages"?
	// ""
}
