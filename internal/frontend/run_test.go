// Tests of the end: answers finish, tasks end after them, failures end all.

package frontend

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"understudy/internal/config"
)

func testFace(t *testing.T, h http.Handler) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var limits config.Limits
	limits.SetDefaults()
	return NewServer("test", l, h, &limits, PlainRefusal(), slog.New(slog.DiscardHandler))
}

// An answer on its way when the signal comes is finished, and the tasks it
// needs run until it is.
func TestRunningAnswersFinish(t *testing.T) {
	ctx, signal := context.WithCancel(t.Context())
	inside, release := make(chan struct{}), make(chan struct{})
	taskEnded := make(chan struct{})
	f := testFace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(inside)
		<-release
		select {
		case <-taskEnded:
			t.Error("the task ended before the answer")
		default:
		}
		_, _ = io.WriteString(w, "whole")
	}))
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, []*Server{f}, []Task{func(ctx context.Context) error { <-ctx.Done(); close(taskEnded); return ctx.Err() }})
	}()
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Get(f.URL())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	<-inside
	signal()
	close(release)
	if got := <-answer; got != "whole" {
		t.Errorf("answer %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// A task that fails ends everything, and its error is the result.
func TestAFailureEndsAll(t *testing.T) {
	boom := errors.New("boom")
	f := testFace(t, http.NotFoundHandler())
	other := make(chan struct{})
	err := Run(t.Context(), []*Server{f}, []Task{
		func(context.Context) error { return boom },
		func(ctx context.Context) error { <-ctx.Done(); close(other); return nil },
	})
	if !errors.Is(err, boom) {
		t.Errorf("error %v, want boom", err)
	}
	<-other
}

func TestTakenPort(t *testing.T) {
	f := testFace(t, http.NotFoundHandler())
	defer f.listener.Close()
	_, err := Listen(t.Context(), f.listener.Addr().String(), "--viewer")
	if err == nil || !strings.Contains(err.Error(), "is in use by another program; choose another address with --viewer") {
		t.Errorf("error %v", err)
	}
}
