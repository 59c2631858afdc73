// Own: our own numbers are marked where they are held.

package page_test

import (
	"context"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

// The newest page of our own numbers that is slow to come delays no page; the
// viewer ends it when it closes.
func TestMarksAreNotWaitedFor(t *testing.T) {
	held := make(chan struct{})
	h := viewertest.Open(t)
	h.Mirror.Lock()
	h.Mirror.Fetch = slowNumbers(h.Mirror.Fetch, held)
	h.Mirror.Unlock()
	for range 3 {
		if page := h.Page("/twilio/calls", viewertest.Hurried); strings.Contains(page, `class="own"`) {
			t.Error("marked by numbers that never came")
		}
	}
	select {
	case <-held:
		t.Error("the question about numbers ended with the page")
	default:
	}
	viewertest.Must(t, h.Viewer.Visitor.Close())
	<-held
	h.Mirror.Lock()
	defer h.Mirror.Unlock()
	n := 0
	for _, uri := range h.Mirror.Asked {
		if strings.Contains(uri, "IncomingPhoneNumbers") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("asked %d times at once", n)
	}
}

func slowNumbers(fetch func(context.Context, request.Fetch) (*understudy.Page, error),
	held chan struct{}) func(context.Context, request.Fetch) (*understudy.Page, error) {
	return func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
		if strings.Contains(f.Target.Key.URI, "IncomingPhoneNumbers") {
			<-ctx.Done()
			close(held)
			return nil, ctx.Err()
		}
		return fetch(ctx, f)
	}
}
