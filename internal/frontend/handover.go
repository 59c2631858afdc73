// Handover: how net/http is given a connection of the lane, and gives it back.

package frontend

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// handover is what net/http is given of a connection.
type handover struct {
	head  []byte        // of its request
	left  int64         // so many bytes of its request are still to be given
	write bool          // its request is not one that reads
	lost  bool          // net/http reads everything from now on
	abort chan struct{} // net/http ends its look whether the client is still there
}

// begin has net/http take the request at the beginning of buf and no more, if it is one
// that is written plainly and whose length is certain. Else net/http reads all that comes on
// this connection.
func (l *lane) begin() {
	end := bytes.Index(l.incoming.buf, crlf2)
	length, ok := int64(0), end >= 0 && end <= maxHead
	if ok {
		length, ok = plain(l.incoming.buf[:end+4])
	}
	if !ok {
		l.handover.lost, l.handover.head = true, nil
		return
	}
	l.incoming.part, l.handover.left, l.handover.head = 0, int64(end+4)+length, append(l.handover.head[:0], l.incoming.buf[:end+4]...)
	if l.handover.write = !reads(l.handover.head); !l.handover.write {
		l.ahead()
	}
}

// reads reports whether a plain head is of a GET or a HEAD.
func reads(head []byte) bool {
	return bytes.HasPrefix(head, []byte("GET ")) || bytes.HasPrefix(head, []byte("HEAD "))
}

// methods are those of requests on the lane, less the space and the beginning of the path.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

// plain reports whether a head is of a request in HTTP/1.1 with nothing in it that two
// readers might read differently, and how long the request's body is. One that reads has none.
func plain(head []byte) (length int64, ok bool) {
	line, rest, _ := bytes.Cut(head, crlf2[:2])
	method, _, _ := bytes.Cut(line, []byte(" /"))
	if !bytes.HasSuffix(line, []byte(" HTTP/1.1")) || !slices.Contains(methods, string(method)) {
		return 0, false
	}
	said := false
	for len(rest) > 2 {
		line, rest, _ = bytes.Cut(rest, crlf2[:2])
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
			return 0, false
		}
		switch text := strings.Trim(string(value), " "); strings.ToLower(string(name)) {
		case "content-length":
			n, err := strconv.ParseUint(text, 10, 40)
			if said || err != nil || reads(head) {
				return 0, false
			}
			said, length = true, int64(n)
		case "connection":
			if !strings.EqualFold(text, "keep-alive") {
				return 0, false
			}
		case "transfer-encoding", "expect", "upgrade", "trailer", "te":
			return 0, false
		}
	}
	odd := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	return length, !bytes.ContainsFunc(bytes.ReplaceAll(head, crlf2[:2], nil), odd)
}

// give is a Read of net/http.
func (l *lane) give(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case l.handover.lost:
		if len(l.incoming.buf) > 0 {
			n := copy(p, l.incoming.buf)
			l.incoming.buf = l.incoming.buf[n:]
			return n, nil
		}
		return l.c.TCPConn.Read(p)
	case l.handover.left == 0 && l.c.idle.Load() == 0:
		return 0, l.watch()
	case l.handover.left == 0:
		if err := l.answer(); err != nil {
			return 0, err
		}
		l.begin()
		return l.give(p)
	}
	p = p[:min(int64(len(p)), l.handover.left)]
	if len(l.incoming.buf) == 0 {
		n, err := l.c.TCPConn.Read(p)
		l.handover.left -= int64(n)
		return n, err
	}
	n := copy(p, l.incoming.buf)
	l.incoming.buf = l.incoming.buf[:copy(l.incoming.buf, l.incoming.buf[n:])]
	l.handover.left -= int64(n)
	return n, nil
}

// watch waits until the client is gone, or net/http does not look any more. What comes
// meanwhile is of the next request.
func (l *lane) watch() error {
	for len(l.incoming.buf) < maxHead {
		if err := l.read(); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				l.pipeline.end()
			}
			return err
		}
		if !l.handover.write {
			l.ahead()
		}
	}
	<-l.handover.abort
	return os.ErrDeadlineExceeded
}

// deadline notes what net/http sets.
func (l *lane) deadline(t time.Time) {
	if !t.IsZero() && t.Unix() < 2 { // long ago: the look is to end
		select {
		case l.handover.abort <- struct{}{}:
		default:
		}
		return
	}
	select {
	case <-l.handover.abort:
	default:
	}
}

// close waits for an answer under way. A look that waits is over.
func (l *lane) close() {
	select {
	case l.handover.abort <- struct{}{}:
	default:
	}
	l.pipeline.end()
	close(l.pipeline.closed)
	l.mu.Lock()
	defer l.mu.Unlock()
}
