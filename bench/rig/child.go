// Child: a process under measurement: its addresses, CPU time and memory.

package rig

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Patience is the longest time that a child may take to start or to end. On a disk that others keep busy, the
// first fsync of a new database can take long.
const Patience = 2 * time.Minute

// Child is a running process. Stop ends it.
type Child struct {
	name      string
	Addresses map[string]string // by the first word of its line: "twilio" -> "http://127.0.0.1:…"
	Started   time.Time         // just before the process was made
	Ready     time.Time         // when it had printed that it is ready
	cmd       *exec.Cmd
	log       string // file of its standard error
	Exited    chan struct{}
	Err       error // of Wait, once exited is closed
	ended     func() error
}

var addressLine = regexp.MustCompile(`^(\w[\w-]*) +(https?://\S+)`)

// Start runs a program and waits until a line of its output contains the text until.
func Start(ctx context.Context, dir, name, until, bin string, args ...string) (*Child, error) {
	c := &Child{name: name, Addresses: map[string]string{}, Exited: make(chan struct{}), log: filepath.Join(dir, name+".log")}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	c.cmd = exec.Command(bin, args...)
	c.cmd.Stderr = log
	// A bench that is killed takes its children along.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	c.Started = time.Now()
	if err := c.cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	ready := make(chan error, 1)
	go func() {
		ready <- c.listen(stdout, until)
		_, _ = io.Copy(io.Discard, stdout)
		c.Err = c.cmd.Wait()
		_ = log.Close()
		close(c.Exited)
	}()
	select {
	case err = <-ready:
	case <-time.After(Patience):
		err = fmt.Errorf("not ready after %v", Patience)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		c.kill()
		return nil, fmt.Errorf("%s: %w\n%s", name, err, c.lastWords())
	}
	c.Ready = time.Now()
	return c, nil
}

// listen reads addresses from the output up to the line that contains until.
func (c *Child) listen(out io.Reader, until string) error {
	in := bufio.NewScanner(out)
	for in.Scan() {
		if m := addressLine.FindStringSubmatch(in.Text()); m != nil {
			c.Addresses[m[1]] = m[2]
		}
		if strings.Contains(in.Text(), until) {
			return nil
		}
	}
	return errors.New("it ended before it was ready")
}

// lastWords returns the end of the child's standard error.
func (c *Child) lastWords() string {
	data, _ := os.ReadFile(c.log)
	return string(data[max(0, len(data)-2000):])
}

func (c *Child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.Exited
}

// Stop asks the child to end, and returns an error if its exit code is not 0.
func (c *Child) Stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.Exited:
	case <-time.After(Patience):
		c.kill()
	}
	err := c.Err
	if err != nil {
		err = fmt.Errorf("%s ended: %w\n%s", c.name, c.Err, c.lastWords())
	}
	if c.ended != nil {
		err = errors.Join(err, c.ended())
	}
	return err
}

// tick is the unit of the times in /proc. Linux counts 100 of them a second for every program.
const tick = 10 * time.Millisecond

// Cpu returns the user and system time that the child and its own children have used so far. It is exact to a
// hundredth of a second.
func (c *Child) Cpu() (time.Duration, error) { return cpuOf(c.cmd.Process.Pid) }

func cpuOf(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is the program's name in brackets and may hold anything.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc stat of %d has %d fields", pid, len(fields))
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	all, err := time.Duration(user+system)*tick, errors.Join(err1, err2)
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(children)) {
		if n, bad := strconv.Atoi(child); bad == nil {
			if used, gone := cpuOf(n); gone == nil {
				all += used
			}
		}
	}
	return all, err
}

// Resident returns the resident memory of the child in bytes.
func (c *Child) Resident() (int64, error) {
	n, err := ResidentOf(c.cmd.Process.Pid)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.name, err)
	}
	return n, nil
}

// Own returns the resident memory of the child in bytes without the pages of its program's file, which the kernel reads and drops as it likes.
func (c *Child) Own() (int64, error) { return statusOf(c.cmd.Process.Pid, "RssAnon") }

// ResidentOf returns the resident memory of a process in bytes. PeakOf returns the maximum that it ever had.
func ResidentOf(pid int) (int64, error) { return statusOf(pid, "VmRSS") }
func PeakOf(pid int) (int64, error)     { return statusOf(pid, "VmHWM") }

func statusOf(pid int, name string) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, name+": %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no %s", pid, name)
}

// Used returns the CPU time of this process so far.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
