//go:build unix

package folder

import (
	"errors"
	"syscall"
	"testing"
)

// What does not fit offsets of four bytes is refused; the blob is not touched
// for that.
func TestFull(t *testing.T) {
	// Never written to, so never there; and not of Go's heap, of which the race
	// detector keeps a shadow.
	huge, err := syscall.Mmap(-1, 0, 1<<32, syscall.PROT_READ, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(huge) }()
	if _, err := Wrap(huge, 0); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	f, err := Wrap(huge[:1<<32-1], 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Add([]byte("k"), nil); !errors.Is(err, ErrFull) || f.Len() != 0 {
		t.Error(err)
	}
}
