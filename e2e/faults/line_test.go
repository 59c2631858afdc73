// Lines: connections that are kept, and the answers that come over them.

package faults

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// line is a connection that is kept, and the last answer that came over it.
type line struct {
	host string
	conn net.Conn
	in   *bufio.Reader

	answer
}

type answer struct {
	status, length int
	age            int64
	coding         string // Content-Encoding
	how, tag       []byte // Cache-Status, ETag
	retry, last    bool   // Retry-After, Connection: close
	body           []byte
}

func (l *line) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// send sends requests.
func (l *line) send(requests []byte) (err error) {
	if l.conn == nil {
		if l.conn, err = net.Dial("tcp", l.host); err != nil {
			return err
		}
		l.in = bufio.NewReaderSize(l.conn, 64<<10)
	}
	if err := l.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	_, err = l.conn.Write(requests)
	return err
}

// read reads the next answer.
func (l *line) read(head bool) error {
	first, err := l.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	l.answer = answer{body: l.body[:0], tag: l.tag[:0], how: l.how[:0], length: -1}
	if l.status, err = strconv.Atoi(string(first[9:12])); err != nil {
		return err
	}
	for {
		h, err := l.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		h = bytes.TrimRight(h, "\r\n")
		if len(h) == 0 {
			break
		}
		name, value, _ := bytes.Cut(h, []byte(": "))
		switch string(name) {
		case "Content-Length":
			l.length, err = strconv.Atoi(string(value))
		case "Age":
			l.age, err = strconv.ParseInt(string(value), 10, 64)
		case "Cache-Status":
			l.how = append(l.how, value...)
		case "Content-Encoding":
			l.coding = string(value)
		case "Etag":
			l.tag = append(l.tag, value...)
		case "Retry-After":
			l.retry = true
		case "Connection":
			l.last = string(value) == "close"
		}
		if err != nil {
			return err
		}
	}
	if head || l.status == http.StatusNotModified {
		return nil
	}
	if l.length < 0 {
		return errors.New("an answer without a length")
	}
	if cap(l.body) < l.length {
		l.body = make([]byte, 2*l.length)
	}
	l.body = l.body[:l.length]
	_, err = io.ReadFull(l.in, l.body)
	return err
}
