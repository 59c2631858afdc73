// A service manager, played by the test: it is told when a server is ready, alive and ends.

package operation

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// manager receives what a server tells its service manager.
type manager struct {
	t      *testing.T
	socket string
	conn   *net.UnixConn
}

func newManager(t *testing.T) *manager {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	checktest.MustNoError(t, err, "listen")
	t.Cleanup(func() { _ = conn.Close() })
	return &manager{t, socket, conn}
}

// receive returns the next state that is not skip, or "" if none arrives in time.
func (m *manager) receive(within time.Duration, skip string) string {
	m.t.Helper()
	checktest.MustNoError(m.t, m.conn.SetReadDeadline(time.Now().Add(within)), "deadline")
	for {
		data := make([]byte, 1000)
		n, err := m.conn.Read(data)
		if err != nil {
			return ""
		} else if state := string(data[:n]); state != skip {
			return state
		}
	}
}

func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	first, dir := rig.StartServer(t, rig.Settings{Upstream: rig.StartAPI(t, "--records", "10").URL("slowapi")})
	checktest.MustNoError(t, first.Stop(), "stop the server that has the settings")
	m := newManager(t)
	receive := m.receive
	cmd := exec.Command(rig.Program, "serve")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "NOTIFY_SOCKET="+m.socket, "WATCHDOG_USEC=400000")
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

// TestServiceManagerOpensSockets: the manager listens before the server starts. A request that is sent before the start is answered. The
// sockets stay open over a restart, of which the manager is told, and the process stays the same.
func TestServiceManagerOpensSockets(t *testing.T) {
	t.Parallel()
	first, dir := rig.StartServer(t, rig.Settings{Upstream: rig.StartAPI(t, "--records", "10").URL("slowapi")})
	checktest.MustNoError(t, first.Stop(), "stop the server that has the settings")
	m := newManager(t)
	start := func(names string) (*exec.Cmd, *strings.Builder, []string) {
		t.Helper()
		var files []*os.File
		var at []string
		for range 2 {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			checktest.MustNoError(t, err, "listen")
			f, err := l.(*net.TCPListener).File()
			checktest.MustNoError(t, err, "file of the socket")
			checktest.MustNoError(t, l.Close(), "close the original")
			files, at = append(files, f), append(at, "http://"+l.Addr().String())
		}
		var log strings.Builder
		cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" serve`, rig.Program)
		cmd.Dir, cmd.ExtraFiles, cmd.Stderr = dir, files, &log
		cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+m.socket, "LISTEN_FDS=2", "LISTEN_FDNAMES="+names)
		answer := make(chan error, 1)
		go func() {
			_, err := rig.Ask("GET", "", at[0]+"/-/health", "")
			answer <- err
		}()
		checktest.MustNoError(t, cmd.Start(), "start")
		for _, f := range files {
			checktest.MustNoError(t, f.Close(), "close the manager's socket")
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		if names == "viewer:twilio" {
			checktest.MustNoError(t, <-answer, "answer to the request before the start")
		}
		return cmd, &log, at
	}
	cmd, log, _ := start("viewer:twilo")
	checktest.True(t, cmd.Wait() != nil && strings.Contains(log.String(), `a socket named "twilo"; its name must be viewer, connect, metrics or a source`),
		"a wrong name: %s", log)
	cmd, _, at := start("viewer:twilio")
	checktest.Equal(t, m.receive(rig.Patience, ""), "READY=1", "first state")
	out, err := command(dir, "restart")
	checktest.MustNoError(t, err, "restart: %s", out)
	checktest.Equal(t, m.receive(rig.Patience, ""), "RELOADING=1", "state before the restart")
	checktest.Equal(t, m.receive(rig.Patience, ""), "READY=1", "state after the restart")
	r, err := rig.Ask("GET", rig.Account+":"+rig.DemoToken, at[1]+rig.Base+"/Calls.json", "")
	checktest.NoError(t, err, "ask at the source's socket")
	checktest.Equal(t, r.Status, 200, "status at the source's socket")
	out, err = command(dir, "stop")
	checktest.MustNoError(t, err, "stop: %s", out)
	checktest.NoError(t, cmd.Wait(), "end of the server")
	checktest.Equal(t, m.receive(rig.Patience, ""), "STOPPING=1", "last state")
}
