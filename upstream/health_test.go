// Health: what people are told of a failure.

package upstream

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"understudy"
)

func TestHealthNamesNoAddresses(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 443}
	op := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Addr: at, Err: err} }
	for want, cause := range map[string]error{
		"upstream unreachable: connection refused":       op("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"upstream unreachable: connection reset by peer": maybeSent{op("read", os.NewSyscallError("read", syscall.ECONNRESET))},
		"upstream unreachable: no connection in time":    op("dial", os.ErrDeadlineExceeded),
		"upstream unreachable: the answer stalled":       errors.New("the answer stalled"),
		"upstream unreachable":                           nil,
	} {
		if have := plainly(&understudy.UpstreamError{Why: understudy.FailUnreachable, Err: cause}); have != want {
			t.Errorf("%q, want %q", have, want)
		}
	}
}

// A broken connection is one on every system.
func TestBrokenConnections(t *testing.T) {
	for e, want := range map[syscall.Errno]bool{syscall.ECONNRESET: true, syscall.EPIPE: true, 10053: true, 10054: true, syscall.EINVAL: false} {
		err := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("wsarecv", e)}
		if why := brokenFailure(err); (why == understudy.FailUnreachable) != want {
			t.Errorf("%d: %v", e, why)
		}
	}
}
