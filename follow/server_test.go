// Server: real servers with TLS, pings, and secrets that change.

package follow_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"

	"understudy/follow"
	"understudy/internal/checktest"
)

// A server offers HTTP/2, which has no upgrade.
func TestEachWireWorksOverTLS(t *testing.T) {
	t.Parallel()
	s := openCounter(t)
	s.add(3)
	server := httptest.NewUnstartedServer(s.server.Config.Handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	overEach(t, func(t *testing.T, wire follow.Wire) {
		client := server.Client()
		if wire == follow.Frames {
			client = follow.NewHTTPClient(wire)
			transport := client.Transport.(*http.Transport)
			transport.TLSClientConfig.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
			t.Cleanup(transport.CloseIdleConnections)
		}
		got, err := receive(t, follow.Options{URL: server.URL, Wire: wire, After: "0", HTTP: client}, 3)
		checktest.NoError(t, err, "the first changes")
		checktest.Equal(t, len(got), 3, "changes")
	})
}

// After a 401 each wire tries another secret, and only another one.
func TestEachWireTriesANewSecret(t *testing.T) {
	t.Parallel()
	s := openCounter(t)
	s.add(2)
	overEach(t, func(t *testing.T, wire follow.Wire) {
		secrets := []string{"old", "new"}
		var lost []error
		o := follow.Options{Wire: wire, After: "0", OnLost: func(err error, _ time.Duration) { lost = append(lost, err) },
			Locate: func(context.Context) (string, string, error) {
				secret := secrets[0]
				secrets = secrets[1:]
				return s.server.URL, secret, nil
			}}
		got, err := receive(t, o, 2)
		checktest.NoError(t, err, "the changes with the new secret")
		checktest.Equal(t, len(got), 2, "changes with the new secret")
		checktest.MustEqual(t, len(lost), 1, "connections lost")
		refused, ok := errors.AsType[*follow.StatusError](lost[0])
		checktest.MustTrue(t, ok && refused.Status == http.StatusUnauthorized, "lost: %v", lost[0])
		secrets = []string{"old", "old"}
		_, err = receive(t, o, 1)
		refused, ok = errors.AsType[*follow.StatusError](err)
		checktest.MustTrue(t, ok && refused.Status == http.StatusUnauthorized, "a secret that stays wrong: %v", err)
		checktest.Contains(t, refused.Text, "credential", "the text of the refusal")
		checktest.True(t, refused.RequestID != "", "the refusal has no id")
	})
}

// The server's library reads what the client sends: it accepts the pong and the answer to its close frame.
func TestPingAndCloseOfAServerAreAnswered(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			ended <- err
			return
		}
		ctx, cancel := context.WithTimeout(conn.CloseRead(context.WithoutCancel(r.Context())), 30*time.Second)
		defer cancel()
		for n := range 3 {
			err = errors.Join(err, conn.Ping(ctx), conn.Write(ctx, websocket.MessageText,
				fmt.Appendf(nil, `{"type":"change","cursor":"%d","change":{"n":%d}}`, n+1, n+1)), conn.Ping(ctx))
		}
		ended <- errors.Join(err, conn.Close(websocket.StatusGoingAway, "it stops"))
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []int64
	err := follow.Receive(ctx, follow.Options{URL: server.URL, Wire: follow.WebSocket, OnLost: func(err error, _ time.Duration) {
		checktest.Equal(t, err.Error(), "the server ended the stream", "lost")
		cancel()
	}}, func(ch follow.Change) error { got = append(got, ch.N); return nil })
	checktest.True(t, errors.Is(err, context.Canceled), "the end: %v", err)
	checktest.True(t, slices.Equal(got, []int64{1, 2, 3}), "changes %v", got)
	checktest.NoError(t, <-ended, "what the server wrote")
}
