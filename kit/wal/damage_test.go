// Files that are not what was written.

package wal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"understudy/internal/checktest"
)

// files returns what stands in a folder.
func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, n := range names {
		if all[n.Name()], err = os.ReadFile(filepath.Join(dir, n.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func write(t testing.TB, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// ends are where the records of a file end.
func ends(data []byte) (at []int) {
	for end := 0; len(data)-end > recordHeaderSize; {
		n := recordSize(data[end:], int64(len(data)-end-recordHeaderSize))
		if n == 0 || !isValid(data[end:end+int(n)], uint64(len(at)+1)) {
			break
		}
		end += int(n)
		at = append(at, end)
	}
	return at
}

// mustHold opens a damaged log: it has the first n entries, and takes further ones.
func mustHold(t testing.TB, dir string, n int, what string, at int) {
	t.Helper()
	l, err := Open(dir, Options{SegmentSize: 4096})
	if err != nil {
		t.Fatalf("%s at %d: %v", what, at, err)
	}
	if int(l.LastNumber()) != n {
		t.Fatalf("%s at %d: last %d, want %d", what, at, l.LastNumber(), n)
	}
	put(t, l, 1)
	holds(t, l, 1, uint64(n+1))
	closed(t, l)
}

// TestCutAtEveryByte cuts the newest file at every byte: the whole entries before it
// are there.
func TestCutAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, 4096)
	put(t, l, 12)
	closed(t, l)
	kept := files(t, dir)
	name := filepath.Base(segmentPath(dir, 1))
	data := kept[name]
	at := ends(data)
	if len(at) != 12 {
		t.Fatalf("%d records", len(at))
	}
	whole := 0
	for cut := range at[11] + 20 {
		for whole < len(at) && at[whole] <= cut {
			whole++
		}
		write(t, dir, name, data[:cut])
		write(t, dir, headerName, kept[headerName])
		mustHold(t, dir, whole, "cut", cut)
	}
}

// TestFlipEveryByte changes every byte of the newest file: the entries before it are
// there, and no other. Where whole ones stand behind it the file stays as it is.
func TestFlipEveryByte(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, 4096)
	put(t, l, 12)
	closed(t, l)
	kept := files(t, dir)
	name := filepath.Base(segmentPath(dir, 1))
	data := kept[name]
	at, whole := ends(data), 0
	for i := range at[11] {
		if at[whole] <= i {
			whole++
		}
		for _, flip := range []byte{0xff, 1, 0x80} {
			changed := append([]byte(nil), data...)
			changed[i] ^= flip
			write(t, dir, name, changed)
			if whole < len(at)-1 {
				damaged(t, dir, "a flip")
				if !bytes.Equal(files(t, dir)[name], changed) {
					t.Fatalf("byte %d: the file was changed", i)
				}
				continue
			}
			l := open(t, dir, 4096)
			if int(l.LastNumber()) != whole || l.CutBytes() == 0 {
				t.Fatalf("byte %d: last %d, want %d, cut %d", i, l.LastNumber(), whole, l.CutBytes())
			}
			holds(t, l, 1, uint64(whole))
			closed(t, l)
		}
	}
}

// The error of damage names the entry that cannot be read, and those behind it.
func TestDamageBeforeWholeEntriesIsTold(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, 4096)
	put(t, l, 12)
	closed(t, l)
	name := filepath.Base(segmentPath(dir, 1))
	data := files(t, dir)[name]
	data[ends(data)[7]+recordHeaderSize] ^= 1 // entry 9
	write(t, dir, name, data)
	read := 0
	var last error
	for _, last = range Read(dir, 0) {
		if last == nil {
			read++
		}
	}
	if read != 8 {
		t.Errorf("%d entries were read", read)
	}
	checktest.MustTrue(t, last != nil, "last is nil")
	checktest.Contains(t, last.Error(), "entry 9 in ", "last.Error()")
	checktest.Contains(t, last.Error(), "3 from entry 10 on", "last.Error()")
}

// A file before the newest one is not cut: what is behind the damage was durable.
func TestDamageInAnOlderFile(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, 4096)
	put(t, l, 300)
	closed(t, l)
	name := filepath.Base(segmentPath(dir, 1))
	data := files(t, dir)[name]
	for i := 0; i < len(data); i += 37 {
		changed := append([]byte(nil), data...)
		changed[i] ^= 1
		write(t, dir, name, changed)
		l := open(t, dir, 4096)
		if _, err := entries(t, l, 0); !errors.Is(err, ErrDamaged) || l.LastNumber() != 300 {
			t.Fatalf("byte %d: %v, last %d", i, err, l.LastNumber())
		}
		closed(t, l)
	}
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	damaged(t, dir, "without the first file")
}

// damaged checks that a folder is neither opened nor read.
func damaged(t *testing.T, dir, why string) {
	t.Helper()
	if _, err := Open(dir, Options{SegmentSize: 4096}); !errors.Is(err, ErrDamaged) {
		t.Errorf("open, %s: %v", why, err)
	}
	var last error
	for _, err := range Read(dir, 0) {
		last = err
	}
	if !errors.Is(last, ErrDamaged) {
		t.Errorf("read, %s: %v", why, last)
	}
}

// TestHeader changes every byte of the header that is used, and some that are not: one
// slot is always whole.
func TestHeader(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, 4096)
	put(t, l, 300)
	closed(t, l)
	data := files(t, dir)[headerName]
	for i := range data {
		if i%slotSize >= slotUsed && i%64 != 0 {
			continue
		}
		changed := append([]byte(nil), data...)
		changed[i] ^= 0x55
		write(t, dir, headerName, changed)
		l := open(t, dir, 4096)
		holds(t, l, 1, 300)
		closed(t, l)
	}
	write(t, dir, headerName, make([]byte, len(data)))
	damaged(t, dir, "no slot")
}

// Crashes between the steps of making, rotating and removing lose nothing.
func TestCrashBetweenSteps(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, filepath.Base(segmentPath(dir, 1)), make([]byte, 4096)) // made, without a header
	l := open(t, dir, 4096)
	put(t, l, 40)
	holds(t, l, 1, 40)
	closed(t, l)
	write(t, dir, filepath.Base(segmentPath(dir, 41)), make([]byte, 4096)) // rotated, not in the header
	l = open(t, dir, 4096)
	put(t, l, 400)
	holds(t, l, 1, 440)
	before := files(t, dir)
	if err := l.RemoveBefore(300); err != nil {
		t.Fatal(err)
	}
	first := l.FirstNumber()
	closed(t, l)
	name := filepath.Base(segmentPath(dir, 1))
	write(t, dir, name, before[name]) // in the header, not removed yet
	l = open(t, dir, 4096)
	holds(t, l, first, 440)
	if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the removed file is there")
	}
	closed(t, l)
	write(t, dir, "abc.wal", nil)
	damaged(t, dir, "a file that is none of the log's")
}

// An entry that was cut off does not come back when new ones are written before it. A crash of the
// machine may keep a part of an append from the disk, and not what comes behind it.
func TestCutStaysCut(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, 4096)
	for range 5 {
		if _, err := l.Append(t.Context(), bytes.Repeat([]byte("x"), 600)); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, l)
	name := filepath.Base(segmentPath(dir, 1))
	data := files(t, dir)[name]
	clear(data[1232:2048]) // the third from its beginning to the end of a sector in the fourth
	write(t, dir, name, data)
	l = open(t, dir, 4096)
	if _, err := l.Append(t.Context(), bytes.Repeat([]byte("y"), 600)); err != nil {
		t.Fatal(err)
	}
	closed(t, l)
	l = open(t, dir, 4096)
	if l.LastNumber() != 3 || l.CutBytes() != 0 {
		t.Errorf("last %d, cut %d", l.LastNumber(), l.CutBytes())
	}
	closed(t, l)
}

// FuzzSegment opens a log whose file is any bytes.
func FuzzSegment(f *testing.F) {
	dir := f.TempDir()
	l := open(f, dir, 4096)
	put(f, l, 5)
	closed(f, l)
	kept := files(f, dir)
	f.Add(kept[filepath.Base(segmentPath(dir, 1))][:300], kept[headerName])
	f.Add([]byte{1, 0, 0, 0}, []byte{})
	f.Fuzz(func(t *testing.T, data, header []byte) {
		dir := t.TempDir()
		write(t, dir, filepath.Base(segmentPath(dir, 1)), data)
		write(t, dir, headerName, header)
		l, err := Open(dir, Options{SegmentSize: 4096})
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		last := l.LastNumber()
		if n, err := l.Append(t.Context(), []byte("one more")); err != nil || n != last+1 {
			t.Fatal(n, err)
		}
		closed(t, l)
	})
}
