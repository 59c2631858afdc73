package frame_test

import (
	"bytes"
	"fmt"

	"understudy/kit/frame"
)

func Example() {
	var b []byte
	b = frame.Append(b, []byte("first"))
	b = frame.Append(b, []byte("second"))
	b[len(b)-1] ^= 1 // a bit is lost on the way
	in := frame.NewReader(bytes.NewReader(b), 1<<20)
	for {
		content, err := in.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", content)
	}
	// Output:
	// first
	// frame: the checksum is wrong
}
