//go:build !windows

// Group: the process group of a command that prints a secret.

package config

import (
	"os/exec"
	"syscall"
)

// ownGroup has a command run in a process group of its own. The function it returns ends
// what the command left behind and collects its exit: as process 1 of a container this
// process inherits such children, and each would stay a zombie.
func ownGroup(cmd *exec.Cmd) (reap func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() {
		if cmd.Process == nil {
			return
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an error: nothing is left
		for {
			if pid, err := syscall.Wait4(-cmd.Process.Pid, nil, 0, nil); pid <= 0 && err != syscall.EINTR {
				return
			}
		}
	}
}
