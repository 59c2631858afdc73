// Reading entries.

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
	Data   []byte // valid until the next entry is read
}

// Entries reads the durable entries from a number on, the oldest first, to what was
// the newest when it began. It may be called while entries are appended. The error
// comes last: ErrDamaged, or the file system's; a file that RemoveBefore removes
// meanwhile gives one too.
func (l *Log) Entries(from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		l.mu.Lock()
		segments, last := append([]uint64(nil), l.segments...), l.durable
		l.mu.Unlock()
		read(l.dir, segments, from, last, yield)
	}
}

// Read reads the whole entries of a folder from a number on, without a Log: also while
// another process appends to it. It changes nothing. The newest file is read up to
// what is no whole entry. The error comes last: ErrDamaged, or the file system's.
func Read(dir string, from uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		files, err := Files(dir)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		read(dir, files, from, math.MaxUint64, yield)
	}
}

// Files are the numbers that the files of a folder begin with, the oldest first. A reader
// that wants the newest entries first reads from each, beginning with the last. Errors:
// ErrDamaged, the file system's.
func Files(dir string) ([]uint64, error) {
	h, known, err := readHeader(dir)
	if err != nil {
		return nil, err
	}
	files, err := segmentsOf(dir)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, fmt.Errorf("%w: %s has no header that is whole", ErrDamaged, dir)
	}
	for len(files) > 0 && files[0] < h.first {
		files = files[1:]
	}
	if len(files) == 0 || files[0] != h.first || files[len(files)-1] < h.last {
		return nil, fmt.Errorf("%w: %s has not the files from %d to %d", ErrDamaged, dir, h.first, h.last)
	}
	return files, nil
}

func read(dir string, segments []uint64, from, last uint64, yield func(Entry, error) bool) {
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

// end is where the whole records of a file end.
type end struct {
	next   uint64 // the number of the entry that would follow
	at     int64
	behind int64 // the bytes behind it, without the zeros at the end of the file
}

// scan reads the records of a file until one is not whole, or yield wants no more. Whole
// records behind one that is not are ErrDamaged.
func scan(dir string, first uint64, yield func(Entry) bool) (end, error) {
	e := end{next: first}
	f, err := os.Open(segmentPath(dir, first))
	if errors.Is(err, os.ErrNotExist) {
		return e, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return e, err
	}
	defer f.Close() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return e, err
	}
	r, record := bufio.NewReaderSize(f, 256<<10), []byte(nil)
	for {
		head, err := r.Peek(recordHead)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return e, err
		}
		size := sizeOf(head, info.Size()-e.at-recordHead)
		if size == 0 {
			break
		}
		record = grown(record, int(size))
		if _, err := io.ReadFull(r, record); err != nil {
			return e, err
		}
		if !valid(record, e.next) {
			break
		}
		e.next++
		e.at += size
		if yield != nil && !yield(Entry{Number: e.next - 1, Data: record[recordHead:]}) {
			return e, nil
		}
	}
	if e.behind, err = behind(f, e.at); err == nil {
		err = e.checkBehind(f, info.Size())
	}
	return e, err
}

const (
	mostTries = 1000 // pieces of a file that look like a record and are none
	sector    = 512  // bytes that a disk writes as a whole
)

// checkBehind returns ErrDamaged when whole records stand behind the end.
// A crash may leave some, too, behind a part of an append that it kept from the disk: that part is zeros.
func (e end) checkBehind(f *os.File, size int64) error {
	r, record := bufio.NewReaderSize(io.NewSectionReader(f, e.at, size-e.at), 64<<10), []byte(nil)
	later, whole, zeros := uint64(0), 0, int64(0)
	for at, tries := e.at, 0; at < e.at+e.behind && tries < mostTries; {
		head, err := r.Peek(recordHead)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		step, number := int64(1), binary.LittleEndian.Uint64(head[8:])
		if n := sizeOf(head, size-at-recordHead); n > 0 && number-e.next <= uint64(e.behind) {
			record = grown(record, int(n))
			if _, err := f.ReadAt(record, at); err != nil {
				return err
			}
			tries++
			if valid(record, number) {
				step, tries, whole = n, 0, whole+1
			}
		}
		if step > 1 && later == 0 {
			if later = number; at == e.at && later == e.next {
				return nil // it was being written
			}
		}
		if zeros++; head[0] != 0 {
			zeros = 0
		}
		if _, err := r.Discard(int(step)); err != nil {
			return err
		}
		if at += step; later == 0 && at%sector == 0 && zeros >= min(sector, at-e.at) {
			return nil // a crash interrupted an append
		}
	}
	if whole == 0 {
		return nil
	}
	return fmt.Errorf("%w: entry %d in %s cannot be read, and whole entries behind it, %d from entry %d on, cannot be joined to those before",
		ErrDamaged, e.next, f.Name(), whole, later)
}

// behind counts the bytes from a place to the last one that is not zero.
func behind(f *os.File, at int64) (n int64, err error) {
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

func grown(buf []byte, n int) []byte {
	if cap(buf) < n {
		return make([]byte, n, 2*n)
	}
	return buf[:n]
}
