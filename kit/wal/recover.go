// Recover: opens a log, also after a crash.

package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// recover finds the files, truncates the newest file after its last complete entry, and opens it for writing.
func (l *Log) recover() error {
	h, known, err := readHeader(l.dir)
	if err != nil {
		return err
	}
	files, err := listSegments(l.dir)
	if err != nil {
		return err
	}
	if !known {
		return l.createFirst(files)
	}
	l.header = h
	if l.segments, err = l.selectSegments(files); err != nil {
		return err
	}
	return l.openTail()
}

// createFirst creates the first file of a log. A crash may have left a file without a header and without
// entries, which it removes.
func (l *Log) createFirst(files []uint64) error {
	for _, first := range files {
		end, err := scan(l.dir, first, nil)
		if err != nil {
			return err
		}
		if end.next != first {
			return fmt.Errorf("%w: %s has entries, and no header that is whole", ErrDamaged, l.dir)
		}
		if err := os.Remove(segmentPath(l.dir, first)); err != nil {
			return err
		}
	}
	tail, err := createSegment(l.dir, 1, l.size)
	if err != nil {
		return err
	}
	if err := errors.Join(l.writeHeader(1, 1), SyncFolder(l.dir)); err != nil {
		return errors.Join(err, tail.file.Close())
	}
	l.tail, l.segments = tail, []uint64{1}
	return nil
}

// selectSegments returns the files that belong to the log. It removes older files, which an interrupted removal
// left. A file newer than the header may be left from a rotation. If such a file has entries, the newest header
// was lost.
func (l *Log) selectSegments(files []uint64) (kept []uint64, err error) {
	var newer []uint64
	for _, first := range files {
		switch {
		case first < l.header.first:
			err = os.Remove(segmentPath(l.dir, first))
		case first <= l.header.last:
			kept = append(kept, first)
		default:
			newer = append(newer, first)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(kept) == 0 || kept[0] != l.header.first || kept[len(kept)-1] != l.header.last {
		return nil, fmt.Errorf("%w: some of the files from %d to %d in %s are missing", ErrDamaged, l.header.first, l.header.last, l.dir)
	}
	for _, first := range newer {
		before, err := scan(l.dir, kept[len(kept)-1], nil)
		if err != nil {
			return nil, err
		}
		end, err := scan(l.dir, first, nil)
		if err != nil {
			return nil, err
		}
		switch {
		case before.next == first:
			kept = append(kept, first)
		case end.next != first:
			return nil, fmt.Errorf("%w: entries %d to %d are missing", ErrDamaged, before.next, first-1)
		default:
			if err := os.Remove(segmentPath(l.dir, first)); err != nil {
				return nil, err
			}
		}
	}
	return kept, nil
}

// openTail opens the newest file for writing. It truncates the file after its last complete entry, so that the
// bytes after it are never read as an entry. If complete entries follow those bytes, it returns ErrDamaged.
func (l *Log) openTail() error {
	first := l.segments[len(l.segments)-1]
	end, err := scan(l.dir, first, nil)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(segmentPath(l.dir, first), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err = f.Truncate(end.at); err == nil {
		reserveSpace(f, l.size)
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.tail = newSegment(f, end.at, l.size)
	l.last, l.durable, l.cut = end.next-1, end.next-1, end.trailing
	return nil
}

// listSegments returns the numbers in the file names of a folder, the oldest first.
func listSegments(dir string) (firsts []uint64, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	for _, name := range names {
		first, bad := strconv.ParseUint(strings.TrimSuffix(filepath.Base(name), ".wal"), 10, 64)
		if bad != nil || segmentPath(dir, first) != name {
			return nil, fmt.Errorf("%w: a file with the name %q", ErrDamaged, name)
		}
		firsts = append(firsts, first)
	}
	slices.Sort(firsts)
	return firsts, err
}
