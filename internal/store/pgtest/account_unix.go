//go:build unix

// This file chooses the account that runs the server.

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// serverAttributes returns how the process of the server is started. It has a session of its own, so that it gets no signal
// when a terminal or CI ends the process group of the tests. If the account of the tests is root, the process gets another
// account, because PostgreSQL refuses to run as root.
func serverAttributes() (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return &syscall.SysProcAttr{Setsid: true}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("pgtest: account %s: %w", name, err)
		}
		return &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return nil, errors.New("pgtest: PostgreSQL does not run as root, and there is no account postgres or nobody")
}
