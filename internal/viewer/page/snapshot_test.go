// Snapshot: what a page says of a source that does not answer.

package page_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// The banner says what is wrong on every page, errors included; and nothing of
// a source to a caller who may not ask it.
func TestBanner(t *testing.T) {
	h := viewertest.Open(t, func(o *page.Options) { o.Snapshot = outOfReach })
	for _, path := range []string{"/", "/twilio/calls", "/twilio/number/+15550001111", "/search", "/nowhere", "/twilio/calls?x=1",
		"/twilio/calls/" + h.FirstID("/twilio/calls", `CA[0-9a-f]{32}`)} {
		_, body, _ := h.Get(path, viewertest.Berlin)
		banner := regexp.MustCompile(`(?s)<div role="status" aria-live="polite"><p class="notice banner bad">.*?</div>`).FindString(body)
		for _, want := range []string{"<b>Twilio is down</b>", "14:03:00", "next check", "14:05:21"} {
			if !strings.Contains(banner, want) {
				t.Errorf("%s: the banner does not say %q: %s", path, want, banner)
			}
		}
	}
	for _, who := range []viewertest.Browser{{}, {Token: "nobodytoken"}} {
		if _, body, _ := h.Get("/", who); strings.Contains(body, "banner") {
			t.Errorf("%q is told", who.Token)
		}
	}
	if page := viewertest.Open(t).Page("/twilio/calls", viewertest.All); strings.Contains(page, "banner") || !strings.Contains(page,
		"as of <time") {
		t.Error("a banner while all is well, or a list that does not say as of when")
	}
}

func outOfReach(ctx context.Context, source string) page.Snapshot {
	s := viewertest.Snapshot(ctx, source)
	s.State, s.Why, s.Since, s.NextProbe = "down", "5 requests in a row failed: status 503.", viewertest.Noon.Add(-2*time.Minute),
		viewertest.Noon.Add(21*time.Second)
	return s
}
