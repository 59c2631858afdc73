// Wires: the forms in which the feed can be read, and the JSON messages of WebSockets and frames.

package follow

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"understudy/kit/frame"
)

// Wire is a form in which a server sends the feed. Each wire sends the same changes in the same order, and continues after a cursor
// of any wire. An event of more than 1 MiB ends Receive; over Frames, where it may be a damaged one, it ends the connection.
type Wire int

const (
	// Events is a stream of server-sent events (WHATWG HTML, 9.2). It is plain HTTP and passes most proxies.
	Events Wire = iota
	// Pages requests pages that wait up to 20 s for a change. It is for proxies that delay streams. The setting feed.wait must
	// be at least as long.
	Pages
	// WebSocket (RFC 6455) is for proxies that delay or cut other streams, but pass WebSockets on.
	WebSocket
	// Frames is a stream of package kit/frame. It is for connections that may damage bytes: each event has a checksum, and after
	// a wrong one Receive connects again. It needs HTTP/1.1 and a proxy that passes on the header Upgrade.
	Frames
	// Connect calls the gRPC service of the feed by the Connect protocol with JSON. It is for gateways that pass on or count the
	// calls of such services.
	Connect
)

// answers has what the response must have: the media type, or the protocol after an upgrade.
var answers = [...]string{Events: "text/event-stream", Pages: "application/json", WebSocket: "websocket", Frames: "understudy-frames",
	Connect: "application/connect+json"}

// newHTTPClient returns the client for a wire if Options.HTTP is nil.
func newHTTPClient(w Wire) *http.Client {
	def, ok := http.DefaultTransport.(*http.Transport)
	if w != Frames || !ok {
		return &http.Client{}
	}
	own := def.Clone()
	if own.TLSClientConfig == nil {
		own.TLSClientConfig = &tls.Config{}
	}
	own.TLSClientConfig.NextProtos = []string{"http/1.1"} // the clone offers HTTP/2, which has no upgrade to frames
	own.Protocols = new(http.Protocols)
	own.Protocols.SetHTTP1(true)
	return &http.Client{Transport: own}
}

// newRequest returns the request to the feed's address, without what is the same for each wire.
func (c *client) newRequest(ctx context.Context, at *url.URL) (*http.Request, error) {
	method, body := http.MethodGet, []byte(nil)
	if c.o.Wire == Connect {
		method = http.MethodPost
		at, body = c.makeCall(at)
	}
	req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	switch h, want := req.Header, answers[c.o.Wire]; c.o.Wire {
	case WebSocket:
		key := make([]byte, 16)
		_, _ = rand.Read(key) // cannot fail
		c.key = base64.StdEncoding.EncodeToString(key)
		h.Set("Sec-WebSocket-Key", c.key)
		h.Set("Sec-WebSocket-Version", "13")
		fallthrough
	case Frames:
		h.Set("Connection", "Upgrade")
		h.Set("Upgrade", want)
	case Connect:
		h.Set("Content-Type", want)
		h.Set("Connect-Protocol-Version", "1")
	default:
		h.Set("Accept", want)
	}
	return req, nil
}

// openStream returns a function that reads the next event of a response.
func (c *client) openStream(resp *http.Response) (func() (event, error), error) {
	in := bufio.NewReaderSize(resp.Body, 32<<10)
	switch c.o.Wire {
	case WebSocket:
		s, err := newSocket(in, resp, c.key)
		return decodeEach(s.readMessage), err
	case Frames:
		return decodeEach(frame.NewReader(in, maxEvent).Next), nil // a frame over the limit may be a damaged one: it is no errLong
	case Connect:
		return func() (event, error) { return readCall(in) }, nil
	}
	return newParser(in).readEvent, nil
}

// decodeEach returns a function that reads a message and returns its event. An event of an unknown type has no data, and a message
// that is not JSON becomes data, so that change reports what is wrong with it.
func decodeEach(read func() ([]byte, error)) func() (event, error) {
	return func() (event, error) {
		message, err := read()
		if err != nil {
			return event{}, err
		}
		var m struct {
			Type, Cursor string
			Change       json.RawMessage
		}
		if err := json.Unmarshal(message, &m); err != nil {
			return event{data: message, retry: -1}, nil
		}
		e := event{id: m.Cursor, hasID: m.Cursor != "", retry: -1}
		if m.Type == "change" {
			e.data = append([]byte{}, m.Change...) // a missing change is not a change
		}
		return e, nil
	}
}
