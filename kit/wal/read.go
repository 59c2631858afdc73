// This file reads the entries of a log from its files.

package wal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
)

// Entry is an entry of a log.
type Entry struct {
	Number uint64
	Data   []byte // the bytes of the entry, valid until the next entry is read
}

// Size returns how many bytes the entry occupies in its file.
func (e Entry) Size() int64 { return recordHeaderSize + int64(len(e.Data)) }

// Entries yields the durable entries with numbers from from on, the oldest first, up to the newest at the time
// of the call. Entries may be appended meanwhile. An error is yielded last: ErrDamaged or an error of the file
// system, also if RemoveBefore removes a file meanwhile.
func (l *Log) Entries(from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		l.mu.Lock()
		segments, last := append([]uint64(nil), l.segments...), l.durable
		l.mu.Unlock()
		readEntries(l.dir, segments, from, last, yield)
	}
}

// Read yields the complete entries of a folder with numbers from from on, without a Log. Another process may
// append meanwhile; Read changes nothing. It reads the newest file up to the first incomplete entry. An error
// is yielded last: ErrDamaged or an error of the file system.
func Read(dir string, from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		files, err := ListFiles(dir)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		readEntries(dir, files, from, math.MaxUint64, yield)
	}
}

// ListFiles returns the number of the first entry of each file, the oldest first. A reader that wants the
// newest entries first reads the files in reverse order. ListFiles returns ErrDamaged or an error of the file
// system.
func ListFiles(dir string) ([]uint64, error) {
	h, known, err := readHeader(dir)
	if err != nil {
		return nil, err
	}
	files, err := listSegments(dir)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, fmt.Errorf("%w: no file in %s has a complete header", ErrDamaged, dir)
	}
	for len(files) > 0 && files[0] < h.first {
		files = files[1:]
	}
	if len(files) == 0 || files[0] != h.first || files[len(files)-1] < h.last {
		return nil, fmt.Errorf("%w: some of the files from %d to %d in %s are missing", ErrDamaged, h.first, h.last, dir)
	}
	return files, nil
}

// SumSizes returns the size of all files of a folder that have entries. It is a good estimate of the sum of all Entry.Size:
// up to 1 MiB at the end of the newest file may still be empty. Errors are those of ListFiles.
func SumSizes(dir string) (total int64, err error) {
	files, err := ListFiles(dir)
	for _, first := range files {
		info, err := os.Stat(segmentPath(dir, first))
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, err
}

// readEntries yields the entries of the given files with numbers from from to last.
func readEntries(dir string, segments []uint64, from, last uint64, yield func(Entry, error) bool) {
	for i, first := range segments {
		newest := i == len(segments)-1
		if !newest && segments[i+1] <= from || first > last {
			continue
		}
		more := true
		end, err := scan(dir, first, func(e Entry) bool {
			if e.Number >= from && e.Number <= last {
				more = yield(e, nil)
			}
			return more && e.Number < last
		})
		if !more {
			return
		}
		want := last
		if !newest {
			want = min(last, segments[i+1]-1)
		}
		if err == nil && end.next <= want && (last != math.MaxUint64 || !newest) {
			err = fmt.Errorf("%w: entry %d in %s", ErrDamaged, end.next, segmentPath(dir, first))
		}
		if err != nil {
			yield(Entry{}, err)
			return
		}
	}
}

// end is the position in a file after its last complete record.
type end struct {
	next     uint64 // the number that the next entry would have
	at       int64
	trailing int64 // the number of bytes after that position, without the zeros at the end of the file
}

// scan reads the records of a file until a record is incomplete or yield returns false. Complete records after
// an incomplete one are ErrDamaged.
func scan(dir string, first uint64, yield func(Entry) bool) (end, error) {
	e := end{next: first}
	f, err := os.Open(segmentPath(dir, first))
	if errors.Is(err, os.ErrNotExist) {
		return e, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return e, err
	}
	defer f.Close() // an error of Close does not matter after reading
	info, err := f.Stat()
	if err != nil {
		return e, err
	}
	r, record := bufio.NewReaderSize(f, 256<<10), []byte(nil)
	for {
		head, err := r.Peek(recordHeaderSize)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return e, err
		}
		size := recordSize(head, info.Size()-e.at-recordHeaderSize)
		if size == 0 {
			break
		}
		record = growBuffer(record, int(size))
		if _, err := io.ReadFull(r, record); err != nil {
			return e, err
		}
		if !isValid(record, e.next) {
			break
		}
		e.next++
		e.at += size
		if yield != nil && !yield(Entry{Number: e.next - 1, Data: record[recordHeaderSize:]}) {
			return e, nil
		}
	}
	if e.trailing, err = countAfter(f, e.at); err == nil {
		err = e.checkTrailing(f, info.Size())
	}
	return e, err
}

const (
	maxTries   = 1000 // how many times bytes that look like a record may turn out not to be one
	sectorSize = 512  // the number of bytes that a disk writes atomically
)

// checkTrailing returns ErrDamaged if complete records follow an incomplete one. A crash can also leave such
// records if part of the last append did not reach the disk. That part is then zeros, and checkTrailing returns
// nil.
func (e end) checkTrailing(f *os.File, size int64) error {
	r, record := bufio.NewReaderSize(io.NewSectionReader(f, e.at, size-e.at), 64<<10), []byte(nil)
	later, whole, zeros := uint64(0), 0, int64(0)
	for at, tries := e.at, 0; at < e.at+e.trailing && tries < maxTries; {
		head, err := r.Peek(recordHeaderSize)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		step, number := int64(1), binary.LittleEndian.Uint64(head[8:])
		if n := recordSize(head, size-at-recordHeaderSize); n > 0 && number-e.next <= uint64(e.trailing) {
			record = growBuffer(record, int(n))
			if _, err := f.ReadAt(record, at); err != nil {
				return err
			}
			tries++
			if isValid(record, number) {
				step, tries, whole = n, 0, whole+1
			}
		}
		if step > 1 && later == 0 {
			if later = number; at == e.at && later == e.next {
				return nil // the incomplete record is the entry that was being written at the crash
			}
		}
		if zeros++; head[0] != 0 {
			zeros = 0
		}
		if _, err := r.Discard(int(step)); err != nil {
			return err
		}
		if at += step; later == 0 && at%sectorSize == 0 && zeros >= min(sectorSize, at-e.at) {
			return nil // a crash interrupted the last append
		}
	}
	if whole == 0 {
		return nil
	}
	const text = "%w: entry %d in %s cannot be read, and whole entries after it (%d from entry %d on) cannot be connected to those before"
	return fmt.Errorf(text, ErrDamaged, e.next, f.Name(), whole, later)
}

// countAfter returns the number of bytes from a position to the last byte that is not zero.
func countAfter(f *os.File, at int64) (n int64, err error) {
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	for seen := int64(0); ; {
		got, err := f.Read(buf)
		if used := len(bytes.TrimRight(buf[:got], "\x00")); used > 0 {
			n = seen + int64(used)
		}
		seen += int64(got)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// growBuffer returns a buffer of n bytes, buf itself if it is large enough.
func growBuffer(buf []byte, n int) []byte {
	if cap(buf) < n {
		return make([]byte, n, 2*n)
	}
	return buf[:n]
}
