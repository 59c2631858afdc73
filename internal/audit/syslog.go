// Syslog: lines as messages of RFC 5424, over TLS (RFC 5425), TCP (RFC 6587) and UDP (RFC 5426).

package audit

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// priority is facility 13 (log audit), severity 6 (informational).
const priority = 13*8 + 6

// The bounds of the fields of a header (RFC 5424, section 6).
const (
	mostHost    = 255
	mostProcess = 128
	mostID      = 32
)

// mostDatagram bounds a message over UDP, in bytes; cutMark ends one that was longer.
const (
	mostDatagram = 8 << 10
	cutMark      = "…[cut]"
)

// message is a line as a message: PROCID is the chain, MSGID the action or what else the
// line is, MSG the line as it stands.
func message(host string, line []byte) []byte {
	var e struct {
		Chain, Action     string
		At                time.Time
		Begin, Checkpoint json.RawMessage
		Cut               json.RawMessage
	}
	at, id := "-", ""
	if json.Unmarshal(line, &e) == nil && !e.At.IsZero() { // verify tells of a line that is none
		at = e.At.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	switch id = e.Action; {
	case e.Checkpoint != nil:
		id = "checkpoint"
	case e.Begin != nil:
		id = "begin"
	case e.Cut != nil:
		id = "cut"
	}
	head := fmt.Appendf(nil, "<%d>1 %s %s understudy %s %s - ", priority, at, host, headerField(e.Chain, mostProcess),
		headerField(id, mostID))
	return append(head, line...)
}

// headerField is a text as a field of a header: printable ASCII without spaces; "-" for
// none.
func headerField(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, text)
	if text == "" {
		return "-"
	}
	return text[:min(len(text), most)]
}

// frames sends by TCP or TLS, each message behind its length. A batch has a connection of
// its own, and is taken when the receiver ends it after us: it has read all there was. By
// TLS both ends say so (RFC 5425, 4.4): a connection that was cut has taken nothing.
type frames struct {
	dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	}
	address, host string
}

func (f *frames) close() {}

func (f *frames) take(ctx context.Context, lines [][]byte) error {
	conn, err := f.dialer.DialContext(ctx, "tcp", f.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var out []byte
	for _, line := range lines {
		m := message(f.host, line)
		out = append(append(strconv.AppendInt(out, int64(len(m)), 10), ' '), m...)
	}
	_, err = conn.Write(out)
	if err == nil {
		switch c := conn.(type) {
		case *net.TCPConn:
			err = c.CloseWrite()
		case *tls.Conn:
			err = c.CloseWrite()
		}
	}
	if err == nil {
		var n int64
		if n, err = io.Copy(io.Discard, io.LimitReader(conn, mostAnswer)); err == nil && n == mostAnswer {
			err = errors.New("it says too much for a syslog receiver")
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("it has not ended the connection after all was sent: %w", ctx.Err())
	}
	return err
}

// datagrams sends by UDP, a message in each. What the network loses is lost.
type datagrams struct {
	address, host string
	conn          net.Conn // kept, as the refusal of a message shows at the next one
}

func (d *datagrams) close() {
	if d.conn != nil {
		_ = d.conn.Close()
		d.conn = nil
	}
}

func (d *datagrams) take(ctx context.Context, lines [][]byte) (err error) {
	if d.conn == nil {
		if d.conn, err = (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "udp", d.address); err != nil {
			d.conn = nil
			return err
		}
	}
	defer context.AfterFunc(ctx, func() { _ = d.conn.SetWriteDeadline(time.Unix(1, 0)) })()
	for _, line := range lines {
		if _, err := d.conn.Write(datagram(message(d.host, line))); err != nil {
			d.close()
			return err
		}
	}
	return nil
}

// datagram is a message that one datagram can hold.
func datagram(m []byte) []byte {
	if len(m) <= mostDatagram {
		return m
	}
	end := mostDatagram - len(cutMark)
	for end > 0 && !utf8.RuneStart(m[end]) {
		end--
	}
	return append(m[:end:end], cutMark...)
}
