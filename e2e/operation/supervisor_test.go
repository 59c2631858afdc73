// A service manager, played by the test: it is told when a server is ready, alive and ends.

package operation

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	first, dir := rig.StartServer(t, rig.Settings{Upstream: rig.StartAPI(t, "--records", "10").URL("slowapi")})
	checktest.MustNoError(t, first.Stop(), "stop the server that has the settings")
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	checktest.MustNoError(t, err, "listen")
	t.Cleanup(func() { _ = manager.Close() })
	// receive returns the next state that is not skip, or "" if none arrives in time.
	receive := func(within time.Duration, skip string) string {
		t.Helper()
		checktest.MustNoError(t, manager.SetReadDeadline(time.Now().Add(within)), "deadline")
		for {
			data := make([]byte, 1000)
			n, err := manager.Read(data)
			if err != nil {
				return ""
			} else if state := string(data[:n]); state != skip {
				return state
			}
		}
	}
	cmd := exec.Command(rig.Program, "serve")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=400000")
	checktest.MustNoError(t, cmd.Start(), "start")
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	checktest.MustEqual(t, receive(rig.Patience, ""), "READY=1", "first state")
	for range 2 {
		checktest.MustEqual(t, receive(rig.Patience, ""), "WATCHDOG=1", "state of a server that answers")
	}
	checktest.MustNoError(t, cmd.Process.Signal(syscall.SIGSTOP), "pause the server")
	receive(100*time.Millisecond, "WATCHDOG=1") // one that was sent before
	checktest.Equal(t, receive(600*time.Millisecond, ""), "", "state of a server that hangs")
	checktest.MustNoError(t, cmd.Process.Signal(syscall.SIGCONT), "let the server go on")
	checktest.Equal(t, receive(rig.Patience, ""), "WATCHDOG=1", "state of a server that goes on")
	checktest.MustNoError(t, cmd.Process.Signal(syscall.SIGTERM), "end the server")
	checktest.Equal(t, receive(rig.Patience, "WATCHDOG=1"), "STOPPING=1", "state of a server that ends")
	checktest.NoError(t, cmd.Wait(), "end of the server")
}
