// The committer writes groups, begins files and removes old ones.

package wal

import (
	"os"
	"runtime"
)

// commit writes one group after the other until the log is closed. After an error
// nothing is written: what the disk holds then is not known before the next Open.
func (l *Log) commit() {
	defer close(l.ended)
	before := 0
	for range l.wake {
		g := l.take(before)
		before = g.n
		if g.err = l.write(g); g.err == nil {
			l.mu.Lock()
			l.durable += uint64(g.n)
			l.mu.Unlock()
		}
		close(g.done)
	}
	if err := l.tail.file.Close(); err != nil {
		l.fail(err)
	}
}

// take ends the group that is filled. Callers of the group before come back about now:
// it lets them run first, so that they share this flush.
func (l *Log) take(before int) *group {
	for range before {
		l.mu.Lock()
		n := l.next.n
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

func (l *Log) write(g *group) error {
	l.mu.Lock()
	err, first := l.broken, l.durable+1
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if l.tail.at > 0 && l.tail.at+int64(len(g.buf)) > l.size {
		if err := l.rotate(first); err != nil {
			return l.fail(err)
		}
	}
	if err := l.tail.write(g.buf); err != nil {
		return l.fail(err)
	}
	return nil
}

// fail has every append from now on return the error, unless another came before.
func (l *Log) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = err
	}
	return l.broken
}

// rotate begins a file. The header knows it before it has a record.
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

// RemoveBefore removes the files whose entries all come before a number. Entries that
// share a file with a later one stay. Errors: ErrClosed, the disk's.
func (l *Log) RemoveBefore(number uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.failed(); err != nil {
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
