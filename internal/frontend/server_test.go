// Listening: what net/http says is logged.

package frontend

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/config"
)

// M1: a panic of a handler is logged at error, with its stack.
func TestPanicsAreLogged(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	var limits config.Limits
	limits.SetDefaults()
	f := NewServer("test", l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oh no") }), &limits, PlainRefusal(),
		slog.New(slog.NewTextHandler(&said, nil)))
	done := make(chan error, 1)
	go func() { done <- f.serve() }()
	client := http.Client{Timeout: 10 * time.Second}
	if resp, err := client.Get(f.URL()); err == nil {
		_ = resp.Body.Close()
		t.Error("a panic was answered")
	}
	client.CloseIdleConnections()
	if err := f.stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	text := said.String()
	checktest.Contains(t, text, "level=ERROR", "logged: text")
	checktest.Contains(t, text, "oh no", "logged: text")
	checktest.Contains(t, text, "face=test", "logged: text")
	checktest.Contains(t, text, "server_test.go", "logged: text")
}
