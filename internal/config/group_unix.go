//go:build !windows

// This file runs a command that prints a secret in a process group of its own.

package config

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command run in a separate process group. The returned function kills the processes that the
// command left behind, and collects their exit status. As process 1 of a container this process inherits such
// children, and each would stay a zombie.
func ownGroup(cmd *exec.Cmd) (reap func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() {
		if cmd.Process == nil {
			return
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an error means that no process is left
		for {
			if pid, err := syscall.Wait4(-cmd.Process.Pid, nil, 0, nil); pid <= 0 && err != syscall.EINTR {
				return
			}
		}
	}
}
