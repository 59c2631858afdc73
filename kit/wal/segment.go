// Segment: a file of the log.

package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// segment is the file that is being written. Its name is the number of its first entry.
type segment struct {
	file   *os.File
	at     int64 // the offset of the next record
	zeroed int64 // the offset up to which the file has been written, with records or zeros
	zeros  []byte
}

// zeroStep is the number of zero bytes that are written at once, ahead of the records. Flushing a page that was
// written before needs no change of metadata.
const zeroStep = 1 << 20

// flushFile waits until written data are on the disk. Tests replace it to count flushes and to make them fail.
var flushFile = flush

func newSegment(f *os.File, at, size int64) *segment {
	return &segment{file: f, at: at, zeroed: at, zeros: make([]byte, min(zeroStep, size))}
}

func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d.wal", first))
}

// createSegment creates an empty file. An existing file of that name never held durable entries, because the
// header does not list it; it is truncated.
func createSegment(dir string, first uint64, size int64) (*segment, error) {
	f, err := os.OpenFile(segmentPath(dir, first), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	reserveSpace(f, size)
	if err := errors.Join(f.Sync(), SyncFolder(dir)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return newSegment(f, 0, size), nil
}

// write appends records to the file and waits until they are durable.
func (s *segment) write(records []byte) error {
	end := s.at + int64(len(records))
	for s.zeroed < end {
		if _, err := s.file.WriteAt(s.zeros, s.zeroed); err != nil {
			return err
		}
		s.zeroed += int64(len(s.zeros))
	}
	if _, err := s.file.WriteAt(records, s.at); err != nil {
		return err
	}
	if err := flushFile(s.file); err != nil {
		return err
	}
	s.at = end
	return nil
}

// seal truncates the file after its last record and closes it.
func (s *segment) seal() error {
	return errors.Join(s.file.Truncate(s.at), s.file.Sync(), s.file.Close())
}

// SyncFolder makes the file names in a folder durable, if the operating system supports it.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(syncDir(f), f.Close())
}
