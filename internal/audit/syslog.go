// This file sends lines as syslog messages (RFC 5424), over TLS (RFC 5425), TCP (RFC 6587) and UDP (RFC 5426).

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

// priority means facility 13 (log audit) and severity 6 (informational).
const priority = 13*8 + 6

// The maximum lengths of header fields (RFC 5424, section 6).
const (
	maxHost      = 255
	maxProcess   = 128
	maxMessageID = 32
)

// maxDatagram is the maximum size of a UDP message in bytes. cutMark is the end of a message that was shortened to
// this size.
const (
	maxDatagram = 8 << 10
	cutMark     = "…[cut]"
)

// message returns a line as a syslog message. Its PROCID is the chain, its MSGID the action or the type of the
// line, and its MSG the unchanged line.
func message(host string, line []byte) []byte {
	var e struct {
		Chain, Action     string
		At                time.Time
		Begin, Checkpoint json.RawMessage
		Cut               json.RawMessage
	}
	at, id := "-", ""
	if json.Unmarshal(line, &e) == nil && !e.At.IsZero() { // an invalid line is reported by verify
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
	head := fmt.Appendf(nil, "<%d>1 %s %s understudy %s %s - ", priority, at, host, headerField(e.Chain, maxProcess),
		headerField(id, maxMessageID))
	return append(head, line...)
}

// headerField returns a text as a header field: printable ASCII without spaces, or "-" if nothing is left.
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

// streamReceiver sends lines over TCP or TLS, each message preceded by its length. Each batch has its own connection. The batch is
// confirmed when the receiver closes the connection after the sender has closed it, because the receiver has then read
// everything. With TLS both sides send a close alert (RFC 5425, 4.4). If the connection is cut, nothing is confirmed.
type streamReceiver struct {
	dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	}
	address, host string
}

func (f *streamReceiver) close() {}

// take sends lines over a new connection and waits until the receiver closes the connection.
func (f *streamReceiver) take(ctx context.Context, lines [][]byte) error {
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
		if n, err = io.Copy(io.Discard, io.LimitReader(conn, maxResponse)); err == nil && n == maxResponse {
			err = errors.New("it sends more data than a syslog receiver may")
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("it has not closed the connection after everything was sent: %w", ctx.Err())
	}
	return err
}

// datagramReceiver sends lines over UDP, one message in each datagram. A lost datagram is not sent again.
type datagramReceiver struct {
	address, host string
	conn          net.Conn // kept open, because the refusal of a message shows only when the next message is sent
}

func (d *datagramReceiver) close() {
	if d.conn != nil {
		_ = d.conn.Close()
		d.conn = nil
	}
}

func (d *datagramReceiver) take(ctx context.Context, lines [][]byte) (err error) {
	if d.conn == nil {
		if d.conn, err = (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "udp", d.address); err != nil {
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

// datagram returns a message shortened to the maximum size of a datagram.
func datagram(m []byte) []byte {
	if len(m) <= maxDatagram {
		return m
	}
	end := maxDatagram - len(cutMark)
	for end > 0 && !utf8.RuneStart(m[end]) {
		end--
	}
	return append(m[:end:end], cutMark...)
}
