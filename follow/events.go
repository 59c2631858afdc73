// Events: parses server-sent events as the WHATWG HTML standard defines them (9.2.6).

package follow

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// maxEvent is the largest size of one event, in bytes.
const maxEvent = 1 << 20

var errLong = errors.New("follow: the server sent an event longer than 1 MiB")

// event is one block of a stream, or a comment line.
type event struct {
	id    string // last id received, in this block or an earlier one
	hasID bool   // this block contains an id
	data  []byte // nil if the block has no data
	retry time.Duration
}

// parser reads events from a stream.
type parser struct {
	in    *bufio.Reader
	line  []byte
	id    string
	begun bool // the first line, which may begin with a byte order mark, was read
	cr    bool // the last line ended in CR, so a following LF belongs to it
}

func newParser(r io.Reader) *parser { return &parser{in: bufio.NewReaderSize(r, 32<<10)} }

// readEvent returns the next complete block or comment. A block that the end of the stream cuts off is dropped:
// the error is io.EOF. Without a retry field, retry is negative.
func (p *parser) readEvent() (event, error) {
	e := event{retry: -1}
	size, lines, data := 0, 0, []byte(nil)
	for {
		if err := p.readLine(); err != nil {
			return event{}, err
		}
		if size += len(p.line); size > maxEvent {
			return event{}, errLong
		}
		if len(p.line) == 0 {
			if lines == 0 {
				continue // an empty block has no meaning
			}
			e.id, e.data = p.id, data
			return e, nil
		}
		name, value, _ := bytes.Cut(p.line, []byte(":"))
		if len(name) == 0 {
			if lines == 0 {
				return e, nil // a comment between blocks shows that the server is alive
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

// readLine reads one line without its end: LF, CR or both.
func (p *parser) readLine() error {
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
