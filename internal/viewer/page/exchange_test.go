// Exchange: a handler that panics.

package page_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// A handler that panics is a failure with a page, and a line in the log; what
// panics behind a page leaves it whole.
func TestPanicIsAPage(t *testing.T) {
	for name, broken := range map[string]func(*page.Options){
		"mirror":   func(o *page.Options) { o.Mirror = (*viewertest.Mirror)(nil) },
		"snapshot": func(o *page.Options) { o.Snapshot = func(context.Context, string) page.Snapshot { panic("it broke") } },
	} {
		want := map[string]int{"mirror": http.StatusInternalServerError, "snapshot": http.StatusOK}[name]
		var log bytes.Buffer
		h := viewertest.Open(t, broken, func(o *page.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		status, body, _ := h.Get("/twilio/calls", viewertest.All)
		checktest.Equal(t, status, want, "%s: status; body %s", name, body)
		checktest.True(t, body != "", "%s: body is empty", name)
		checktest.Lacks(t, body, "broke", "%s: body", name)
		checktest.Lacks(t, body, "goroutine", "%s: body", name)
		if !strings.Contains(log.String(), "panic") || !strings.Contains(log.String(), "goroutine") {
			t.Errorf("%s: the log says %q", name, log.String())
		}
	}
}
