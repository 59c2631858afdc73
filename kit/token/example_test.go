package token_test

import (
	"fmt"

	"understudy/kit/token"
)

func Example() {
	key := make([]byte, token.KeySize)
	cursors, _ := token.New(key, "cursors")
	others, _ := token.New(key, "links")
	text := string(cursors.Append(nil, []byte("place 17")))
	data, err := cursors.Open(text, 8)
	fmt.Println(string(data), err)
	_, err = others.Open(text, 8)
	fmt.Println(err)
	// Output:
	// place 17 <nil>
	// token: the text is none of this sealer
}
