package pgtest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// socketName is the name of a server's socket in its folder.
const socketName = ".s.PGSQL.5432"

// Proxy passes sessions on to a server. It counts their round trips, and can make them slower.
type Proxy struct {
	dsn      string
	server   string // the path of the server's socket
	latency  time.Duration
	listener net.Listener
	trips    atomic.Int64
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // those that are open
	ended bool
}

// NewProxy starts a proxy for the database that dsn names, until the test ends. Each round trip takes latency longer than without the
// proxy.
func NewProxy(t testing.TB, dsn string, latency time.Duration) *Proxy {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	folder := newFolder()
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	query := u.Query()
	p := &Proxy{server: filepath.Join(query.Get("host"), socketName), latency: latency, conns: map[net.Conn]bool{}}
	query.Set("host", folder)
	u.RawQuery = query.Encode()
	p.dsn = u.String()
	if p.listener, err = net.Listen("unix", filepath.Join(folder, socketName)); err != nil {
		t.Fatal(err)
	}
	p.running.Go(p.accept)
	t.Cleanup(p.end)
	return p
}

// DSN returns the data source name of the database behind the proxy.
func (p *Proxy) DSN() string { return p.dsn }

// RoundTrips returns how often a client has waited for the server, in all sessions so far. A client waits once for each exchange of
// messages, however many statements it contains.
func (p *Proxy) RoundTrips() int64 { return p.trips.Load() }

// end ends all sessions and returns when the proxy has stopped.
func (p *Proxy) end() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.ended = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// accept passes on sessions until the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		ended := p.ended
		p.mu.Unlock()
		// When one side has ended, both are closed.
		hangUp := sync.OnceFunc(func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.conns, client)
			delete(p.conns, server)
			_ = errors.Join(client.Close(), server.Close())
		})
		if ended {
			hangUp()
			return
		}
		p.running.Go(func() {
			defer hangUp()
			p.pass(server, io.TeeReader(client, &waitCounter{trips: &p.trips}))
		})
		p.running.Go(func() {
			defer hangUp()
			p.pass(client, server)
		})
	}
}

// chunk is a part of a stream that is passed on at a certain time.
type chunk struct {
	data []byte
	due  time.Time
}

// pass passes a stream on until either side ends. Each part is late by half of the latency.
func (p *Proxy) pass(to io.Writer, from io.Reader) {
	if p.latency == 0 {
		_, _ = io.Copy(to, from)
		return
	}
	chunks := make(chan chunk, 100)
	var writer sync.WaitGroup
	writer.Go(func() {
		var err error
		for c := range chunks {
			if err == nil {
				time.Sleep(time.Until(c.due))
				_, err = to.Write(c.data)
			}
		}
	})
	for {
		data := make([]byte, 32<<10)
		n, err := from.Read(data)
		if n > 0 {
			chunks <- chunk{data[:n], time.Now().Add(p.latency / 2)}
		}
		if err != nil {
			break
		}
	}
	close(chunks)
	writer.Wait()
}

// waitCounter reads the messages of a client, and counts those after which it waits for an answer. Each message but the first begins
// with a byte for its type, followed by its length
// (https://www.postgresql.org/docs/current/protocol-message-formats.html).
type waitCounter struct {
	trips   *atomic.Int64
	started bool   // the first message is over
	head    []byte // the beginning of a message, up to its length
	skip    int    // how many bytes of the message are still to come
}

// Write implements io.Writer. It returns no error.
func (w *waitCounter) Write(data []byte) (int, error) {
	for rest := data; len(rest) > 0; {
		if w.skip > 0 {
			n := min(w.skip, len(rest))
			w.skip, rest = w.skip-n, rest[n:]
			continue
		}
		size := 5
		if !w.started {
			size = 4
		}
		n := min(size-len(w.head), len(rest))
		w.head, rest = append(w.head, rest[:n]...), rest[n:]
		if len(w.head) < size {
			break
		}
		w.skip = int(binary.BigEndian.Uint32(w.head[size-4:])) - 4
		if w.started {
			switch w.head[0] {
			case 'S', 'Q', 'H', 'F': // Sync, Query, Flush, FunctionCall
				w.trips.Add(1)
			}
		}
		w.started, w.head = true, w.head[:0]
	}
	return len(data), nil
}
