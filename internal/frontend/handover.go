// This file passes a connection from the express lane to net/http and back.

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

// handover is the state of a connection while net/http reads from it.
type handover struct {
	head         []byte        // the head of the request that net/http is reading
	remaining    int64         // the number of bytes of the request that net/http has not received yet
	hasWrite     bool          // whether the request is not a GET or HEAD
	readsAll     bool          // whether net/http reads all further bytes of the connection
	stopWatching chan struct{} // receives a value when net/http stops watching whether the client is still connected
}

// beginHandover passes the request at the beginning of buf to net/http, and no later bytes. This is possible only if
// the request has a plain head and a known length. Otherwise net/http reads everything that arrives on this connection.
func (l *lane) beginHandover() {
	end := bytes.Index(l.incoming.buf, headEnd)
	length, ok := int64(0), end >= 0 && end <= maxHead
	if ok {
		length, ok = parsePlainHead(l.incoming.buf[:end+4])
	}
	if !ok {
		l.handover.readsAll, l.handover.head = true, nil
		return
	}
	l.incoming.partialHead, l.handover.remaining = 0, int64(end+4)+length
	l.handover.head = append(l.handover.head[:0], l.incoming.buf[:end+4]...)
	if l.handover.hasWrite = !isRead(l.handover.head); !l.handover.hasWrite {
		l.startAhead()
	}
}

// isRead reports whether a plain head belongs to a GET or HEAD request.
func isRead(head []byte) bool {
	return bytes.HasPrefix(head, []byte("GET ")) || bytes.HasPrefix(head, []byte("HEAD "))
}

// methods are the methods that requests on the lane can have.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

// parsePlainHead reports whether a head belongs to an HTTP/1.1 request that all parsers read in the same way. It
// returns the length of the body. A GET or HEAD request may have no body.
func parsePlainHead(head []byte) (length int64, ok bool) {
	line, rest, _ := bytes.Cut(head, headEnd[:2])
	method, _, _ := bytes.Cut(line, []byte(" /"))
	if !bytes.HasSuffix(line, []byte(" HTTP/1.1")) || !slices.Contains(methods, string(method)) {
		return 0, false
	}
	said := false
	for len(rest) > 2 {
		line, rest, _ = bytes.Cut(rest, headEnd[:2])
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
			return 0, false
		}
		switch text := strings.Trim(string(value), " "); strings.ToLower(string(name)) {
		case "content-length":
			n, err := strconv.ParseUint(text, 10, 40)
			if said || err != nil || isRead(head) {
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
	return length, !bytes.ContainsFunc(bytes.ReplaceAll(head, headEnd[:2], nil), odd)
}

// readForNetHTTP is the Read method that net/http calls for the connection.
func (l *lane) readForNetHTTP(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case l.handover.readsAll:
		if len(l.incoming.buf) > 0 {
			n := copy(p, l.incoming.buf)
			l.incoming.buf = l.incoming.buf[n:]
			return n, nil
		}
		return l.c.readStream(p)
	case l.handover.remaining == 0 && l.c.idle.Load() == 0:
		return 0, l.watchClient()
	case l.handover.remaining == 0:
		if err := l.answer(); err != nil {
			return 0, err
		}
		l.beginHandover()
		return l.readForNetHTTP(p)
	}
	p = p[:min(int64(len(p)), l.handover.remaining)]
	if len(l.incoming.buf) == 0 {
		n, err := l.c.stream.Read(p)
		l.handover.remaining -= int64(n)
		return n, err
	}
	n := copy(p, l.incoming.buf)
	l.incoming.buf = l.incoming.buf[:copy(l.incoming.buf, l.incoming.buf[n:])]
	l.handover.remaining -= int64(n)
	return n, nil
}

// watchClient waits until the client closes the connection, or until net/http stops watching. It stores the bytes
// that arrive meanwhile, which belong to the next request.
func (l *lane) watchClient() error {
	for len(l.incoming.buf) < maxHead {
		if err := l.read(); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				l.pipeline.end()
			}
			return err
		}
		if !l.handover.hasWrite {
			l.startAhead()
		}
	}
	<-l.handover.stopWatching
	return os.ErrDeadlineExceeded
}

// noteDeadline stores a deadline that net/http sets.
func (l *lane) noteDeadline(t time.Time) {
	if !t.IsZero() && t.Unix() < 2 { // net/http sets a deadline in the past to stop watching the client
		select {
		case l.handover.stopWatching <- struct{}{}:
		default:
		}
		return
	}
	select {
	case <-l.handover.stopWatching:
	default:
	}
}

// close waits for a running answer and stops watching the client.
func (l *lane) close() {
	select {
	case l.handover.stopWatching <- struct{}{}:
	default:
	}
	l.pipeline.end()
	close(l.pipeline.closed)
	l.mu.Lock()
	defer l.mu.Unlock()
}
