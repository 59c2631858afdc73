package tokenizer_test

import (
	"fmt"

	"understudy/kit/tokenizer"
)

func ExampleCut() {
	for w := range tokenizer.Cut("Caf\u00e9 No. 7") {
		fmt.Printf("%s %d-%d\n", w.Folded, w.Start, w.End)
	}
	// Output:
	// cafe 0-5
	// no 6-8
	// 7 10-11
}
