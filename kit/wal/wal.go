// Log: a log of entries in a folder, durable when Append returns.

// Package wal is a write-ahead log: entries are appended to files of a folder and are
// on the disk when Append returns, also after a power loss.
//
// Callers at the same time share one write and one fdatasync (group commit). An entry
// is its length, a CRC32C, its number and its bytes. Files are preallocated, so that
// the flush writes no metadata. After a crash, Open keeps the longest run of whole
// entries and cuts off what is behind it. Whole entries behind other damage than that of
// a crash are ErrDamaged, and stay as they are.
//
// Source: bbengfort, "Writing append-only logs with a fixed header"; for the checksum
// RFC 3720 appendix B.4.
package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Errors. Test with errors.Is.
var (
	// ErrClosed is the error of an append to a log that is closed.
	ErrClosed = errors.New("wal: closed")
	// ErrDamaged is the error of a log whose files are not what was written: other than
	// an unfinished end, which Open cuts off.
	ErrDamaged = errors.New("wal: damaged")
	// ErrSize is the error of an entry that is empty or longer than the limit.
	ErrSize = errors.New("wal: an entry is empty or too long")
)

// Options of a log. The zero value is good.
type Options struct {
	// SegmentSize is when a new file is begun, in bytes. 0 = 64 MiB. The limit of an
	// entry is a quarter of it.
	SegmentSize int64
}

// Log is an open log. One process opens a folder at a time: the caller sees to it. It
// is safe for concurrent use.
type Log struct {
	dir   string
	size  int64 // of a segment
	cut   int64 // bytes that Open cut off
	wake  chan struct{}
	ended chan struct{} // the committer has ended

	tail *segment // of the committer alone, and of Open before it

	// Callers and the committer share what follows.
	mu       sync.Mutex
	next     *group   // being filled
	last     uint64   // the last number given
	durable  uint64   // the last number that is on the disk
	segments []uint64 // the number that each file begins with
	header   header
	broken   error // the disk's, after which nothing can be appended
	closed   bool
}

// group are entries that become durable together.
type group struct {
	buf  []byte
	n    int
	done chan struct{} // closed when it is durable or failed
	err  error
}

// maxGroup is how many bytes of a group are taken before callers wait.
const maxGroup = 8 << 20

// Open opens the log of a folder and makes the folder when it is not there. It reads
// the last file to its end. Errors: ErrDamaged, and those of the file system.
func Open(dir string, o Options) (*Log, error) {
	if o.SegmentSize == 0 {
		o.SegmentSize = 64 << 20
	}
	if o.SegmentSize < 4<<10 {
		return nil, fmt.Errorf("wal: a segment of %d bytes, want at least 4096", o.SegmentSize)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l := &Log{
		dir: dir, size: o.SegmentSize, wake: make(chan struct{}, 1), ended: make(chan struct{}), next: newGroup(),
	}
	if err := l.recover(); err != nil {
		return nil, err
	}
	go l.commit()
	return l, nil
}

func newGroup() *group { return &group{done: make(chan struct{})} }

// Append adds an entry and returns its number once it is durable. Numbers begin with
// 1 and have no gaps. When ctx ends first, the entry may become durable or not. After
// an error of the disk nothing is appended any more: close the log and open it again.
// Errors: ErrSize, ErrClosed, ctx's, the disk's.
func (l *Log) Append(ctx context.Context, data []byte) (uint64, error) {
	return l.AppendFunc(ctx, func(uint64) []byte { return data })
}

// AppendFunc is Append of what data returns for the number of the entry. It is called
// once, in the order of the numbers, while no other call is under way: an entry can hold
// a hash of the one before. It must be quick and must not call the log.
func (l *Log) AppendFunc(ctx context.Context, data func(number uint64) []byte) (uint64, error) {
	l.mu.Lock()
	for l.failed() == nil && len(l.next.buf) > maxGroup {
		full := l.next.done
		l.mu.Unlock()
		if err := await(ctx, full); err != nil {
			return 0, err
		}
		l.mu.Lock()
	}
	g, number, err := l.add(data)
	l.mu.Unlock()
	if err == nil {
		err = await(ctx, g.done)
	}
	if err != nil {
		return 0, err
	}
	if g.err != nil {
		return 0, g.err
	}
	return number, nil
}

// add puts an entry into the group that is filled.
func (l *Log) add(data func(number uint64) []byte) (g *group, number uint64, err error) {
	if err := l.failed(); err != nil {
		return nil, 0, err
	}
	g, number = l.next, l.last+1
	entry := data(number)
	if len(entry) == 0 || int64(len(entry)) > l.size/4 {
		return nil, 0, fmt.Errorf("%w: %d bytes, want 1 to %d", ErrSize, len(entry), l.size/4)
	}
	l.last = number
	g.buf = appendRecord(g.buf, number, entry)
	if g.n++; g.n == 1 {
		l.wake <- struct{}{} // there is room: the committer took the group before
	}
	return g, number, nil
}

func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// First is the number of the oldest entry that is kept; Last+1 when there is none.
func (l *Log) First() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segments[0]
}

// Last is the number of the newest durable entry, 0 before the first.
func (l *Log) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

// Cut is how many bytes Open cut off behind the last whole entry: those of an append
// that a crash interrupted, or of damage.
func (l *Log) Cut() int64 { return l.cut }

// Err is why nothing can be appended; nil as long as it can.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed()
}

func (l *Log) failed() error {
	if l.broken == nil && l.closed {
		return ErrClosed
	}
	return l.broken
}

// Close makes what was appended durable and closes the log. Appends that come later
// get ErrClosed. The error is the disk's, also one that ended the log before.
func (l *Log) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.wake)
	}
	l.mu.Unlock()
	<-l.ended
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}
