// Binary: builds the product, runs it, reads the addresses it prints.

// Package binary runs the product's own binary as a user does.
package binary

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Patience bounds the start and the end of a server.
const Patience = 30 * time.Second

// Build compiles the command of the module in root to path, static. The flags are more flags of go build.
func Build(ctx context.Context, root, path string, flags ...string) error {
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-trimpath", "-o", path}, flags, []string{"./cmd/understudy"})...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("binary: build: %w\n%s", err, out)
	}
	return nil
}

// BuildShared builds the command of the module in root once for all processes that ask for it, and copies it to path.
// Processes that ask at the same time take turns: the first one compiles, the others find the program up to date.
func BuildShared(ctx context.Context, root, path string) error {
	folder, err := filepath.Abs(filepath.Join(root, ".cache", "e2e"))
	if err != nil {
		return fmt.Errorf("binary: build: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("binary: build: %w", err)
	}
	turn, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("binary: build: %w", err)
	}
	defer turn.Close() // which ends the turn
	if err := syscall.Flock(int(turn.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("binary: build: wait for a turn: %w", err)
	}
	if err := Build(ctx, root, filepath.Join(folder, "understudy")); err != nil {
		return err
	}
	program, err := os.ReadFile(filepath.Join(folder, "understudy"))
	if err != nil {
		return fmt.Errorf("binary: build: %w", err)
	}
	if err := os.WriteFile(path, program, 0o755); err != nil {
		return fmt.Errorf("binary: build: %w", err)
	}
	return nil
}

// Server is one running `understudy serve`, `understudy demo` or `understudy slowapi`.
type Server struct {
	addresses map[string]string
	cmd       *exec.Cmd
	out, log  *text
	exited    chan struct{}
	err       error // of Wait, once exited is closed
	killed    bool  // by Kill
}

// Demo are the arguments of a demo on free ports.
func Demo(args ...string) []string {
	return append([]string{"demo", "--viewer", "127.0.0.1:0", "--drop-in", "twilio=127.0.0.1:0", "--slowapi", "127.0.0.1:0"}, args...)
}

// addressLine is one address as a server prints it; names may hold a space.
var addressLine = regexp.MustCompile(`^([A-Za-z][\w-]*(?: [\w-]+)*) +(https?://\S+)`)

// Start runs the binary at path in dir until it says that it is ready. The
// server ends with Stop or Kill, one of which must be called.
func Start(path, dir string, args ...string) (*Server, error) {
	s := &Server{addresses: map[string]string{}, out: &text{}, log: &text{}, exited: make(chan struct{})}
	s.cmd = exec.Command(path, args...)
	s.cmd.Dir, s.cmd.Stderr = dir, s.log
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan bool, 1)
	go s.read(stdout, args[0] == "slowapi", ready)
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case ok := <-ready:
		if !ok {
			<-s.exited
			return nil, fmt.Errorf("binary: %v ended before it was ready: %w\n%s", args, s.err, s.Log())
		}
		return s, nil
	case <-timer.C:
		s.Kill()
		return nil, fmt.Errorf("binary: %v not ready after %v\n%s", args, Patience, s.Log())
	}
}

// read collects what the server prints until it ends. A server is ready when it
// says how to end it, the simulated API alone once it has named its address.
func (s *Server) read(stdout io.Reader, api bool, ready chan<- bool) {
	defer close(s.exited)
	in := bufio.NewScanner(stdout)
	said := false
	for in.Scan() {
		fmt.Fprintln(s.out, in.Text())
		m := addressLine.FindStringSubmatch(in.Text())
		if m != nil && !said {
			s.addresses[strings.ToLower(strings.ReplaceAll(m[1], " ", ""))] = m[2]
		}
		if !said && (api && m != nil || strings.Contains(in.Text(), "Ctrl-C")) {
			said = true
			ready <- true
		}
	}
	_, _ = io.Copy(io.Discard, stdout)
	s.err = s.cmd.Wait()
	if !said {
		ready <- false
	}
}

// URL is the address printed under a name: viewer, twilio, slowapi.
func (s *Server) URL(name string) string { return s.addresses[name] }

// Names are the names of the printed addresses.
func (s *Server) Names() []string {
	var names []string
	for name := range maps.Keys(s.addresses) {
		names = append(names, name)
	}
	return names
}

// Log is everything the server wrote so far, standard output first.
func (s *Server) Log() string { return s.out.String() + s.log.String() }

// Stdout is what the server wrote to standard output so far.
func (s *Server) Stdout() string { return s.out.String() }

// Stderr is what the server wrote to standard error so far.
func (s *Server) Stderr() string { return s.log.String() }

// Stop ends the server in order. The error is that of a server that did not
// end in time or did not exit with 0.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-s.exited:
		if s.err != nil && !s.killed {
			return fmt.Errorf("binary: after SIGTERM: %w", s.err)
		}
		return nil
	case <-timer.C:
		s.Kill()
		return fmt.Errorf("binary: still running %v after SIGTERM", Patience)
	}
}

// Reload tells the server to read its settings again.
func (s *Server) Reload() error { return s.cmd.Process.Signal(syscall.SIGHUP) }

// Process is the server's process id.
func (s *Server) Process() int { return s.cmd.Process.Pid }

// Kill ends the server at once and waits for it.
func (s *Server) Kill() {
	s.killed = true
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// Exited reports whether the server has ended by itself or was ended.
func (s *Server) Exited() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// text is a buffer for one writer and many readers.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
