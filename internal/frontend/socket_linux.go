// This file reads and writes a connection on the express lane, on Linux.

package frontend

import (
	"io"
	"os"
	"syscall"
	"unsafe"
)

// rawSocket reads and writes a connection by its file descriptor, which never blocks. It uses raw system calls, because the Go
// scheduler would take the processor away during a longer call, such as for an answer of 100 KB. A read or write that must
// wait does so like the connection itself, until its deadlines. One goroutine may read while another goroutine writes.
type rawSocket struct {
	raw syscall.RawConn
	in  input
	out output

	read, write func(fd uintptr) bool // the functions of in and out that the connection's poller calls
}

// input is a read in progress.
type input struct {
	lane *lane
	n    int
	err  error
}

// output is a write in progress of two byte slices.
type output struct {
	parts [2]syscall.Iovec
	n     int64
	err   error
}

func newSocket(l *lane) (socket, error) {
	if l.c.isTLS() {
		return streamSocket{l}, nil
	}
	raw, err := l.c.TCPConn.SyscallConn()
	s := &rawSocket{raw: raw, in: input{lane: l}}
	s.read, s.write = s.in.read, s.out.write
	return s, err
}

// receive waits for bytes and reads them into the lane's buffer.
func (s *rawSocket) receive() (int, error) {
	s.in.n, s.in.err = 0, nil
	if err := s.raw.Read(s.read); err != nil {
		return 0, err
	}
	return s.in.n, s.in.err
}

// read reads and reports whether the read is done. If not, the poller calls it again when there are bytes to read.
func (i *input) read(fd uintptr) bool {
	p := i.lane.makeRoom()
	n, errno := uintptr(0), syscall.EINTR
	for errno == syscall.EINTR {
		n, _, errno = syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	}
	switch {
	case errno == syscall.EAGAIN:
		i.lane.releaseRoom()
		return false
	case errno != 0:
		i.err = os.NewSyscallError("read", errno)
	case n == 0:
		i.err = io.EOF
	default:
		i.n = int(n)
	}
	return true
}

// Write writes all of p.
func (s *rawSocket) Write(p []byte) (int, error) {
	n, err := s.writeBoth(p, nil)
	return int(n), err
}

// writeBoth writes two byte slices, in one system call if the client reads fast enough.
func (s *rawSocket) writeBoth(first, second []byte) (int64, error) {
	o := &s.out
	*o = output{}
	for i, p := range [2][]byte{first, second} {
		o.parts[i].Base = unsafe.SliceData(p)
		o.parts[i].SetLen(len(p))
	}
	err := s.raw.Write(s.write)
	if err == nil {
		err = o.err
	}
	n := o.n
	*o = output{}
	return n, err
}

// write writes and reports whether the write is done. If not, the poller calls it again when more can be written.
func (o *output) write(fd uintptr) bool {
	for o.parts[0].Len+o.parts[1].Len > 0 {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&o.parts[0])), uintptr(len(o.parts)))
		switch errno {
		case 0:
			o.removeWritten(int(n))
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			o.err = os.NewSyscallError("writev", errno)
			return true
		}
	}
	return true
}

// removeWritten removes the first n bytes, which have been written, from the output.
func (o *output) removeWritten(n int) {
	o.n += int64(n)
	for i := range o.parts {
		part := &o.parts[i]
		rest := unsafe.Slice(part.Base, int(part.Len))[min(n, int(part.Len)):]
		n -= int(part.Len) - len(rest)
		part.Base = unsafe.SliceData(rest)
		part.SetLen(len(rest))
	}
}

// copySocket returns a copy of a file descriptor that stays open in the next program.
func copySocket(fd uintptr) (int, error) { return syscall.Dup(int(fd)) }
