// Log file: where the access log is written; nothing there holds anybody up.

package accesslog

import (
	"io"
	"os"
	"syscall"
	"time"
)

// logWrite is how long one write to a pipe may take.
const logWrite = time.Second

// OpenFile opens the file of the access log, making it when it is missing. A
// named pipe is opened for reading as well, so that this waits for no reader and
// none that leaves ends the log; a device is opened without waiting for its line.
// A socket is an error of the system. pipe is true for a pipe and a device: lines are
// lost while nobody reads it.
func OpenFile(path string, now func() time.Time) (f io.WriteCloser, pipe bool, err error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		return f, false, err
	}
	mode := os.O_WRONLY
	if info.Mode()&os.ModeNamedPipe != 0 {
		mode = os.O_RDWR
	}
	file, err := os.OpenFile(path, mode|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, err
	}
	return &pipeFile{File: file, now: now}, true, nil
}

// pipeFile is a file that may take nothing for a while: a write ends after
// logWrite with os.ErrDeadlineExceeded. A line of which only a part was taken is
// ended before the next.
type pipeFile struct {
	*os.File
	now  func() time.Time
	part bool
}

// Write writes lines.
func (f *pipeFile) Write(p []byte) (int, error) {
	_ = f.SetWriteDeadline(f.now().Add(logWrite)) // a device may know none
	if f.part {
		if _, err := f.File.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
		f.part = false
	}
	n, err := f.File.Write(p)
	f.part = n > 0 && p[n-1] != '\n'
	return n, err
}
