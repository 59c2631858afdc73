//go:build unix

package pgtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/internal/checktest"
)

// runChild is the program of a child process: a test binary that uses the server.
func runChild(mode string) {
	s, err := shared()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if _, _, err := startBouncer(s.dsn(owner, "postgres")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.folder)
	if mode == "exit" {
		os.Exit(0)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
	os.Exit(1)
}

// child starts a child process in a mode, as the first of a process group.
func child(t *testing.T, mode string) (cmd *exec.Cmd, output *bufio.Reader) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PGTEST_CHILD="+mode)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	checktest.MustNoError(t, err, "")
	stdout, err := cmd.StdoutPipe()
	checktest.MustNoError(t, err, "")
	checktest.MustNoError(t, cmd.Start(), "start a child process")
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(stdout)
}

// readFolder reads the folder of the child's server.
func readFolder(t *testing.T, output *bufio.Reader) string {
	t.Helper()
	line, err := output.ReadString('\n')
	if err != nil || !strings.Contains(line, "/pgtest-") {
		rest, _ := io.ReadAll(output)
		t.Fatalf("a child process wrote %q (%v)", line+string(rest), err)
	}
	return strings.TrimSpace(line)
}

// processes lists the command lines of running processes that name a folder: the watchdog and all processes of its server.
func processes(t *testing.T, folder string) (list []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	checktest.MustNoError(t, err, "")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(data), filepath.Base(folder)) {
			list = append(list, strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return list
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// waitForNothing waits until neither the folder nor a process of its server is left.
func waitForNothing(t *testing.T, folder string) {
	t.Helper()
	waitFor(t, "the end of "+folder, func() bool {
		_, err := os.Stat(folder)
		return os.IsNotExist(err) && len(processes(t, folder)) == 0
	})
}

// CI kills the process group of a test binary, so the watchdog must be in another one.
func TestNothingIsLeftAfterATestBinaryIsKilled(t *testing.T) {
	t.Parallel()
	cmd, output := child(t, "wait")
	folder := readFolder(t, output)
	checktest.True(t, len(processes(t, folder)) > 3, "the child process has no server: %q", processes(t, folder))
	checktest.Contains(t, strings.Join(processes(t, folder), "\n"), "pgbouncer", "processes of the child process")
	checktest.MustNoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL), "kill the process group")
	waitForNothing(t, folder)
}

// go test -p 4 runs several test binaries at once.
func TestTestBinariesHaveServersOfTheirOwnAndLeaveNothing(t *testing.T) {
	t.Parallel()
	_, first := child(t, "exit")
	_, second := child(t, "exit")
	firstFolder, secondFolder := readFolder(t, first), readFolder(t, second)
	checktest.True(t, firstFolder != secondFolder, "two test binaries share %s", firstFolder)
	waitForNothing(t, firstFolder)
	waitForNothing(t, secondFolder)
}

func TestNothingIsLeftAfterATestBinaryIsKilledWhileItStartsTheServer(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"log", "data/base", "data/postmaster.pid"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			cmd, _ := child(t, "wait")
			var found []string
			waitFor(t, "the folder of the server", func() bool {
				for _, parent := range []string{"/tmp", "/dev/shm"} {
					if found == nil {
						found, _ = filepath.Glob(filepath.Join(parent, fmt.Sprintf("pgtest-%d-*", cmd.Process.Pid), part))
					}
				}
				return found != nil
			})
			checktest.MustNoError(t, cmd.Process.Signal(syscall.SIGKILL), "kill")
			waitForNothing(t, strings.TrimSuffix(found[0], "/"+part))
		})
	}
}

func TestServerOfOneTestHasItsSettings(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, "inner")
	conn := connect(t, Server(r, "autovacuum=on", "deadlock_timeout=100ms"))
	checktest.Equal(t, read[string](t, conn, `SHOW autovacuum`), "on", "autovacuum")
	checktest.Equal(t, read[string](t, conn, `SHOW deadlock_timeout`), "100ms", "deadlock_timeout")
	checktest.Equal(t, read[string](t, conn, `SHOW is_superuser`), "on", "is_superuser")
	checktest.Equal(t, read[string](t, conn, `SHOW listen_addresses`), "", "listen_addresses")
	folder := read[string](t, conn, `SHOW unix_socket_directories`)
	r.end()
	checktest.Equal(t, strings.Join(r.failures, "\n"), "", "the failures")
	_, err := os.Stat(folder)
	checktest.True(t, os.IsNotExist(err), "%s is left after the test: %v", folder, err)
	checktest.Equal(t, strings.Join(processes(t, folder), "\n"), "", "the processes that are left")
}

func TestServerThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := startServer(newFolder(), "", "shared_buffers=many")
	checktest.MustTrue(t, err != nil, "a wrong setting is no error")
	checktest.Contains(t, err.Error(), `invalid value for parameter "shared_buffers": "many"`, "the error")
	_, folder, _ := strings.Cut(err.Error(), " in ")
	folder, _, _ = strings.Cut(folder, ":")
	waitForNothing(t, folder)
}

func TestNewestServerIsUsed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	programs := func(folder string, names ...string) string {
		folder = filepath.Join(root, folder)
		checktest.MustNoError(t, os.MkdirAll(folder, 0o700), "")
		for _, name := range names {
			checktest.MustNoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o700), "")
		}
		return folder
	}
	path := programs("path", "postgres", "initdb")
	pattern := filepath.Join(root, "lib/*/bin")
	found, err := findPrograms(pattern, "/nowhere:"+path)
	checktest.NoError(t, err, "")
	checktest.Equal(t, found, path, "the folder of the path")

	programs("lib/9/bin", "postgres", "initdb")
	newest := programs("lib/16/bin", "postgres", "initdb")
	programs("lib/15/bin", "postgres", "initdb")
	programs("lib/17/bin", "psql") // a client alone
	found, err = findPrograms(pattern, path)
	checktest.NoError(t, err, "")
	checktest.Equal(t, found, newest, "the folder of the newest server")
}

func TestMissingServerSaysWhatInstallsIt(t *testing.T) {
	t.Parallel()
	_, err := findPrograms(t.TempDir()+"/*", t.TempDir())
	checktest.MustTrue(t, err != nil, "a missing server is no error")
	checktest.Contains(t, err.Error(), "make setup installs it, and on Debian: apt-get install postgresql", "the error")
}
