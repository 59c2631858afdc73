// Log: a log of entries in a folder, durable when Append returns.

// Package wal is a write-ahead log. Entries are appended to files of a folder. When Append returns, its entry
// is on the disk and survives a power loss.
//
// Concurrent callers share one write and one fdatasync (group commit). An entry is stored as its length, a
// CRC32C, its number and its bytes. Space in files is reserved in advance, so that the flush writes no
// metadata. After a crash, Open keeps the longest run of complete entries and truncates the file after it. If
// complete entries follow damage that a crash can't explain, Open returns ErrDamaged and changes nothing.
//
// Source: bbengfort, "Writing append-only logs with a fixed header"; for the checksum RFC 3720 appendix B.4.
package wal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
)

// The errors of a log. Test for them with errors.Is.
var (
	// ErrClosed is the error of an append to a closed log.
	ErrClosed = errors.New("wal: closed")
	// ErrDamaged means that the files of a log are not as they were written. An incomplete end is not damage;
	// Open removes it.
	ErrDamaged = errors.New("wal: damaged")
	// ErrSize is the error for an entry that is empty or longer than the limit.
	ErrSize = errors.New("wal: an entry is empty or too long")
)

// Options are the options of a log. The zero value is usable.
type Options struct {
	// SegmentSize is the size in bytes at which a new file is begun; 0 means 64 MiB. An entry may have a
	// quarter of it.
	SegmentSize int64
}

// Log is an open log. The caller makes sure that only one process opens a folder at a time. It is safe for
// concurrent use.
type Log struct {
	dir   string
	size  int64 // the maximum size of a file of the log in bytes
	cut   int64 // the number of bytes that Open removed from the newest file
	wake  chan struct{}
	ended chan struct{} // closed when the committer has ended

	tail *segment // used only by Open and then by the committer

	// mu protects the following fields, which callers and the committer share.
	mu       sync.Mutex
	next     *group   // the group that is being filled
	last     uint64   // the number of the newest entry in a group
	durable  uint64   // the number of the newest entry on the disk
	segments []uint64 // the number of the first entry in each file
	header   header
	broken   error // the first error of the disk; after it nothing can be appended
	closed   bool
}

// group is a list of entries that become durable together.
type group struct {
	buf   []byte
	count int
	done  chan struct{} // closed when the group is durable or has failed
	err   error
}

// maxGroup is the size in bytes of the current group above which callers wait.
const maxGroup = 8 << 20

// Open opens the log of a folder and creates the folder if it is missing. It reads the newest file to its end.
// It returns ErrDamaged or an error of the file system.
func Open(dir string, o Options) (*Log, error) {
	o.SegmentSize = cmp.Or(o.SegmentSize, 64<<20)
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
	go l.runCommitter()
	return l, nil
}

func newGroup() *group { return &group{done: make(chan struct{})} }

// Append adds an entry and returns its number when the entry is durable. Numbers begin with 1 and have no gaps.
// If ctx ends first, the entry may or may not become durable. After an error of the disk every append fails:
// close the log and open it again. Append returns ErrSize, ErrClosed, the error of ctx or an error of the disk.
func (l *Log) Append(ctx context.Context, data []byte) (uint64, error) {
	return l.AppendFunc(ctx, func(uint64) []byte { return data })
}

// AppendFunc appends the entry that data returns for its number. It calls data once, in the order of the
// numbers and never concurrently, so that an entry can contain a hash of the entry before. data must be quick
// and must not use the log.
func (l *Log) AppendFunc(ctx context.Context, data func(number uint64) []byte) (uint64, error) {
	l.mu.Lock()
	for l.checkOpen() == nil && len(l.next.buf) > maxGroup {
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

// add adds an entry to the current group.
func (l *Log) add(data func(number uint64) []byte) (g *group, number uint64, err error) {
	if err := l.checkOpen(); err != nil {
		return nil, 0, err
	}
	g, number = l.next, l.last+1
	entry := data(number)
	if len(entry) == 0 || int64(len(entry)) > l.size/4 {
		return nil, 0, fmt.Errorf("%w: %d bytes, want 1 to %d", ErrSize, len(entry), l.size/4)
	}
	l.last = number
	g.buf = appendRecord(g.buf, number, entry)
	if g.count++; g.count == 1 {
		l.wake <- struct{}{} // never blocks, because the committer has already taken the previous group
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

// FirstNumber returns the number of the oldest entry that is stored, or of the next entry if there is none.
func (l *Log) FirstNumber() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.segments[0]
}

// LastNumber returns the number of the newest durable entry, or 0 before the first entry.
func (l *Log) LastNumber() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

// CutBytes returns how many bytes Open removed after the last complete entry. They come from an append that a
// crash interrupted, or from damage.
func (l *Log) CutBytes() int64 { return l.cut }

// Err returns why nothing can be appended, or nil if the log is usable.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.checkOpen()
}

// checkOpen returns why nothing can be appended, or nil. The caller holds l.mu.
func (l *Log) checkOpen() error {
	if l.broken == nil && l.closed {
		return ErrClosed
	}
	return l.broken
}

// Close waits until all appended entries are durable and closes the log. Later appends return ErrClosed. Close
// returns the first error of the disk, also an earlier one.
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
