// A segment is a file of the log.

package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// segment is the file that is written. It begins with the first record: its name is
// the number of the entry.
type segment struct {
	file   *os.File
	at     int64 // where the next record goes
	zeroed int64 // up to here the file has been written
	zeros  []byte
}

// zeroStep is how many bytes are written with zeros at once, before records are: to
// flush a page that was written before needs no metadata.
const zeroStep = 1 << 20

// flushFile makes what was written durable. Tests count it and have it fail.
var flushFile = flush

func newSegment(f *os.File, at, size int64) *segment {
	return &segment{file: f, at: at, zeroed: at, zeros: make([]byte, min(zeroStep, size))}
}

func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d.wal", first))
}

// createSegment makes an empty file. One that is there holds nothing that was ever
// durable, for the header does not know it.
func createSegment(dir string, first uint64, size int64) (*segment, error) {
	f, err := os.OpenFile(segmentPath(dir, first), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	preallocate(f, size)
	if err := errors.Join(f.Sync(), SyncFolder(dir)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return newSegment(f, 0, size), nil
}

// write makes records durable behind those that are there.
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

// seal ends the file behind its last record.
func (s *segment) seal() error {
	return errors.Join(s.file.Truncate(s.at), s.file.Sync(), s.file.Close())
}

// SyncFolder puts the names in a folder on the disk, where the system can.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(syncDir(f), f.Close())
}
