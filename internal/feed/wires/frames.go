// This file sends the feed as frames of kit/frame over the connection of the request.

package wires

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"understudy"
	"understudy/internal/feed"
	"understudy/kit/frame"
)

// framesProtocol is the value of the header Upgrade that asks for frames.
const framesProtocol = "understudy-frames"

// maxUnsent is the number of bytes after which frames are written before the next EventRead.
const maxUnsent = 32 << 10

// serveFrames checks the request as GET /-/feed does, takes over the connection and sends one frame per event: the text of
// a WebSocket's message, or the message FollowResponse if the caller accepts application/protobuf. A refusal is the JSON response of
// the feed, before the upgrade.
func (h *Handler) serveFrames(w http.ResponseWriter, r *http.Request) {
	s := h.subscribe(w, r)
	if s == nil {
		return
	}
	var err error
	defer func() { s.Close(err) }()
	conn, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		err = fmt.Errorf("feed: %w: frames need a connection of HTTP/1.1", understudy.ErrInvalid)
		h.feed.Refuse(w, r, err)
		return
	}
	_ = conn.SetReadDeadline(time.Time{}) // the read deadline of the request must not end the stream
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	done := make(chan struct{})
	go func() { // it ends when the client closes the connection or sends a byte
		defer close(done)
		defer cancel()
		_, _ = buffer.ReadByte()
	}()
	defer func() { _ = conn.Close(); <-done }()
	encode := encodeMessage
	if strings.Contains(r.Header.Get("Accept"), "application/protobuf") {
		encode = encodeProto
	}
	err = sendFrames(ctx, conn, s, encode)
}

// sendFrames confirms the upgrade and writes a frame per event. It writes the changes that were read at once together.
func sendFrames(ctx context.Context, conn net.Conn, s *feed.Subscription, encode func(*feed.Event) []byte) error {
	unsent := fmt.Appendf(nil, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", framesProtocol)
	for e, err := range s.Follow(ctx) {
		if err != nil {
			return err
		}
		if content := encode(&e); len(content) > 0 {
			unsent = frame.Append(unsent, content)
		}
		if e.Kind == feed.EventChange && len(unsent) < maxUnsent || len(unsent) == 0 {
			continue
		}
		if deadline, isNew := s.ExtendDeadline(); isNew {
			_ = conn.SetWriteDeadline(deadline) // an error means that the next write fails
		}
		if _, err := conn.Write(unsent); err != nil {
			return err
		}
		unsent = unsent[:0]
	}
	return nil
}
