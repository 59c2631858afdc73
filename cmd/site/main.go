// Command site writes the documentation as HTML files into a folder. It is run as: site FOLDER.
package main

import (
	"fmt"
	"os"

	"understudy/docs"
	"understudy/internal/manual"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: site FOLDER")
		os.Exit(2)
	}
	m, err := manual.New(docs.Files, "")
	if err == nil {
		err = m.Write(os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Println("open", os.Args[1]+"/index.html")
}
