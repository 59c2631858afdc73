// Pages as a whole: what they look like in HTML, what they weigh, that they are
// well-formed and load nothing from elsewhere.

package viewer_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"

	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

func TestGolden(t *testing.T) {
	h := viewertest.Open(t)
	viewertest.CheckGolden(t, "home", h.Page("/", viewertest.Berlin))
	h.Page("/twilio/incoming_phone_numbers", viewertest.Berlin) // so that our own numbers are held
	viewertest.CheckGolden(t, "list", h.Page("/twilio/messages?PageSize=5", viewertest.Berlin))
	failed := h.FirstID("/twilio/calls?Status=failed", `CA[0-9a-f]{32}`)
	viewertest.CheckGolden(t, "detail", h.Page("/twilio/calls/"+failed, viewertest.Berlin))
	viewertest.CheckGolden(t, "detail-masked", h.Page("/twilio/calls/"+failed, viewertest.Browser{Token: "supporttoken",
		Zone: "Europe/Berlin"}))
	_, body, _ := h.Get("/twilio/calls?Form=1", viewertest.Berlin)
	viewertest.CheckGolden(t, "failure", body)
	viewertest.CheckGolden(t, "search", h.Page("/search?q=hello", viewertest.Berlin))
	var data numberJSON
	number := "/twilio/number/" + h.OwnNumber()
	_, body, _ = h.Get(number+".json", viewertest.All)
	viewertest.Must(t, json.Unmarshal([]byte(body), &data))
	viewertest.CheckGolden(t, "number", h.Page("/twilio/number/"+data.Partners[4].Number, viewertest.Berlin))
	viewertest.CheckGolden(t, "conversation", h.Page(data.Partners[4].Href, viewertest.Berlin))
	viewertest.CheckGolden(t, "rollup", h.Page("/twilio/alerts?PageSize=5", viewertest.Berlin))
	viewertest.CheckGolden(t, "lacking", h.Page("/twilio/queue_members", viewertest.Berlin))
}

// everyPage are addresses of every page there is, errors included.
func everyPage(h *viewertest.Fixture) []string {
	return []string{
		"/", "/twilio/calls", "/twilio/messages?PageSize=100", "/twilio/incoming_phone_numbers",
		"/twilio/incoming_phone_numbers?understudy.list=local",
		"/twilio/accounts", "/twilio/calls?Status=busy", "/twilio/calls?From=%2B999", "/twilio/calls?Form=1", "/twilio/cals", "/twilo/calls",
		"/nowhere/at/all/",
		"/twilio/calls/" + h.FirstID("/twilio/calls", `CA[0-9a-f]{32}`), "/twilio/messages/" + h.FirstID("/twilio/messages", `SM[0-9a-f]{32}`),
		"/twilio/incoming_phone_numbers/" + h.FirstID("/twilio/incoming_phone_numbers", `PN[0-9a-f]{32}`), "/twilio/accounts/" +
			viewertest.Account,
		"/twilio/calls/CA00000000000000000000000000000000", "/twilio/calls/~",
		"/twilio/number/" + h.OwnNumber(), "/twilio/number/+15550001111", "/twilio/number/" + h.OwnNumber() + "/+15550001111", "/twilio/number/x",
		"/search", "/search?q=hello", "/search?q=2125550100", "/twilio/alerts", "/twilio/participants", "/twilio/balance",
		"/twilio/usage_records", "/twilio/countries",
		"/twilio/recordings/" + h.FirstID("/twilio/recordings", `RE[0-9a-f]{32}`), "/twilio/conferences/" +
			h.FirstID("/twilio/conferences", `CF[0-9a-f]{32}`),
		"/twilio/alerts/" + h.FirstID("/twilio/alerts", `NO[0-9a-f]{32}`),
	}
}

func TestPagesAreWellFormed(t *testing.T) {
	h := viewertest.Open(t)
	for _, who := range []string{"alltoken", "supporttoken", "clerktoken", "countertoken", ""} {
		for _, path := range everyPage(h) {
			_, body, _ := h.Get(path, viewertest.Browser{Token: who})
			viewertest.CheckHTML(t, who+" "+path, body)
		}
	}
	h.StopUpstream()
	for _, path := range []string{"/", "/twilio/calls", "/twilio/calls/CA1"} {
		_, body, _ := h.Get(path, viewertest.All)
		viewertest.CheckHTML(t, "down "+path, body)
	}
}

func TestHeaders(t *testing.T) {
	h := viewertest.Open(t)
	for _, path := range append(everyPage(h), "/index.json", "/twilio/calls.json", h.Viewer.Visitor.Files.Address["viewer.css"]) {
		status, _, head := h.Get(path, viewertest.All)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"X-Robots-Tag": "noindex",
		} {
			if !strings.Contains(head.Get(name), want) {
				t.Errorf("%s: %s is %q", path, name, head.Get(name))
			}
		}
		if own := strings.HasPrefix(path, page.ControlPrefix); !own &&
			(head.Get("Cache-Control") != "private, no-store" || !strings.Contains(head.Get("Server-Timing"), "total;dur=")) {
			t.Errorf("%s (%d): Cache-Control %q, Server-Timing %q", path, status, head.Get("Cache-Control"), head.Get("Server-Timing"))
		}
	}
	_, body, head := h.Get("/twilio/calls", viewertest.All)
	if !strings.Contains(head.Get("Server-Timing"), `cache;desc="cached, 12 s old"`) || !strings.Contains(body, "cached, 12 s old") {
		t.Errorf("a warm page says %q", head.Get("Server-Timing"))
	}
	_, body, head = h.Get("/twilio/calls?PageSize=7", viewertest.All)
	if !strings.Contains(head.Get("Server-Timing"), "upstream;dur=812.000") || !strings.Contains(body, "API 812 ms") {
		t.Errorf("a cold page says %q", head.Get("Server-Timing"))
	}
}

// A page of 50 rows with all that a first visit loads weighs at most 30,000 bytes.
func TestWeight(t *testing.T) {
	h := viewertest.Open(t, func(o *page.Options) { o.Media = viewertest.NoMedia{} })
	for _, path := range []string{"/", "/twilio/calls", "/twilio/messages", "/twilio/alerts", "/twilio/number/" + h.OwnNumber(),
		"/twilio/messages/" + h.MessageWithMedia(), "/twilio/recordings/" + h.FirstID("/twilio/recordings", `RE[0-9a-f]{32}`)} {
		total := 0
		for _, p := range []string{path, h.Viewer.Visitor.Files.Address["viewer.css"], h.Viewer.Visitor.Files.Address["viewer.js"],
			h.Viewer.Visitor.Files.Address["icon.svg"]} {
			_, body, head := h.Get(p, viewertest.Browser{Token: "alltoken", Headers: map[string]string{"Accept-Encoding": "gzip, br"}})
			if head.Get("Content-Encoding") != "gzip" || head.Get("Content-Length") != strconv.Itoa(len(body)) {
				t.Errorf("%s: encoding %q, length %s of %d", p, head.Get("Content-Encoding"), head.Get("Content-Length"), len(body))
			}
			zr, err := gzip.NewReader(strings.NewReader(body))
			viewertest.Must(t, err)
			if _, err := io.Copy(io.Discard, zr); err != nil {
				t.Errorf("%s: %v", p, err)
			}
			total += len(body)
		}
		t.Logf("%s: %d bytes on the wire", path, total)
		if total > 30_000 {
			t.Errorf("%s weighs %d bytes", path, total)
		}
	}
}
