// ZeroMQ's own library, as Debian's package python3-zmq has it.

package rig

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"testing"
)

// Python is Debian's Python, which has the packages of Debian.
const Python = "/usr/bin/python3"

// FreeAddress returns an address at which a process can listen again after it has closed its port. The kernel does not give the port to
// others who ask for any port.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 20000+rand.IntN(10000)))
		if err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// AskZeroMQ returns the first page of the source twilio, and the first message of a subscription to everything. It waits for each as long
// as patience says, in milliseconds. Without a user it sends no credential.
func AskZeroMQ(t testing.TB, address, user, secret, patience string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), Python, "-c", `
import sys, zmq
address, user, secret, patience = sys.argv[1:]
for kind in zmq.REQ, zmq.SUB:
    s = zmq.Context.instance().socket(kind)
    s.linger = 0
    if user:
        s.plain_username, s.plain_password = user.encode(), secret.encode()
    s.connect("tcp://" + address)
    if kind == zmq.SUB:
        s.subscribe("")
    else:
        s.send_multipart([b"twilio", b"0", b"limit=1000"])
    if s.poll(int(patience)):
        sys.stdout.buffer.write(b"\n".join(s.recv_multipart()) + b"\n")
`, address, user, secret, patience).CombinedOutput()
	if err != nil {
		t.Fatalf("pyzmq: %v\n%s", err, out)
	}
	return out
}
