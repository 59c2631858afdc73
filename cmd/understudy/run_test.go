// Tests of the end: answers finish, tasks end after them, failures end all.

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
	"understudy/internal/config"
)

func testFace(t *testing.T, h http.Handler) *face {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var limits config.Limits
	limits.Defaults()
	return newFace("test", l, h, &limits, plainRefusal(), slog.New(slog.DiscardHandler))
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
		ended <- serveFaces(ctx, []*face{f}, []task{func(ctx context.Context) error { <-ctx.Done(); close(taskEnded); return ctx.Err() }})
	}()
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Get(f.url())
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
		t.Errorf("serveFaces: %v", err)
	}
}

// A task that fails ends everything, and its error is the result.
func TestAFailureEndsAll(t *testing.T) {
	boom := errors.New("boom")
	f := testFace(t, http.NotFoundHandler())
	other := make(chan struct{})
	err := serveFaces(t.Context(), []*face{f}, []task{
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
	_, err := listen(t.Context(), f.listener.Addr().String(), "--viewer")
	if err == nil || !strings.Contains(err.Error(), "is in use by another program; choose another address with --viewer") {
		t.Errorf("error %v", err)
	}
}

func TestRecentKeepsTheLast(t *testing.T) {
	r := newRecent()
	if n := len(r.last()); n != 0 {
		t.Errorf("%d times before the first", n)
	}
	for i := range recentCount + 5 {
		r.add(time.Duration(i))
	}
	if n := len(r.last()); n != recentCount {
		t.Errorf("%d times kept, want %d", n, recentCount)
	}
	if first := r.last()[0]; first != 5 {
		t.Errorf("the oldest is %d, want 5", first)
	}
}

func TestFolderIsHeldOnce(t *testing.T) {
	dir := t.TempDir()
	f, err := openFolder(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.announce("http://127.0.0.1:4114"); err != nil {
		t.Fatal(err)
	}
	if _, err := openFolder(dir, false); err == nil || !strings.Contains(err.Error(), "held by the server with viewer http://127.0.0.1:4114") {
		t.Errorf("second: %v", err)
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	again, err := openFolder(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.close(); err != nil {
		t.Error(err)
	}
}

// A folder remembers its world; flags may repeat it, not change it.
func TestAFolderKeepsItsWorld(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	first, err := worldFlags{Records: 100}.settle(dir, now)
	if err != nil || first.Seed != 1 || first.Records != 100 || !first.Epoch.Equal(now) {
		t.Fatalf("first = %v, %v", first, err)
	}
	for name, c := range map[string]struct {
		flags worldFlags
		ok    bool
	}{
		"nothing said":  {worldFlags{}, true},
		"the same":      {worldFlags{Records: 100, Seed: 1, Epoch: "2026-06-01T12:00:00Z"}, true},
		"other records": {worldFlags{Records: 101}, false},
		"other seed":    {worldFlags{Seed: 2}, false},
		"other epoch":   {worldFlags{Epoch: "2026-06-01T12:00:01Z"}, false},
	} {
		w, err := c.flags.settle(dir, now.Add(time.Hour))
		if (err == nil) != c.ok || c.ok && w != first {
			t.Errorf("%s: %v, %v", name, w, err)
		}
	}
}
