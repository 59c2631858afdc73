// Gather: bodies come out as they went in.

package body

import (
	"bytes"
	"io"
	"testing"
)

// FuzzGather: bodies come out as they went in, whatever was expected.
func FuzzGather(f *testing.F) {
	f.Add([]byte("{}"), int64(0), uint(1))
	f.Add([]byte("x"), int64(maxKept+1), uint(3<<20))
	f.Add([]byte("abc"), int64(2<<20), uint(2<<20/3))
	c := NewReader("x", 64<<20)
	f.Fuzz(func(t *testing.T, part []byte, expected int64, times uint) {
		body := bytes.Repeat(part, int(times%uint(4<<20/max(len(part), 1)+1)))
		got, err := c.gather(io.MultiReader(bytes.NewReader(body[:len(body)/3]), bytes.NewReader(body[len(body)/3:])), max(expected, 0)%(5<<20))
		if err != nil || !bytes.Equal(got, body) {
			t.Fatalf("%d bytes of %d, expected %d: %v", len(got), len(body), expected, err)
		}
	})
}
