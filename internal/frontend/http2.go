// This file serves connections with HTTP/2.

package frontend

import (
	"net/http"

	"understudy/internal/http2lane"
)

// serveHTTP2 passes a connection with HTTP/2 to net/http. A lane between them answers known requests. received are the bytes that have been
// read from the connection.
func (x *express) serveHTTP2(c *conn, received []byte) {
	s, remote := x.server, c.RemoteAddr().String()
	request, f, traced := new(http.Request), &finder{express: x}, new(tracedHeader)
	l := http2lane.New(c.stream, c.TCPConn, received, http2lane.Options{
		Answer: func(head []byte, w *http2lane.Response) bool {
			k, ok := f.recall(head)
			if !ok {
				return false
			}
			defer k.known.handler.leave()
			now := s.listener.now()
			if c.idle.Load() != 0 { // net/http knows of no request
				c.idle.Store(now.UnixNano())
			}
			k.copyTo(request, remote, traced)
			w.Header()["Date"] = []string{dateOf(now)}
			w.Serve(k.known.handler, request, k.found)
			return true
		},
		Count:      s.unread.Count,
		Now:        s.listener.now,
		MaxHeaders: s.server.MaxHeaderBytes,
		WriteTime:  s.server.WriteTimeout,
		IdleTime:   s.server.IdleTimeout,
		IsTLS:      c.isTLS(),
	})
	s.listener.mu.Lock()
	c.http2 = l
	s.listener.mu.Unlock()
	x.giveToNetHTTP(c)
}
