// Commit: writes groups of entries, creates files and removes old ones.

package wal

import (
	"os"
	"runtime"
)

// runCommitter writes one group after the other until the log is closed. After an error it writes nothing more,
// because the contents of the disk are unknown until the next Open.
func (l *Log) runCommitter() {
	defer close(l.ended)
	before := 0
	for range l.wake {
		g := l.takeGroup(before)
		before = g.count
		if g.err = l.writeGroup(g); g.err == nil {
			l.mu.Lock()
			l.durable += uint64(g.count)
			l.mu.Unlock()
		}
		close(g.done)
	}
	if err := l.tail.file.Close(); err != nil {
		l.setError(err)
	}
}

// takeGroup takes the current group and starts a new group. before is the number of callers of the previous group. They
// usually append again now, so takeGroup lets them run first to share this flush.
func (l *Log) takeGroup(before int) *group {
	for range before {
		l.mu.Lock()
		n := l.next.count
		l.mu.Unlock()
		if n >= before {
			break
		}
		runtime.Gosched()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.next
	l.next = newGroup()
	return g
}

// writeGroup makes a group durable, in a new file if the current one is full.
func (l *Log) writeGroup(g *group) error {
	l.mu.Lock()
	err, first := l.broken, l.durable+1
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if l.tail.at > 0 && l.tail.at+int64(len(g.buf)) > l.size {
		if err := l.rotate(first); err != nil {
			return l.setError(err)
		}
	}
	if err := l.tail.write(g.buf); err != nil {
		return l.setError(err)
	}
	return nil
}

// setError makes every later append return the error, unless there was an earlier error.
func (l *Log) setError(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = err
	}
	return l.broken
}

// rotate begins a new file. It enters the file in the header before the file has a record.
func (l *Log) rotate(first uint64) error {
	if err := l.tail.seal(); err != nil {
		return err
	}
	next, err := createSegment(l.dir, first, l.size)
	if err != nil {
		return err
	}
	l.tail = next
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writeHeader(l.segments[0], first); err != nil {
		return err
	}
	l.segments = append(l.segments, first)
	return nil
}

// RemoveBefore removes the files whose entries all have numbers below number. An entry that shares a file with
// a later entry stays. It returns ErrClosed or an error of the disk.
func (l *Log) RemoveBefore(number uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.checkOpen(); err != nil {
		return err
	}
	n := 0
	for n+1 < len(l.segments) && l.segments[n+1] <= number {
		n++
	}
	if n == 0 {
		return nil
	}
	if err := l.writeHeader(l.segments[n], l.segments[len(l.segments)-1]); err != nil {
		return err
	}
	gone := l.segments[:n]
	l.segments = l.segments[n:]
	for _, first := range gone {
		if err := os.Remove(segmentPath(l.dir, first)); err != nil {
			return err
		}
	}
	return nil
}
