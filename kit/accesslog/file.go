// This file opens the file, pipe or device that the access log is written to. A slow reader of a pipe never delays
// requests.

package accesslog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// writeTimeout is the longest time that one write to a pipe may take.
const writeTimeout = time.Second

// File is the file, the named pipe or the device that an access log is written to. It is safe for concurrent use.
type File struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	out  io.WriteCloser
	info os.FileInfo // the file info of the open file when it was opened
}

// OpenFile opens the file of the access log and creates it if it is missing. It opens a named pipe for reading
// as well: so OpenFile does not wait for a reader, and the log goes on when a reader closes the pipe. It opens
// a device without waiting for its line. For a socket it returns the error of the operating system.
func OpenFile(path string, now func() time.Time) (*File, error) {
	f := &File{path: path, now: now}
	return f, f.Reopen()
}

// IsPipe reports whether the file is a pipe or a device. Lines are lost while no process reads such a file.
func (f *File) IsPipe() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.info.Mode().IsRegular()
}

// IsMoved reports whether the path no longer names the open file, for example after
// logrotate has renamed it. Lines still go to the open file until Reopen.
func (f *File) IsMoved() bool {
	info, err := os.Stat(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	return err != nil || !os.SameFile(info, f.info)
}

// Reopen opens the path again and closes the file that was open. After an error the old file stays in use.
func (f *File) Reopen() error {
	out, err := f.open()
	if err != nil {
		return err
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("accesslog: %w", errors.Join(err, out.Close()))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	former := f.out
	f.out, f.info = out, info
	if former == nil {
		return nil
	}
	return former.Close()
}

func (f *File) open() (io.WriteCloser, error) {
	info, err := os.Stat(f.path)
	if err != nil || info.Mode().IsRegular() {
		return os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	mode := os.O_WRONLY
	if info.Mode()&os.ModeNamedPipe != 0 {
		mode = os.O_RDWR
	}
	file, err := os.OpenFile(f.path, mode|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return &pipeFile{File: file, now: f.now}, nil
}

// Write writes lines to the file that is open now.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.Write(p)
}

// Close closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out.Close()
}

// pipeFile is a pipe or device whose reader may be slow. A write that takes longer than writeTimeout ends with
// os.ErrDeadlineExceeded. After an incomplete line the next write begins with a line feed.
type pipeFile struct {
	*os.File
	now        func() time.Time
	incomplete bool
}

// Write writes whole lines.
func (f *pipeFile) Write(p []byte) (int, error) {
	_ = f.SetWriteDeadline(f.now().Add(writeTimeout)) // some devices support no deadline
	if f.incomplete {
		if _, err := f.File.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
		f.incomplete = false
	}
	n, err := f.File.Write(p)
	f.incomplete = n > 0 && p[n-1] != '\n'
	return n, err
}
