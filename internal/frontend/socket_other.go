//go:build !linux

package frontend

import "errors"

func newSocket(l *lane) (socket, error) { return streamSocket{l}, nil }

func copySocket(uintptr) (int, error) { return 0, errors.ErrUnsupported }
