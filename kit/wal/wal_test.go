package wal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"understudy/internal/checktest"
)

func open(t testing.TB, dir string, size int64) *Log {
	t.Helper()
	l, err := Open(dir, Options{SegmentSize: size})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closed(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// put appends entries that tell their number, of lengths that differ.
func put(t testing.TB, l *Log, n int) {
	t.Helper()
	for range n {
		want := l.LastNumber() + 1
		if got, err := l.Append(t.Context(), entryOf(want)); err != nil || got != want {
			t.Fatalf("entry %d, want %d: %v", got, want, err)
		}
	}
}

func entryOf(number uint64) []byte {
	return fmt.Appendf(nil, "entry %d%s", number, bytes.Repeat([]byte{'.'}, int(number*7%40)))
}

// entries reads a log, and fails when an entry is not what was appended.
func entries(t testing.TB, l *Log, from uint64) (numbers []uint64, err error) {
	t.Helper()
	for e, err := range l.Entries(from) {
		if err != nil {
			return numbers, err
		}
		if !bytes.Equal(e.Data, entryOf(e.Number)) {
			t.Fatalf("entry %d is %q", e.Number, e.Data)
		}
		numbers = append(numbers, e.Number)
	}
	return numbers, nil
}

// holds checks that the entries from a to b are there and no others.
func holds(t testing.TB, l *Log, a, b uint64) {
	t.Helper()
	got, err := entries(t, l, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range got {
		if n != a+uint64(i) {
			t.Fatalf("entry %d at %d", n, i)
		}
	}
	checktest.MustEqual(t, uint64(len(got)), b+1-a, "uint64(len(got))")
	checktest.MustEqual(t, l.FirstNumber(), a, "l.FirstNumber()")
	checktest.MustEqual(t, l.LastNumber(), b, "l.LastNumber()")
}

func TestAppendAndRead(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, 4096)
	holds(t, l, 1, 0)
	put(t, l, 300)
	holds(t, l, 1, 300)
	if files, err := listSegments(dir); err != nil || len(files) < 3 {
		t.Errorf("%v, %v", files, err)
	}
	for from := range uint64(302) {
		got, err := entries(t, l, from)
		want := 300 - int(max(from, 1)) + 1
		checktest.MustNoError(t, err, "from %d", from)
		checktest.MustEqual(t, len(got), want, "from %d: len(got)", from)
		checktest.MustTrue(t, !(want > 0 && got[0] != max(from, 1)),
			"from %d: want > 0 && got[0] != max(from, 1); want is %v, max(from, 1) is %v", from, want, max(from, 1))
	}
	n := 0
	for e, err := range Read(dir, 200) {
		if err != nil || e.Number != 200+uint64(n) {
			t.Fatal(e.Number, err)
		}
		n++
	}
	if n != 101 {
		t.Errorf("read %d", n)
	}
	closed(t, l)
	for range 5 {
		l = open(t, dir, 4096)
		put(t, l, 3)
		closed(t, l)
	}
	l = open(t, dir, 1<<20) // another size of segment
	put(t, l, 5)
	holds(t, l, 1, 320)
	if l.CutBytes() != 0 {
		t.Errorf("cut %d", l.CutBytes())
	}
	closed(t, l)
}

func TestRefused(t *testing.T) {
	l := open(t, t.TempDir(), 4096)
	for _, data := range [][]byte{nil, {}, make([]byte, 1025)} {
		if _, err := l.Append(t.Context(), data); !errors.Is(err, ErrSize) {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
	closed(t, l)
	closed(t, l)
	if _, err := l.Append(t.Context(), []byte("x")); !errors.Is(err, ErrClosed) || !errors.Is(l.Err(), ErrClosed) {
		t.Error(err, l.Err())
	}
	if err := l.RemoveBefore(2); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := Open(t.TempDir(), Options{SegmentSize: 100}); err == nil {
		t.Error("a segment of 100 bytes")
	}
}

func TestRemoveBefore(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, 4096)
	put(t, l, 500)
	if err := l.RemoveBefore(250); err != nil {
		t.Fatal(err)
	}
	first := l.FirstNumber()
	if first < 100 || first > 250 {
		t.Errorf("first %d", first)
	}
	holds(t, l, first, 500)
	if err := l.RemoveBefore(1 << 60); err != nil {
		t.Fatal(err)
	}
	first = l.FirstNumber()
	holds(t, l, first, 500)
	closed(t, l)
	l = open(t, dir, 4096)
	put(t, l, 200)
	holds(t, l, first, 700)
	closed(t, l)
}

// Appends from many goroutines share flushes, and each is told its own number.
func TestGroups(t *testing.T) {
	var flushes atomic.Int64
	flushFile = func(f *os.File) error { flushes.Add(1); return flush(f) }
	defer func() { flushFile = flush }()
	l := open(t, t.TempDir(), 1<<16)
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() {
			for i := range 50 {
				data := fmt.Appendf(nil, "%d of %d", i, w)
				n, err := l.Append(t.Context(), data)
				if err != nil {
					t.Error(err)
					return
				}
				if n > l.LastNumber() {
					t.Errorf("%d is not durable", n)
				}
				for e, err := range l.Entries(n) {
					if err != nil || !bytes.Equal(e.Data, data) {
						t.Errorf("%d: %q, %v", n, e.Data, err)
					}
					break
				}
			}
		})
	}
	wg.Wait()
	if n := flushes.Load(); n > 800 || l.LastNumber() != 1600 {
		t.Errorf("%d entries in %d flushes", l.LastNumber(), n)
	}
	closed(t, l)
}

// After a flush that failed nothing is appended: what the disk holds is not known.
func TestFlushFails(t *testing.T) {
	dir, bad := t.TempDir(), errors.New("disk")
	l := open(t, dir, 4096)
	put(t, l, 20)
	flushFile = func(*os.File) error { return bad }
	_, err := l.Append(t.Context(), entryOf(21))
	flushFile = flush
	if !errors.Is(err, bad) || l.LastNumber() != 20 {
		t.Errorf("%v, last %d", err, l.LastNumber())
	}
	if _, err := l.Append(t.Context(), entryOf(22)); !errors.Is(err, bad) || !errors.Is(l.Err(), bad) {
		t.Errorf("%v", err)
	}
	if err := l.Close(); !errors.Is(err, bad) {
		t.Error(err)
	}
	l = open(t, dir, 4096)
	if last := l.LastNumber(); last != 20 && last != 21 {
		t.Errorf("last %d", last)
	}
	put(t, l, 100)
	holds(t, l, 1, l.LastNumber())
	closed(t, l)
}

// An append whose caller gives up does not wait, and no later one is in doubt.
func TestCancelled(t *testing.T) {
	l := open(t, t.TempDir(), 4096)
	block := make(chan struct{})
	flushFile = func(f *os.File) error { <-block; return flush(f) }
	defer func() { flushFile = flush }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Append(ctx, entryOf(1)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(block)
	if n, err := l.Append(t.Context(), entryOf(2)); err != nil || n != 2 {
		t.Error(n, err)
	}
	holds(t, l, 1, 2)
	closed(t, l)
}

// TestRandom appends, removes, reopens and cuts at random.
func TestRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 24))
	dir := t.TempDir()
	l := open(t, dir, 4096)
	first, last := uint64(1), uint64(0)
	for range 60 {
		switch chance.IntN(4) {
		case 0, 1:
			put(t, l, chance.IntN(80))
			last = l.LastNumber()
		case 2:
			if err := l.RemoveBefore(chance.Uint64N(last + 2)); err != nil {
				t.Fatal(err)
			}
			if l.FirstNumber() < first {
				t.Fatalf("first %d, before %d", l.FirstNumber(), first)
			}
			first = l.FirstNumber()
		case 3:
			closed(t, l)
			l = open(t, dir, 4096)
		}
		holds(t, l, first, last)
	}
	closed(t, l)
}
