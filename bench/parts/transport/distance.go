// Distance: a long way between a client and a server.

package transport

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// distance passes connections on to a server; every byte arrives half a trip later. It counts
// bytes.
type distance struct {
	net.Listener
	to       string
	up, down atomic.Int64
	running  sync.WaitGroup
}

func newDistance(to string) (*distance, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &distance{Listener: l, to: to}
	d.running.Go(d.run)
	return d, nil
}

// Close stops accepting and waits until the connections have ended.
func (d *distance) Close() error {
	err := d.Listener.Close()
	d.running.Wait()
	return err
}

func (d *distance) run() {
	for {
		near, err := d.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", d.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		d.running.Go(func() { pass(far, near, &d.up) })
		d.running.Go(func() { pass(near, far, &d.down) })
	}
}

// piece is what came at once, and when it arrives.
type piece struct {
	data []byte
	due  time.Time
}

// pass passes bytes on late, and both ends are closed with the first.
func pass(to, from net.Conn, count *atomic.Int64) {
	defer to.Close()
	defer from.Close()
	way := make(chan piece, 1024)
	go func() {
		defer close(way)
		for {
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			if n > 0 {
				way <- piece{buf[:n], time.Now().Add(trip / 2)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range way {
		time.Sleep(time.Until(p.due))
		n, err := to.Write(p.data)
		count.Add(int64(n))
		if err != nil {
			_ = from.Close()
			_, _ = io.Copy(io.Discard, from)
			for range way { // until the reader has ended
			}
			return
		}
	}
}
