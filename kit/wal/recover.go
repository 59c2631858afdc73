// Opening a log after its process ended in any way.

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

// recover finds the files, cuts the newest behind its last whole entry, and opens it
// for writing.
func (l *Log) recover() error {
	h, known, err := readHeader(l.dir)
	if err != nil {
		return err
	}
	files, err := segmentsOf(l.dir)
	if err != nil {
		return err
	}
	if !known {
		return l.begin(files)
	}
	l.header = h
	if l.segments, err = l.keep(files); err != nil {
		return err
	}
	return l.openTail()
}

// begin makes the first file of a log. A crash may have left one without a header, and
// without entries.
func (l *Log) begin(files []uint64) error {
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

// keep returns the files of the log. Older ones are left from a removal, and one newer
// than the header knows from a rotation; a newer one with entries says that the newest
// header was lost.
func (l *Log) keep(files []uint64) (kept []uint64, err error) {
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
		return nil, fmt.Errorf("%w: %s has not the files from %d to %d", ErrDamaged, l.dir, l.header.first, l.header.last)
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

// openTail cuts the newest file behind its last whole entry, unless others stand behind
// it. What is behind it must not be taken for an entry later, so the bytes go.
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
		preallocate(f, l.size)
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.tail = newSegment(f, end.at, l.size)
	l.last, l.durable, l.cut = end.next-1, end.next-1, end.behind
	return nil
}

// segmentsOf lists the files of a folder, the oldest first.
func segmentsOf(dir string) (firsts []uint64, err error) {
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
