package docs_test

import (
	"fmt"
	"io/fs"
	"strings"

	"understudy/docs"
)

func ExampleFiles() {
	page, err := fs.ReadFile(docs.Files, "start/install.md")
	if err != nil {
		panic(err)
	}
	title, _, _ := strings.Cut(string(page), "\n")
	fmt.Println(title)
	// Output: # Install
}
