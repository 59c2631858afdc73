// This file sends the feed to sockets of ZeroMQ: changes to SUB and XSUB, pages to REQ and DEALER.

package wires

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"understudy/internal/feed"
	"understudy/kit/jsonspan"
	"understudy/kit/retry"
)

// ZeroMQ serves the feed by ZMTP 3. Sockets of ZeroMQ's libraries send the same to every subscriber; here each connection receives what
// the role of its credential may see. PLAIN sends secrets as clear text, so other machines must not reach the port.
type ZeroMQ struct {
	Feed           *feed.Feed
	Sources        []string      // the names of all sources
	MaxConnections int           // the maximum number of connections
	Stall          time.Duration // how long a peer may read nothing before its connection is closed
	Now            func() time.Time
}

const (
	handshakeTimeout = 10 * time.Second
	acceptPause      = 100 * time.Millisecond // the pause after a connection could not be accepted
	maxSubscriptions = 100                    // the maximum number of subscriptions of a connection
)

// Serve accepts connections until ctx ends. Then it closes the listener and all connections. It closes connections above the maximum at
// once; sockets of ZeroMQ connect again by themselves.
func (z *ZeroMQ) Serve(ctx context.Context, l net.Listener) error {
	var peers sync.WaitGroup
	defer peers.Wait()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	slots := make(chan struct{}, z.MaxConnections)
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			_ = retry.Wait(ctx, acceptPause)
			continue
		}
		select {
		case slots <- struct{}{}:
			peers.Go(func() { z.serve(ctx, conn); <-slots })
		default:
			_ = conn.Close()
		}
	}
}

// serve serves one connection until it or ctx ends.
func (z *ZeroMQ) serve(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	p := &peer{server: z, conn: conn, in: bufio.NewReader(conn), cancel: cancel}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer p.streams.Wait()
	defer cancel()
	_ = conn.SetReadDeadline(z.Now().Add(handshakeTimeout)) // an error means that the next read fails
	socket, err := p.identifyPeer(ctx)
	_ = conn.SetReadDeadline(time.Time{})
	idle := make(chan struct{}, 1) // has a value while a request is answered
	for err == nil {
		var parts [][]byte
		if parts, err = p.receive(); err != nil {
			return
		}
		if strings.HasSuffix(socket, "SUB") {
			err = p.subscribe(ctx, parts[0])
			continue
		}
		select {
		case idle <- struct{}{}:
			p.streams.Go(func() { p.answer(ctx, parts); <-idle }) // meanwhile the next read notices a peer that has left
		case <-ctx.Done():
			return
		}
	}
}

// newRequest returns the request of GET /-/feed that asks the same.
func (p *peer) newRequest(ctx context.Context, q url.Values) *http.Request {
	r := (&http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/-/feed", RawQuery: q.Encode()}, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Host: p.conn.LocalAddr().String(), RemoteAddr: p.conn.RemoteAddr().String()}).WithContext(ctx)
	if p.isPlain {
		r.SetBasicAuth(p.user, p.secret.Reveal())
	}
	return r
}

// subscribe adds the subscription of a message that begins with 1, or removes that of a message that begins with 0. The first
// subscription of a source starts to follow it.
func (p *peer) subscribe(ctx context.Context, message []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	isEnd := bytes.HasPrefix(message, []byte{0})
	if !isEnd && (!bytes.HasPrefix(message, []byte{1}) || len(p.prefixes) == maxSubscriptions) {
		return errors.New("wires: the message is not a subscription, or there are too many")
	}
	prefix := string(message[1:])
	if i := slices.Index(p.prefixes, prefix); isEnd && i >= 0 {
		p.prefixes = slices.Delete(p.prefixes, i, i+1)
	} else if !isEnd {
		p.prefixes = append(p.prefixes, prefix)
	}
	for _, source := range p.server.Sources {
		isForeign := p.caller.Source != "" && p.caller.Source != source
		if !isForeign && !isEnd && isMatch(source+"/", prefix) && !slices.Contains(p.following, source) {
			p.following = append(p.following, source)
			p.streams.Go(func() { p.follow(ctx, source) })
		}
	}
	return nil
}

// isMatch reports whether a topic begins with a subscription. "SOURCE/" stands for any topic of a source.
func isMatch(topic, prefix string) bool {
	return strings.HasPrefix(topic, prefix) || strings.HasSuffix(topic, "/") && strings.HasPrefix(prefix, topic)
}

// follow sends the events of a source. After the last one it closes the connection, and the peer connects again. A refusal is a message.
func (p *peer) follow(ctx context.Context, source string) {
	r := p.newRequest(ctx, url.Values{"source": {source}})
	s, err := p.server.Feed.Subscribe(r)
	if err != nil {
		status, text := p.server.Feed.Explain(r, err)
		body := jsonspan.Quote(fmt.Appendf(nil, `{"type":"error","source":%q,"status":%d,"error":`, source, status), text)
		if p.publish(source+"/", nil, append(body, '}')) != nil || status == http.StatusServiceUnavailable {
			p.cancel()
		}
		return
	}
	defer p.cancel()
	defer func() { s.Close(err) }()
	for e, stop := range s.Follow(ctx) {
		switch {
		case stop != nil:
			err = stop
		case e.Kind == feed.EventChange:
			err = p.publish(source+"/"+e.Change.Kind, e.Cursor, e.JSON)
		case e.Kind != feed.EventRead:
			err = p.publish(source+"/", e.Cursor, encodeMessage(&e))
		}
		if err != nil {
			return
		}
	}
}

// publish sends a message if a subscription matches its topic. Messages of a whole source have the subscription as their topic, because
// sockets drop messages whose topic matches none.
func (p *peer) publish(topic string, cursor, body []byte) error {
	p.mu.Lock()
	i := slices.IndexFunc(p.prefixes, func(prefix string) bool { return isMatch(topic, prefix) })
	if i >= 0 && strings.HasSuffix(topic, "/") {
		topic = p.prefixes[i]
	}
	p.mu.Unlock()
	if i < 0 {
		return nil
	}
	return p.send([]byte(topic), cursor, body)
}

// answer answers a request. Its parts up to the first empty one are the envelope, which the answer repeats.
func (p *peer) answer(ctx context.Context, parts [][]byte) {
	i := slices.IndexFunc(parts, func(part []byte) bool { return len(part) == 0 }) + 1
	if i == 0 || p.send(append(parts[:i:i], p.readPage(ctx, parts[i:])...)...) != nil {
		p.cancel()
	}
}

// readPage returns the answer to a request with the parts source, cursor and, if there are three, parameters of GET /-/feed.json: the
// status, the next cursor, and the changes. Of a refusal the third part is the reason.
func (p *peer) readPage(ctx context.Context, parts [][]byte) [][]byte {
	refuse := func(status int, text string) [][]byte {
		return [][]byte{strconv.AppendInt(nil, int64(status), 10), nil, []byte(text)}
	}
	if len(parts) < 2 || len(parts) > 3 {
		return refuse(http.StatusBadRequest, "a request has the parts source, cursor and, if needed, parameters such as kind=calls&wait=20s")
	}
	q, err := url.ParseQuery(string(slices.Concat(parts[2:]...)))
	if err != nil {
		return refuse(http.StatusBadRequest, "the parameters cannot be parsed")
	}
	if q.Set("after", cmp.Or(string(parts[1]), "now")); len(parts[0]) > 0 {
		q.Set("source", string(parts[0]))
	}
	r := p.newRequest(ctx, q)
	changes, next, err := p.server.Feed.ReadPage(r)
	if err != nil {
		return refuse(p.server.Feed.Explain(r, err))
	}
	return append([][]byte{[]byte("200"), []byte(next)}, changes...)
}
