// This file sends the feed as text messages of a WebSocket (RFC 6455).

package wires

import (
	"context"
	"net/http"
	"strconv"

	"github.com/coder/websocket"

	"understudy/internal/feed"
)

// serveSocket checks the request as GET /-/feed does, accepts the WebSocket and sends one message per event. A refusal is the JSON
// response of the feed, before the upgrade.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request) {
	s := h.subscribe(w, r)
	if s == nil {
		return
	}
	var err error
	defer func() { s.Close(err) }()
	conn, err := websocket.Accept(w, r, nil) // it refuses pages of other sites, by the header Origin
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	status, reason := websocket.StatusNormalClosure, ""
	ctx := conn.CloseRead(context.WithoutCancel(r.Context())) // it ends when the client closes the connection or sends a message
	for e, stop := range s.Follow(ctx) {
		if err = stop; err == nil {
			err = writeMessage(ctx, conn, s, &e)
		}
		if err != nil {
			return
		}
		if e.Kind == feed.EventEnd {
			status, reason = websocket.StatusGoingAway, feed.EndMessage
		}
	}
	err = conn.Close(status, reason)
}

// encodeMessage returns an event as {"type":"change","cursor":"…","change":{…}}, or nil if it has no message. The other types are
// start, heartbeat and end.
func encodeMessage(e *feed.Event) []byte {
	var text []byte
	switch e.Kind {
	case feed.EventStart:
		text = append(text, `{"type":"start"`...)
	case feed.EventChange:
		text = append(text, `{"type":"change"`...)
	case feed.EventHeartbeat:
		text = append(text, `{"type":"heartbeat"`...)
	case feed.EventEnd:
		text = strconv.AppendQuote(append(text, `{"type":"end","reason":`...), feed.EndMessage)
	default: // each message is flushed
		return nil
	}
	if e.Cursor != nil {
		text = strconv.AppendQuote(append(text, `,"cursor":`...), string(e.Cursor))
	}
	if e.JSON != nil {
		text = append(append(text, `,"change":`...), e.JSON...)
	}
	return append(text, '}')
}

// writeMessage sends the message of an event, if it has one.
func writeMessage(ctx context.Context, conn *websocket.Conn, s *feed.Subscription, e *feed.Event) error {
	text := encodeMessage(e)
	if text == nil {
		return nil
	}
	deadline, _ := s.ExtendDeadline()
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, text)
}
