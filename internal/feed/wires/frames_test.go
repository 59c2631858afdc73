package wires

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/proto"

	"understudy/follow/feedpb"
	"understudy/internal/checktest"
	"understudy/internal/feed/feedtest"
	"understudy/kit/frame"
)

// frames is a connection that carries frames.
type frames struct {
	conn    net.Conn
	in      *frame.Reader
	isProto bool
}

func openFrames(t *testing.T, r *rig, role, query string) (client, error) {
	return upgrade(t, r, role, query, "*/*")
}

func openProtoFrames(t *testing.T, r *rig, role, query string) (client, error) {
	return upgrade(t, r, role, query, "application/protobuf")
}

// upgrade sends a request for frames over a new connection.
func upgrade(t *testing.T, r *rig, role, query, accept string) (client, error) {
	req := r.request(within(t), role, "/-/feed?"+query)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "understudy-frames")
	req.Header.Set("Accept", accept)
	conn, err := new(net.Dialer).DialContext(req.Context(), "tcp", r.server.Listener.Addr().String())
	if err != nil {
		return nil, err
	}
	deadline, _ := req.Context().Deadline()
	if err := errors.Join(conn.SetDeadline(deadline), req.Write(conn)); err != nil {
		return nil, err
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, errors.Join(refusal(resp.StatusCode), resp.Body.Close(), conn.Close())
	}
	return &frames{conn, frame.NewReader(in, 64<<10), accept == "application/protobuf"}, nil
}

func (f *frames) next() (event, error) {
	content, err := f.in.Next()
	if errors.Is(err, io.EOF) {
		return event{}, errEnded
	}
	if err != nil {
		return event{}, err
	}
	if !f.isProto {
		return parseJSON(content)
	}
	m := &feedpb.FollowResponse{}
	err = proto.Unmarshal(content, m)
	return parseProto(m), err
}

func (f *frames) close() { _ = f.conn.Close() }

// A subscriber that leaves or sends something gives its place back.
func TestFramesEndWhenTheSubscriberSends(t *testing.T) {
	t.Parallel()
	r := newRig(t, feedtest.NewTable("twilio"), 0)
	for _, leave := range []func(*frames) error{
		func(f *frames) error { _, err := f.conn.Write([]byte("x")); return err },
		func(f *frames) error { return f.conn.Close() },
	} {
		s := subscribe(t, openFrames, r, "all", "after=0")
		if e, err := s.client.next(); err != nil || e.kind != "start" {
			t.Fatalf("%v, %v", e, err)
		}
		checktest.Equal(t, r.feed.Load().Now, 1, "subscribers")
		checktest.NoError(t, leave(s.client.(*frames)), "leave")
		r.awaitFree(t)
	}
}

// A connection that cannot be taken over, such as one of HTTP/2, is refused in words.
func TestFramesNeedAConnectionOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, feedtest.NewTable("twilio"), 0)
	req := r.request(within(t), "all", "/-/feed")
	req.Header.Set("Upgrade", "Understudy-Frames")
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	checktest.Equal(t, w.Code, http.StatusBadRequest, "the status")
	checktest.Contains(t, w.Body.String(), "frames need a connection of HTTP/1.1", "the answer")
	r.awaitFree(t)
}
