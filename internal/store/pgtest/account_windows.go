package pgtest

import (
	"errors"
	"syscall"
)

// serverAttributes returns an error, because the script that stops the server needs a Unix shell.
func serverAttributes() (*syscall.SysProcAttr, error) {
	return nil, errors.New("pgtest: tests start no PostgreSQL on Windows")
}
