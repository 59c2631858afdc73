// Health: what people are told of a failure.

package upstream

import (
	"net"
	"os"
	"syscall"
	"testing"

	"understudy"
)

// A broken connection is one on every system.
func TestBrokenConnections(t *testing.T) {
	for e, want := range map[syscall.Errno]bool{syscall.ECONNRESET: true, syscall.EPIPE: true, 10053: true, 10054: true,
		syscall.EINVAL: false} {
		err := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("wsarecv", e)}
		if why := bodyFailure(err); (why == understudy.FailUnreachable) != want {
			t.Errorf("%d: %v", e, why)
		}
	}
}
