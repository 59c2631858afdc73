// This file speaks the server's side of ZMTP 3.1, the protocol of ZeroMQ's sockets (RFC 24 and 37 of ZeroMQ).

package wires

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"understudy"
	"understudy/kit/lockwatch"
)

// The flags of a frame.
const (
	moreFlag    = 1 // more parts of the message follow
	longFlag    = 2 // the size has 8 bytes
	commandFlag = 4
)

const (
	greetingBytes   = 64
	versionBytes    = 11       // the part of a greeting that the peer awaits before it sends the rest of its own
	maxMessageBytes = 16 << 10 // the maximum size of a message from a peer
	partCostBytes   = 64       // what each part adds to the size of its message, so that the number of parts is limited, too
)

// refusedCode is the reason of the command ERROR. libzmq then reports that the credential was refused, and does not connect again.
const refusedCode = "400"

// answering has for each type of a peer's socket the type that answers it.
var answering = map[string]string{"SUB": "PUB", "XSUB": "XPUB", "REQ": "REP", "DEALER": "ROUTER"}

// peer is a connection from a socket of ZeroMQ, with its credential and its subscriptions. One goroutine may read, and several may write.
type peer struct {
	server  *ZeroMQ
	conn    net.Conn
	in      *bufio.Reader
	cancel  func() // closes the connection
	streams sync.WaitGroup

	isPlain bool // whether the peer has sent a credential
	user    string
	secret  understudy.Secret
	caller  understudy.Caller

	writing   lockwatch.Mutex
	mu        lockwatch.Mutex
	prefixes  []string // the subscriptions
	following []string // the sources that the peer follows
}

// identifyPeer exchanges greetings, and identifies the caller by PLAIN, or without a credential by NULL, as HTTP does. It returns the type
// of the peer's socket.
func (p *peer) identifyPeer(ctx context.Context) (socket string, err error) {
	own, peer := [greetingBytes]byte{0: 0xff, 9: 0x7f, 10: 3, 11: 1}, [greetingBytes]byte{}
	if err := p.write(own[:versionBytes]); err != nil {
		return "", err
	}
	if _, err := io.ReadFull(p.in, peer[:]); err != nil {
		return "", err
	}
	p.isPlain = bytes.HasPrefix(peer[12:], []byte("PLAIN\x00"))
	if isNull := bytes.HasPrefix(peer[12:], []byte("NULL\x00")); peer[0] != 0xff || peer[10] < 3 || !p.isPlain && !isNull {
		return "", errors.New("wires: the peer speaks neither PLAIN nor NULL of ZMTP 3")
	}
	first := "READY"
	if p.isPlain {
		first, own[32] = "HELLO", 1
	}
	copy(own[12:32], peer[12:32])
	if err := p.write(own[versionBytes:]); err != nil {
		return "", err
	}
	data, err := p.readCommand(first)
	if err != nil {
		return "", err
	}
	if p.isPlain {
		user, rest := cutShort(data)
		secret, _ := cutShort(rest)
		p.user, p.secret = string(user), understudy.NewSecret(string(secret))
	}
	if p.caller, err = p.server.Feed.Identify(p.newRequest(ctx, nil)); err != nil {
		if !errors.Is(err, understudy.ErrTooMany) { // after too many wrong secrets a later try may succeed
			err = errors.Join(err, p.write(appendCommand("ERROR", appendShort(nil, refusedCode))))
		}
		return "", err
	}
	if p.isPlain {
		if err := p.write(appendCommand("WELCOME", nil)); err != nil {
			return "", err
		}
		if data, err = p.readCommand("INITIATE"); err != nil {
			return "", err
		}
	}
	property := []byte("\x0bSocket-Type\x00\x00\x00") // with the size of its value, which has one more byte
	_, value, _ := bytes.Cut(data, property)
	name, _ := cutShort(value)
	if answering[string(name)] == "" {
		return "", fmt.Errorf("wires: the feed has no answers for sockets of the type %q", name)
	}
	return string(name), p.write(appendCommand("READY", appendShort(property, answering[string(name)])))
}

// readCommand reads a command of the handshake and returns what follows its name.
func (p *peer) readCommand(want string) ([]byte, error) {
	flags, body, err := p.readFrame(maxMessageBytes)
	name, data := cutShort(body)
	if err == nil && (flags&commandFlag == 0 || string(name) != want) {
		err = fmt.Errorf("wires: the peer sent no %s", want)
	}
	return data, err
}

// readFrame reads a frame whose body has at most limit bytes.
func (p *peer) readFrame(limit int) (flags byte, body []byte, err error) {
	if flags, err = p.in.ReadByte(); err != nil {
		return 0, nil, err
	}
	var size [8]byte
	digits := size[7:]
	if flags&longFlag != 0 {
		digits = size[:]
	}
	if _, err = io.ReadFull(p.in, digits); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint64(size[:])
	if limit < 0 || n > uint64(limit) || flags > commandFlag|longFlag|moreFlag {
		return 0, nil, errors.New("wires: a frame is too long or has unknown flags")
	}
	body = make([]byte, n)
	_, err = io.ReadFull(p.in, body)
	return flags, body, err
}

// receive returns the parts of the next message. A subscription is a message of one part that begins with 1, and its end one that begins
// with 0, also if the peer sends commands for them. receive answers pings and skips other commands.
func (p *peer) receive() (parts [][]byte, err error) {
	for room := maxMessageBytes; ; {
		flags, body, err := p.readFrame(room)
		if err != nil {
			return nil, err
		}
		if flags&commandFlag == 0 {
			room -= len(body) + partCostBytes
			if parts = append(parts, body); flags&moreFlag == 0 {
				return parts, nil
			}
			continue
		}
		name, data := cutShort(body)
		switch {
		case len(parts) > 0:
			return nil, errors.New("wires: a command is inside a message")
		case string(name) == "SUBSCRIBE":
			return [][]byte{append([]byte{1}, data...)}, nil
		case string(name) == "CANCEL":
			return [][]byte{append([]byte{0}, data...)}, nil
		case string(name) == "PING" && len(data) >= 2: // the answer repeats what follows the time to live
			if err := p.write(appendCommand("PONG", data[2:])); err != nil {
				return nil, err
			}
		}
	}
}

// write sends bytes. A peer that reads nothing for Stall gets an error.
func (p *peer) write(data []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.conn.SetWriteDeadline(p.server.Now().Add(p.server.Stall)) // an error means that the write fails
	_, err := p.conn.Write(data)
	return err
}

// send sends a message.
func (p *peer) send(parts ...[]byte) error {
	var data []byte
	for _, part := range parts[:len(parts)-1] {
		data = appendFrame(data, moreFlag, part)
	}
	return p.write(appendFrame(data, 0, parts[len(parts)-1]))
}

func appendFrame(b []byte, flags byte, body []byte) []byte {
	if len(body) > 255 {
		b = binary.BigEndian.AppendUint64(append(b, flags|longFlag), uint64(len(body)))
	} else {
		b = append(b, flags, byte(len(body)))
	}
	return append(b, body...)
}

// appendCommand returns the frame of a command.
func appendCommand(name string, data []byte) []byte {
	return appendFrame(nil, commandFlag, append(appendShort(nil, name), data...))
}

// appendShort appends a text of at most 255 bytes after its length.
func appendShort(b []byte, text string) []byte { return append(append(b, byte(len(text))), text...) }

// cutShort returns the text that appendShort wrote, and what follows it. Both are nil if the text is incomplete.
func cutShort(data []byte) (text, rest []byte) {
	if len(data) == 0 || int(data[0]) >= len(data) {
		return nil, nil
	}
	end := 1 + int(data[0])
	return data[1:end], data[end:]
}
