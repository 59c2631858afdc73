package wal_test

import (
	"context"
	"fmt"
	"os"

	"understudy/kit/wal"
)

func Example() {
	dir, err := os.MkdirTemp("", "wal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	l, err := wal.Open(dir, wal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range []string{"sign-in ada", "read CA1", "sign-out ada"} {
		if _, err := l.Append(context.Background(), []byte(line)); err != nil {
			fmt.Println(err)
		}
	}
	for e, err := range l.Entries(2) {
		fmt.Println(e.Number, string(e.Data), err)
	}
	fmt.Println(l.Close())
	// Output:
	// 2 read CA1 <nil>
	// 3 sign-out ada <nil>
	// <nil>
}
