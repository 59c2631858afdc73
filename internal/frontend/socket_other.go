//go:build !linux

package frontend

import "net"

// socket reads and writes a connection on the express lane by the methods of net.TCPConn.
type socket struct{ lane *lane }

func newSocket(l *lane) (*socket, error) { return &socket{l}, nil }

func (s *socket) receive() (int, error) { return s.lane.c.TCPConn.Read(s.lane.makeRoom()) }

// Write writes all of p.
func (s *socket) Write(p []byte) (int, error) { return s.lane.c.TCPConn.Write(p) }

func (s *socket) writeBoth(first, second []byte) (int64, error) {
	return (&net.Buffers{first, second}).WriteTo(s.lane.c.TCPConn)
}
