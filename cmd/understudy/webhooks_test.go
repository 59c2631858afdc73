// Webhooks and tail: tail waits for its server.

package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/datadir"
)

func TestTailMayStartBeforeItsServer(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: 8\ndata: {\"n\":8,\"kind\":\"calls\",\"id\":\"CA1\",\"what\":\"came\"}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	said, shown := make(pipe, 1000), make(pipe, 1000)
	p := &process{env: emptyEnv, stdout: shown, stderr: said}
	c := tailCmd{Remote: serverFlags{Running: localFlags{Data: data}}, JSON: true}
	err := c.Run(ctx, p)
	checktest.MustTrue(t, err != nil && strings.Contains(err.Error(), "no server runs in the data folder"), "without --wait: %v", err)

	c.Wait = true
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, p) }()
	checktest.Contains(t, said.next(ctx), "waiting for the server: no server runs in the data folder", "what tail says")
	checktest.MustNoError(t, os.Mkdir(data, 0o700), "the data folder")
	dir, err := datadir.Open(data, false)
	checktest.MustNoError(t, err, "the server takes its folder")
	t.Cleanup(func() { _ = dir.Close() })
	checktest.MustNoError(t, dir.WriteRunning(server.URL, ""), "the server listens")
	checktest.Contains(t, shown.next(ctx), `"id":"CA1"`, "the first change")
	cancel()
	checktest.NoError(t, <-ended, "Ctrl-C")
}

// pipe is an output whose writes are read one by one.
type pipe chan string

func (p pipe) Write(text []byte) (int, error) {
	select {
	case p <- string(text):
	default: // the test reads the first lines only
	}
	return len(text), nil
}

// next returns the next write, or "" after the end of ctx.
func (p pipe) next(ctx context.Context) string {
	select {
	case text := <-p:
		return text
	case <-ctx.Done():
		return ""
	}
}
