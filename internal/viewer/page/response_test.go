// Responses: the style sheet is named before a page that is late.

package page_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/audit"
	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// heads is a response writer that keeps the status and the headers of each response.
type heads struct {
	header http.Header
	status []int
	sent   []http.Header
}

func (w *heads) Header() http.Header { return w.header }

func (w *heads) Write(p []byte) (int, error) { return len(p), nil }

func (w *heads) WriteHeader(status int) {
	w.status, w.sent = append(w.status, status), append(w.sent, w.header.Clone())
}

func TestEarlyHintsOnlyBeforeLatePages(t *testing.T) {
	h := viewertest.Open(t)
	for name, c := range map[string]struct {
		method, path, mode string
		version            int
		takes              time.Duration
		hinted             bool
	}{
		"late":               {"GET", "/twilio/calls", "navigate", 2, 21 * time.Millisecond, true},
		"very late":          {"GET", "/", "navigate", 2, time.Second, true},
		"in time":            {"GET", "/twilio/calls", "navigate", 2, 19 * time.Millisecond, false},
		"late, by HTTP/1.1":  {"GET", "/twilio/calls", "navigate", 1, time.Second, false},
		"late, by a script":  {"GET", "/twilio/calls", "cors", 2, time.Second, false},
		"late, by a program": {"GET", "/twilio/calls", "", 2, time.Second, false},
		"late JSON":          {"GET", "/twilio/calls.json", "navigate", 2, time.Second, false},
		"late CSV":           {"GET", "/twilio/calls.csv", "navigate", 2, time.Second, false},
		"late form":          {"POST", "/twilio/calls", "navigate", 2, time.Second, false},
		"late head":          {"HEAD", "/twilio/calls", "navigate", 2, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil)
				r.ProtoMajor = c.version
				r.Header.Set("Sec-Fetch-Mode", c.mode)
				w := &heads{header: http.Header{"X-Request-Id": {"7"}, "X-Removed": {"1"}}}
				h.Viewer.Visitor.Open(w, r, func(q *page.Exchange) error {
					q.Reply.W.Header().Set("X-Hidden", "Ada")
					q.Reply.W.Header().Del("X-Removed")
					time.Sleep(c.takes)
					q.Reply.W.WriteHeader(http.StatusTeapot)
					time.Sleep(time.Second)
					q.Reply.W.Header().Set("X-Later", "1")
					_, err := q.Reply.W.Write([]byte("page"))
					return err
				})
				if c.hinted {
					checktest.MustEqual(t, len(w.status), 2, "responses")
					checktest.Equal(t, w.status[0], http.StatusEarlyHints, "the first status")
					checktest.Equal(t, len(w.sent[0]), 1, "fields of the informational response")
					if link := w.sent[0].Get("Link"); !strings.HasSuffix(link, ".css>; rel=preload; as=style") {
						t.Errorf("Link is %q", link)
					}
				}
				last := len(w.status) - 1
				checktest.Equal(t, last == 1, c.hinted, "hinted")
				checktest.Equal(t, w.status[last], http.StatusTeapot, "the last status")
				checktest.Equal(t, w.sent[last].Get("X-Hidden")+w.sent[last].Get("X-Request-Id")+w.sent[last].Get("X-Removed")+w.sent[last].Get("Link"),
					"Ada7", "fields of the page")
				checktest.Equal(t, w.header.Get("X-Later"), "1", "a field set later, for a trailer")
			})
		})
	}
}

// slowTrail is an audit log whose answer waits for something.
type slowTrail struct{ until chan struct{} }

func (s slowTrail) Search(ctx context.Context, _ audit.Filter) (*audit.Found, error) {
	select {
	case <-s.until:
		return &audit.Found{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (slowTrail) Stats() audit.Stats { return audit.Stats{} }

// One page sends nothing until it is complete, the other its head. The browser gets one informational response of both.
func TestEarlyHintsOverHTTP2(t *testing.T) {
	until := make(chan struct{})
	h := viewertest.Open(t, func(o *page.Options) { o.Trail = slowTrail{until} })
	call := h.FirstID("/twilio/calls", `/twilio/calls/CA[0-9a-f]+`)
	id := strings.TrimPrefix(call, "/twilio/calls/")
	h.Mirror.Forget()
	g := gated(h, id)
	web := httptest.NewUnstartedServer(h.Viewer)
	web.EnableHTTP2 = true
	web.StartTLS()
	defer web.Close()
	for path, answer := range map[string]func(){
		"/-/audit":            func() { close(until) },
		"/twilio/calls/" + id: func() { close(g.open[id]) },
	} {
		var links []string
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			checktest.Equal(t, status, http.StatusEarlyHints, "%s: status", path)
			links = append(links, h["Link"]...)
			answer()
			return nil
		}})
		r, err := http.NewRequestWithContext(ctx, "GET", web.URL+path, nil)
		viewertest.Must(t, err)
		r.SetBasicAuth(viewertest.Account, viewertest.All.Token)
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		resp, err := web.Client().Do(r)
		viewertest.Must(t, err)
		body, err := io.ReadAll(resp.Body)
		viewertest.Must(t, err)
		viewertest.Must(t, resp.Body.Close())
		checktest.Equal(t, resp.StatusCode, http.StatusOK, "%s: status", path)
		checktest.MustEqual(t, len(links), 1, "%s: informational responses", path)
		checktest.Equal(t, resp.Header.Get("Link"), links[0], "%s: Link", path)
		css, _, _ := strings.Cut(strings.TrimPrefix(links[0], "<"), ">")
		if !strings.Contains(string(body), `href="`+css+`"`) {
			t.Errorf("%s: %q is not the style sheet of the page", path, css)
		}
		if vary := resp.Header.Values("Vary"); len(vary) != 1 {
			t.Errorf("%s: Vary is %q", path, vary)
		}
	}
}
