// ZeroMQ: what only its sockets can do, and a client for the cases of every wire.

package wires

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/feed/feedtest"
)

// startZeroMQ returns the address at which a rig serves sockets of ZeroMQ.
func startZeroMQ(t *testing.T, r *rig, connections int, stall time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	checktest.MustNoError(t, err, "listen")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	z := &ZeroMQ{Feed: r.feed, Sources: []string{"twilio"}, MaxConnections: connections, Stall: stall, Now: time.Now}
	go func() { done <- z.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		checktest.NoError(t, <-done, "serve")
	})
	return l.Addr().String()
}

// socket is the client's side of a connection. It reads and writes frames as a server does.
type zmqSocket struct{ peer }

// dialZeroMQ connects a socket of a type. Without a user it speaks NULL.
func dialZeroMQ(t *testing.T, address, kind, user string) (*zmqSocket, error) {
	conn, err := new(net.Dialer).DialContext(within(t), "tcp", address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	s := &zmqSocket{peer{server: &ZeroMQ{Now: time.Now, Stall: 30 * time.Second}, conn: conn, in: bufio.NewReader(conn)}}
	return s, s.introduce(kind, user)
}

// greet sends a greeting with a mechanism and reads that of the server.
func (s *zmqSocket) greet(mechanism string) error {
	greeting := [greetingBytes]byte{0: 0xff, 9: 0x7f, 10: 3, 11: 1}
	copy(greeting[12:], mechanism)
	_, failed := s.conn.Write(greeting[:])
	_, err := io.ReadFull(s.in, greeting[:])
	if err == nil && !bytes.HasPrefix(greeting[12:], []byte(mechanism+"\x00")) {
		err = fmt.Errorf("the server's mechanism is %q", greeting[12:32])
	}
	return errors.Join(failed, err)
}

// introduce does the handshake. A refusal is the error 401.
func (s *zmqSocket) introduce(kind, user string) error {
	property := appendShort([]byte("\x0bSocket-Type\x00\x00\x00"), kind)
	if user == "" {
		err := errors.Join(s.greet("NULL"), s.write(appendCommand("READY", property)))
		if _, failed := s.readCommand("READY"); err == nil && failed != nil {
			return refusal(http.StatusUnauthorized)
		}
		return err
	}
	if err := errors.Join(s.greet("PLAIN"), s.write(appendCommand("HELLO", appendShort(appendShort(nil, user), "secret")))); err != nil {
		return err
	}
	if _, err := s.readCommand("WELCOME"); err != nil {
		return refusal(http.StatusUnauthorized)
	}
	if err := s.write(appendCommand("INITIATE", property)); err != nil {
		return err
	}
	_, err := s.readCommand("READY")
	return err
}

// ask sends a request and returns the answer without its envelope.
func (s *zmqSocket) ask(parts ...string) ([]string, error) {
	message := [][]byte{nil}
	for _, part := range parts {
		message = append(message, []byte(part))
	}
	if err := s.send(message...); err != nil {
		return nil, err
	}
	all, err := s.receiveTexts()
	if err != nil {
		return nil, err
	}
	if len(all) < 3 || all[0] != "" {
		return nil, fmt.Errorf("the answer %q has no envelope, status or cursor", all)
	}
	return all[1:], nil
}

func (s *zmqSocket) receiveTexts() (texts []string, err error) {
	for {
		flags, body, err := s.readFrame(1 << 20)
		if err != nil {
			return nil, err
		}
		if texts = append(texts, string(body)); flags&moreFlag == 0 {
			return texts, nil
		}
	}
}

// zmqClient follows as the documents advise: it takes pages by REQ, and waits for the next change by SUB.
type zmqClient struct {
	asking, waiting *zmqSocket
	cursor          string
	query           url.Values
}

func openZeroMQ(t *testing.T, r *rig, role, query string) (client, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil, err
	}
	address := startZeroMQ(t, r, 10, 30*time.Second)
	c := &zmqClient{cursor: q.Get("after"), query: q}
	q.Del("after")
	q.Set("limit", "1")
	q.Set("wait", "0s")
	if c.asking, err = dialZeroMQ(t, address, "REQ", role); err != nil {
		return nil, err
	}
	if answer, err := c.asking.ask("twilio", c.cursor, c.query.Encode()); err != nil || answer[0] != "200" {
		return nil, refuse(answer, err)
	}
	if c.waiting, err = dialZeroMQ(t, address, "SUB", role); err != nil {
		return nil, err
	}
	return c, c.waiting.send([]byte("\x01twilio/"))
}

// refuse returns the error of an answer.
func refuse(answer []string, err error) error {
	if err != nil {
		return err
	}
	status, err := strconv.Atoi(answer[0])
	return errors.Join(err, refusal(status))
}

func (c *zmqClient) next() (event, error) {
	for {
		answer, err := c.asking.ask("twilio", c.cursor, c.query.Encode())
		if err != nil || answer[0] != "200" {
			return event{}, errEnded
		}
		if c.cursor = answer[1]; len(answer) > 2 {
			return event{"change", c.cursor, describe([]byte(answer[2]))}, nil
		}
		message, err := c.waiting.receiveTexts()
		if err != nil || strings.Contains(message[2], `"type":"end"`) {
			return event{cursor: c.cursor}, errEnded
		}
	}
}

func (c *zmqClient) close() { _, _ = c.asking.conn.Close(), c.waiting.conn.Close() }

// subscribeZeroMQ opens a SUB socket with subscriptions.
func subscribeZeroMQ(t *testing.T, address, user string, prefixes ...string) *zmqSocket {
	t.Helper()
	s, err := dialZeroMQ(t, address, "SUB", user)
	checktest.MustNoError(t, err, "connect")
	for _, prefix := range prefixes {
		checktest.MustNoError(t, s.send([]byte("\x01"+prefix)), "subscribe")
	}
	return s
}

// mustReceive returns the topic and the body of the next message.
func (s *zmqSocket) mustReceive(t *testing.T) (topic, body string) {
	t.Helper()
	m, err := s.receiveTexts()
	checktest.MustNoError(t, err, "a message")
	checktest.MustTrue(t, len(m) == 3, "the message has the parts %q", m)
	return m[0], m[2]
}

func TestZeroMQSubscriptionsChooseTopics(t *testing.T) {
	t.Parallel()
	r := newRig(t, feedtest.NewTable("twilio"), 0)
	address := startZeroMQ(t, r, 10, time.Minute)
	calls := subscribeZeroMQ(t, address, "all", "twilio/calls")
	every := subscribeZeroMQ(t, address, "all", "")
	few := subscribeZeroMQ(t, address, "few", "twilio/")
	none := subscribeZeroMQ(t, address, "all", "github/")
	checktest.MustNoError(t, none.write(appendCommand("SUBSCRIBE", []byte("twilio/mess"))), "subscribe by a command")
	for s, want := range map[*zmqSocket]string{calls: "twilio/calls", every: "", few: "twilio/", none: "twilio/mess"} {
		topic, body := s.mustReceive(t)
		checktest.Equal(t, topic, want, "the topic of the start")
		checktest.Contains(t, body, `{"type":"start","cursor":"`, "the start")
	}
	r.make(came("calls", "CA1"), came("messages", "SM1"), came("calls", "CA2"))
	for s, want := range map[*zmqSocket][]string{
		calls: {"twilio/calls 1 came calls CA1", "twilio/calls 3 came calls CA2"},
		every: {"twilio/calls 1 came calls CA1", "twilio/messages 2 came messages SM1", "twilio/calls 3 came calls CA2"},
		few:   {"twilio/messages came messages SM1"}, // without a number
		none:  {"twilio/messages 2 came messages SM1"},
	} {
		for _, one := range want {
			topic, body := s.mustReceive(t)
			checktest.Equal(t, topic+" "+describe([]byte(body)), one, "a change")
		}
	}
	checktest.MustNoError(t, every.send([]byte("\x00")), "unsubscribe")
	checktest.MustNoError(t, every.send([]byte("\x01twilio/messages")), "subscribe")
	checktest.MustNoError(t, every.write(appendCommand("PING", []byte("\x00\x01abc"))), "ping")
	data, err := every.readCommand("PONG")
	checktest.MustNoError(t, err, "pong")
	checktest.Equal(t, string(data), "abc", "the context of the ping")
	r.make(came("calls", "CA3"), came("messages", "SM2"))
	_, body := every.mustReceive(t)
	checktest.Equal(t, describe([]byte(body)), "5 came messages SM2", "the change after another subscription")
	few.mustReceive(t)
	r.feed.End()
	_, body = few.mustReceive(t)
	checktest.Contains(t, body, `"type":"end"`, "the last message")
	_, err = few.receiveTexts()
	checktest.True(t, err != nil, "the connection stays open after the end")
}

func TestZeroMQRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t, feedtest.NewTable("twilio"), 0)
	address := startZeroMQ(t, r, 10, time.Minute)
	other := subscribeZeroMQ(t, address, "other", "twilio/")
	_, body := other.mustReceive(t)
	checktest.Contains(t, body, `{"type":"error","source":"twilio","status":403,"error":"your role (other) can't`, "a role without grants")
	_, err := dialZeroMQ(t, address, "PUSH", "all")
	checktest.True(t, err != nil, "a PUSH socket is served")
	ask, err := dialZeroMQ(t, address, "REQ", "all")
	checktest.MustNoError(t, err, "connect")
	for _, c := range []struct{ parts, want string }{
		{"twilio", "400||a request has the parts"}, {"twilio|0|limit=x|y", "400||a request has the parts"},
		{"twilio|0|limit=%", "400||the parameters"}, {"twilio|0|limit=0", "400||limit=0 is not allowed"},
		{"nowhere|0", "400||no source is called"}, {"|0", "200|0."}, {"twilio||wait=0s", "200|0."},
	} {
		got, err := ask.ask(strings.Split(c.parts, "|")...)
		checktest.MustNoError(t, err, c.parts)
		checktest.True(t, strings.HasPrefix(strings.Join(got, "|"), c.want), "%q: %q", c.parts, got)
	}
	checktest.MustNoError(t, ask.send([]byte("no envelope")), "send")
	_, err = ask.receiveTexts()
	checktest.True(t, err != nil, "a request without an envelope is answered")
	for _, bad := range [][]byte{
		appendFrame(nil, 8, nil), {longFlag, 255, 255, 255, 255, 255, 255, 255, 255}, appendFrame(nil, 0, []byte("\x02x")),
		append(appendFrame(nil, moreFlag, []byte("\x01")), appendCommand("PING", []byte("123"))...),
		bytes.Repeat(appendFrame(nil, moreFlag, nil), 1000), bytes.Repeat(appendFrame(nil, 0, []byte("\x01a")), maxSubscriptions+1),
	} {
		s := subscribeZeroMQ(t, address, "all")
		_ = s.write(bad)
		for err = nil; err == nil; {
			_, err = s.receiveTexts()
		}
		checktest.True(t, !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err), "%.20q: %v", bad, err)
	}
	r.awaitFree(t)
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// A peer that has sent a request and left costs nothing, and connections above the limit are closed until one ends.
func TestZeroMQPeersThatLeave(t *testing.T) {
	t.Parallel()
	r := newRig(t, feedtest.NewTable("twilio"), 0)
	address := startZeroMQ(t, r, 1, time.Minute)
	for range 20 {
		first, err := dialAgain(t, address)
		checktest.MustNoError(t, err, "connect")
		checktest.MustNoError(t, first.send(nil, []byte("twilio"), nil, []byte("wait=1m")), "send")
		checktest.MustNoError(t, first.conn.Close(), "leave")
	}
	last, err := dialAgain(t, address)
	checktest.MustNoError(t, err, "connect")
	_, err = dialZeroMQ(t, address, "REQ", "all")
	checktest.True(t, err != nil, "a connection above the limit is served")
	r.make(came("calls", "CA1"))
	answer, err := last.ask("twilio", "0", "wait=1m")
	checktest.MustNoError(t, err, "ask")
	checktest.Equal(t, describe([]byte(answer[2])), "1 came calls CA1", "the change")
	r.awaitFree(t)
}

// dialAgain connects as sockets of ZeroMQ do: again, until the server accepts it.
func dialAgain(t *testing.T, address string) (*zmqSocket, error) {
	for end := within(t); ; {
		s, err := dialZeroMQ(t, address, "REQ", "all")
		if err == nil || end.Err() != nil {
			return s, err
		}
	}
}

// A subscriber that reads nothing is disconnected.
func TestZeroMQSlowReaderIsDisconnected(t *testing.T) {
	t.Parallel()
	r := newRig(t, feedtest.NewTable("twilio"), 0)
	s := subscribeZeroMQ(t, startZeroMQ(t, r, 10, 200*time.Millisecond), "all", "")
	s.mustReceive(t)
	long := strings.Repeat("x", 4000)
	for range 10 {
		var changes []understudy.Change
		for i := range 500 {
			changes = append(changes, came("calls", fmt.Sprint("CA", i, long)))
		}
		r.make(changes...)
	}
	r.awaitFree(t)
	checktest.Equal(t, r.feed.Load().Dropped, 1, "subscribers disconnected")
}

// FuzzZeroMQ sends a connection any bytes after the greeting. It ends, and keeps no place.
func FuzzZeroMQ(f *testing.F) {
	property := []byte("\x0bSocket-Type\x00\x00\x00\x03SUB")
	hello := appendCommand("HELLO", appendShort(appendShort(nil, "all"), "secret"))
	f.Add(true, slices.Concat(hello, appendCommand("INITIATE", property), appendFrame(nil, 0, []byte("\x01"))))
	f.Add(false, appendCommand("READY", property))
	f.Add(true, slices.Concat(hello, appendCommand("INITIATE", bytes.ReplaceAll(property, []byte("SUB"), []byte("REQ"))),
		appendFrame(nil, moreFlag, nil), appendFrame(nil, moreFlag, []byte("twilio")), appendFrame(nil, 0, []byte("0"))))
	f.Add(true, []byte{commandFlag, 5, 255, 'H', 'E', 'L', 'O'})
	f.Fuzz(func(t *testing.T, isPlain bool, data []byte) {
		r := newRig(t, feedtest.NewTable("twilio"), 0)
		mechanism := map[bool]string{true: "PLAIN", false: "NULL"}[isPlain]
		server, conn := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			z := &ZeroMQ{Feed: r.feed, Sources: []string{"twilio"}, MaxConnections: 1, Stall: time.Minute, Now: time.Now}
			z.serve(t.Context(), server)
		}()
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		greeting := [greetingBytes]byte{0: 0xff, 9: 0x7f, 10: 3}
		copy(greeting[12:], mechanism)
		_, _ = conn.Write(append(greeting[:], data...))
		_ = conn.Close()
		<-done
		checktest.Equal(t, r.feed.Load().Now, 0, "places in use")
	})
}
