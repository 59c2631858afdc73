package csvline_test

import (
	"os"

	"understudy/kit/csvline"
)

func ExampleAppend() {
	os.Stdout.Write(csvline.Append(nil, []string{"2026-05-01", csvline.EscapeFormulas("=SUM(A1)"), "-0.0075"}))
	// Output: 2026-05-01,'=SUM(A1),-0.0075
}
