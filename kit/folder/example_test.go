package folder_test

import (
	"fmt"

	"understudy/kit/folder"
)

func ExampleMerge() {
	listing := func(pairs ...string) *folder.Folder {
		f := folder.New(len(pairs)/2, 64)
		for i := 0; i < len(pairs); i += 2 {
			_ = f.Add([]byte(pairs[i]), []byte(pairs[i+1]))
		}
		return f
	}
	before := listing("a", "1", "b", "1", "d", "1")
	after := listing("a", "1", "c", "1", "d", "2")
	folder.Merge(before, after, func(what folder.Difference, key, _, _ []byte) bool {
		fmt.Printf("%s %s\n", key, what)
		return true
	})
	// Output:
	// b removed
	// c added
	// d changed
}
