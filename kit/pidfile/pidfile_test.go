// Processes that hold a file, and others that look for them.

package pidfile_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/kit/pidfile"
)

func Example() {
	dir, _ := os.MkdirTemp("", "pidfile")
	defer os.RemoveAll(dir)
	path, lock := filepath.Join(dir, "run.json"), filepath.Join(dir, "lock")

	file, err := pidfile.Hold(path, lock, pidfile.Self())
	fmt.Println("held:", err == nil)
	_, err = pidfile.Hold(path, lock, pidfile.Self())
	fmt.Println("twice:", errors.As(err, new(*pidfile.HeldError)))

	var holder pidfile.Process // as another process reads it
	fmt.Println("read:", pidfile.Read(path, &holder) == nil && holder == pidfile.Self())
	fmt.Println("lives:", holder.Send(syscall.Signal(0)) == nil)
	fmt.Println("released:", file.Close() == nil)
	// Output:
	// held: true
	// twice: true
	// read: true
	// lives: true
	// released: true
}

const folderVariable = "UNDERSTUDY_PIDFILE_CHILD"

// TestHolderChild is the child of other tests: it holds the file in a folder until its standard input ends.
func TestHolderChild(t *testing.T) {
	dir := os.Getenv(folderVariable)
	if dir == "" {
		return
	}
	if _, err := pidfile.Hold(filepath.Join(dir, "run.json"), filepath.Join(dir, "lock"), pidfile.Self()); err != nil {
		fmt.Println("refused:", err)
		return
	}
	fmt.Println("held")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// child is a process that wants to hold the file.
type child struct {
	cmd  *exec.Cmd
	says string // its first line
}

// start starts a child and waits for its first line. The child lives until the test ends.
func start(t *testing.T, dir string) child {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHolderChild$")
	c.Env = append(os.Environ(), folderVariable+"="+dir)
	_, err := c.StdinPipe()
	checktest.MustNoError(t, err, "stdin")
	out, err := c.StdoutPipe()
	checktest.MustNoError(t, err, "stdout")
	checktest.MustNoError(t, c.Start(), "start")
	line, err := bufio.NewReader(out).ReadString('\n')
	checktest.MustNoError(t, err, "first line")
	return child{c, strings.TrimSpace(line)}
}

func TestOneOfManyHolds(t *testing.T) {
	t.Parallel()
	dir, n := t.TempDir(), sample.Count(8, 100)
	var all sync.WaitGroup
	var mu sync.Mutex
	var holder child
	says := map[string]int{}
	for range n {
		all.Go(func() {
			c := start(t, dir)
			mu.Lock()
			defer mu.Unlock()
			if says[c.says]++; c.says == "held" {
				holder = c
			}
		})
	}
	all.Wait()
	checktest.Equal(t, says["held"], 1, "processes that hold the file")
	checktest.Equal(t, says[fmt.Sprintf("refused: %s/run.json is held by another process", dir)], n-1, "processes that were refused: %v", says)
	var p pidfile.Process
	checktest.MustNoError(t, pidfile.Read(filepath.Join(dir, "run.json"), &p), "read")
	checktest.Equal(t, p.PID, holder.cmd.Process.Pid, "process in the file")
	checktest.True(t, runtime.GOOS != "linux" || p.Age() < time.Minute && p.Start > 0, "it started %v ago", p.Age())
}

func TestKilledHolderIsGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := start(t, dir)
	checktest.MustEqual(t, c.says, "held", "what the child says")
	var p pidfile.Process
	checktest.MustNoError(t, pidfile.Read(filepath.Join(dir, "run.json"), &p), "read")
	checktest.NoError(t, p.Send(syscall.Signal(0)), "look for the living process")
	checktest.NoError(t, p.Send(syscall.SIGKILL), "kill")
	_, _ = c.cmd.Process.Wait() // it was killed
	checktest.True(t, errors.Is(p.Send(syscall.SIGTERM), pidfile.ErrGone), "a process that was killed gets a signal")
	f, err := pidfile.Hold(filepath.Join(dir, "run.json"), filepath.Join(dir, "lock"), pidfile.Self())
	checktest.MustNoError(t, err, "hold the file of a process that was killed")
	checktest.NoError(t, f.Close(), "close")
	_, err = os.Stat(filepath.Join(dir, "run.json"))
	checktest.True(t, errors.Is(err, os.ErrNotExist), "the file is left: %v", err)
}

// A stranger has the number of a process that was killed, or the file is from before the last boot.
func TestStrangerGetsNoSignal(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not say when a process started")
	}
	c := start(t, t.TempDir())
	self := pidfile.Self()
	for name, p := range map[string]pidfile.Process{
		"another start": {PID: c.cmd.Process.Pid, Start: self.Start - 1, Boot: self.Boot},
		"another boot":  {PID: self.PID, Start: self.Start, Boot: "another"},
		"no process":    {PID: 1 << 30, Start: self.Start, Boot: self.Boot},
		"all processes": {PID: -1, Start: self.Start, Boot: self.Boot},
		"no file":       {},
	} {
		checktest.True(t, errors.Is(p.Send(syscall.SIGKILL), pidfile.ErrGone), "%s: a stranger gets the signal", name)
	}
	checktest.NoError(t, c.cmd.Process.Signal(syscall.Signal(0)), "the stranger")
}

// TestRecycledNumberGetsNoSignal: in a namespace of process numbers, another process really gets the number of one that was killed.
func TestRecycledNumberGetsNoSignal(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems have no namespaces of process numbers")
	}
	const inside = "UNDERSTUDY_PIDFILE_NAMESPACE"
	if os.Getenv(inside) == "" {
		unshare := []string{"--pid", "--fork", "--mount-proc"}
		if err := exec.Command("unshare", append(unshare, "true")...).Run(); err != nil {
			t.Skipf("this user may not make a namespace of process numbers: %v", err)
		}
		unshare = append(unshare, os.Args[0], "-test.run=^TestRecycledNumberGetsNoSignal$", "-test.v")
		c := exec.CommandContext(t.Context(), "unshare", unshare...)
		c.Env = append(os.Environ(), inside+"=1")
		out, err := c.CombinedOutput()
		checktest.MustNoError(t, err, "test in a namespace of its own: %s", out)
		checktest.True(t, strings.Contains(string(out), "--- PASS: TestRecycledNumberGetsNoSignal"), "the test did not run: %s", out)
		return
	}
	dir := t.TempDir()
	first := start(t, dir)
	var p pidfile.Process
	checktest.MustNoError(t, pidfile.Read(filepath.Join(dir, "run.json"), &p), "read")
	checktest.MustNoError(t, p.Send(syscall.SIGKILL), "kill")
	_, _ = first.cmd.Process.Wait() // it was killed
	checktest.MustNoError(t, os.WriteFile("/proc/sys/kernel/ns_last_pid", fmt.Append(nil, p.PID-1), 0), "choose the next number")
	stranger := start(t, t.TempDir())
	checktest.MustEqual(t, stranger.cmd.Process.Pid, p.PID, "number of the stranger")
	checktest.True(t, errors.Is(p.Send(syscall.SIGKILL), pidfile.ErrGone), "the stranger gets the signal")
	checktest.NoError(t, stranger.cmd.Process.Signal(syscall.Signal(0)), "the stranger")
}

const becomesVariable = "UNDERSTUDY_PIDFILE_BECOMES"

// TestBecomingChild is the child of TestProgramsOfOneProcess: it replaces its program a number of times.
func TestBecomingChild(t *testing.T) {
	left, err := strconv.Atoi(os.Getenv(becomesVariable))
	if err != nil {
		return
	}
	if left == 0 {
		fmt.Println("last program")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		return
	}
	env := append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, becomesVariable) }),
		fmt.Sprintf("%s=%d", becomesVariable, left-1))
	checktest.NoError(t, syscall.Exec(os.Args[0], os.Args, env), "exec")
}

// startOf returns when a process started, as Process.Start.
func startOf(t *testing.T, pid int) uint64 {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	checktest.MustNoError(t, err, "read the times of the process")
	start, err := strconv.ParseUint(strings.Fields(string(stat))[21], 10, 64) // the name of a test binary has no space
	checktest.MustNoError(t, err, "read the start of the process")
	return start
}

// TestProgramsOfOneProcess: a process that replaces its program lives all the time.
func TestProgramsOfOneProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a process of Windows has one program")
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBecomingChild$")
	c.Env = append(os.Environ(), fmt.Sprint(becomesVariable, "=", sample.Count(10, 500)))
	in, err := c.StdinPipe()
	checktest.MustNoError(t, err, "stdin")
	out, err := c.StdoutPipe()
	checktest.MustNoError(t, err, "stdout")
	checktest.MustNoError(t, c.Start(), "start")
	self := pidfile.Self()
	p := pidfile.Process{PID: c.Process.Pid, Boot: self.Boot, Start: startOf(t, c.Process.Pid)}
	ended := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n') // an error leaves the line empty
		ended <- line
	}()
	for {
		select {
		case line := <-ended:
			checktest.Equal(t, line, "last program\n", "what the last program says")
			checktest.NoError(t, in.Close(), "let it end")
			checktest.NoError(t, c.Wait(), "end")
			return
		default:
			checktest.MustNoError(t, p.Send(syscall.Signal(0)), "a process that has become another program")
		}
	}
}

// A process that has ended and that nobody has waited for is gone, too.
func TestZombieIsGone(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not say whether a process is a zombie")
	}
	dir := t.TempDir()
	c := start(t, dir)
	var p pidfile.Process
	checktest.MustNoError(t, pidfile.Read(filepath.Join(dir, "run.json"), &p), "read")
	checktest.MustNoError(t, p.Send(syscall.SIGKILL), "kill")
	for end := time.Now().Add(10 * time.Second); p.Send(syscall.Signal(0)) == nil; time.Sleep(time.Millisecond) {
		checktest.MustTrue(t, time.Now().Before(end), "a process that was killed counts as alive")
	}
	_, _ = c.cmd.Process.Wait()
}

func TestReadersSeeWholeFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "run.json")
	type content struct {
		pidfile.Process
		Text string
	}
	text := func(n int) string { return strings.Repeat(fmt.Sprint(n%10), n%5000) }
	f, err := pidfile.Hold(path, filepath.Join(dir, "lock"), content{pidfile.Self(), ""})
	checktest.MustNoError(t, err, "hold")
	reads, done := sample.Count(2000, 100_000), make(chan struct{})
	go func() {
		defer close(done)
		for range reads {
			var got content
			err := pidfile.Read(path, &got)
			isWhole := err == nil && got.Process == pidfile.Self() && strings.Count(got.Text, got.Text[:min(1, len(got.Text))]) >= len(got.Text)
			if checktest.True(t, isWhole, "a reader sees %d bytes, %v", len(got.Text), err); !isWhole {
				return
			}
		}
	}()
	for n := 0; ; n++ {
		select {
		case <-done:
			checktest.NoError(t, f.Close(), "close")
			return
		default:
			checktest.MustNoError(t, f.Write(content{pidfile.Self(), text(n)}), "write")
		}
	}
}
