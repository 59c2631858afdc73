// Stream: pages that are read as they come.

package viewertest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Stream is a page that is read as it comes.
type Stream struct {
	testing.TB
	Response *http.Response
	Leave    context.CancelFunc // ends the request
	body     io.Reader
	text     strings.Builder
}

// Stream asks for a page over HTTP as a browser would.
func (h *Fixture) Stream(path, encoding string) *Stream {
	h.Helper()
	return h.StreamAs(All, path, encoding)
}

// StreamAs asks for a page over HTTP with the credential of a browser.
func (h *Fixture) StreamAs(who Browser, path, encoding string) *Stream {
	h.Helper()
	web := httptest.NewServer(h.Viewer)
	h.Cleanup(web.Close)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	h.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", web.URL+path, nil)
	Must(h, err)
	r.SetBasicAuth(Account, who.Token)
	r.Header.Set("Accept-Encoding", encoding)
	resp, err := http.DefaultTransport.RoundTrip(r)
	Must(h, err)
	h.Cleanup(func() { _ = resp.Body.Close() })
	p := &Stream{TB: h.TB, Response: resp, body: resp.Body, Leave: cancel}
	if resp.Header.Get("Content-Encoding") == "gzip" {
		p.body, err = gzip.NewReader(resp.Body)
		Must(h, err)
	}
	return p
}

// Until reads until a text has arrived, and returns everything that has arrived.
func (p *Stream) Until(text string) string {
	p.Helper()
	buf := make([]byte, 4096)
	for !strings.Contains(p.text.String(), text) {
		n, err := p.body.Read(buf)
		p.text.Write(buf[:n])
		if err != nil && !strings.Contains(p.text.String(), text) {
			p.Fatalf("%v before %q; there is\n%s", err, text, p.text.String())
		}
	}
	return p.text.String()
}
