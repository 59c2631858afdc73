// Tests of the process group of a command that prints a secret.

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that is a subreaper inherits orphans, as process 1 of a container does.
func TestACommandOfASecretLeavesNoProcessBehind(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s, err := ReadSecret(t.Context(), "cmd:sleep 300 >/dev/null 2>&1 & echo $! > child; echo hunter2", dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.Reveal() != "hunter2" {
		t.Error("another secret was read")
	}
	pid, err := os.ReadFile(filepath.Join(dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat"); err == nil {
		t.Errorf("the child is still there: %s", stat)
	}
}
