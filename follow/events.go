// Events: server-sent events as in the WHATWG's HTML standard (9.2.6), read one by one.

package follow

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// maxEvent bounds one event, in bytes.
const maxEvent = 1 << 20

var errLong = errors.New("follow: the server sent an event longer than 1 MiB")

// event is one block of a stream, or a line of comment.
type event struct {
	id    string // the last one told, in this block or before
	hasID bool   // told in this block
	data  []byte // nil: the block has none
	retry time.Duration
}

// parser reads events.
type parser struct {
	in    *bufio.Reader
	line  []byte
	id    string
	begun bool // past a byte order mark
	cr    bool // the last line ended in CR: an LF that follows is part of it
}

func newParser(r io.Reader) *parser { return &parser{in: bufio.NewReaderSize(r, 32<<10)} }

// next is the next complete block, or comment. A block that the end cuts off does not
// count: the error is io.EOF. retry is negative without one.
func (p *parser) next() (event, error) {
	e := event{retry: -1}
	size, lines, data := 0, 0, []byte(nil)
	for {
		if err := p.read(); err != nil {
			return event{}, err
		}
		if size += len(p.line); size > maxEvent {
			return event{}, errLong
		}
		if len(p.line) == 0 {
			if lines == 0 {
				continue // an empty block says nothing
			}
			e.id, e.data = p.id, data
			return e, nil
		}
		name, value, _ := bytes.Cut(p.line, []byte(":"))
		if len(name) == 0 {
			if lines == 0 {
				return e, nil // a comment between blocks is a sign of life
			}
			continue
		}
		lines++
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if data == nil {
				data = []byte{}
			} else {
				data = append(data, '\n')
			}
			data = append(data, value...)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				p.id, e.hasID = string(value), true
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// read reads one line, without its end: LF, CR or both.
func (p *parser) read() error {
	p.line = p.line[:0]
	for {
		b, err := p.in.ReadByte()
		if err != nil {
			return err
		}
		if p.cr && b == '\n' {
			p.cr = false
			continue
		}
		p.cr = false
		switch b {
		case '\r', '\n':
			p.cr = b == '\r'
			if !p.begun {
				p.begun = true
				p.line = bytes.TrimPrefix(p.line, []byte("\xef\xbb\xbf"))
			}
			return nil
		}
		if len(p.line) >= maxEvent {
			return errLong
		}
		p.line = append(p.line, b)
	}
}
