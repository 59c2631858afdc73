// Rate and odd statuses, as callers are told of them.

package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/request"
)

// The rate of a source is what upstream said last of the limit that a request counts for, less
// what was sent since. All of a window is left once it has ended.
func TestRateIsWhatUpstreamToldLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		header := func(limit, left, reset, of string) []string {
			return []string{"X-RateLimit-Limit", limit, "X-RateLimit-Remaining", left, "X-RateLimit-Reset", reset, "X-RateLimit-Resource", of}
		}
		told := []string{"RateLimit", `"core";r=7;t=30`}
		s := &script{do: func(int, *http.Request) (*http.Response, error) { return reply(200, `{"number":1}`, told...), nil }}
		c := forged(t, s)
		rate := func(path string) string {
			r, ok := c.Rate(target(t, c, path), time.Now())
			return fmt.Sprint(ok, r.Limit, r.Remaining, r.Reset)
		}
		ask := func(path string) {
			t.Helper()
			if _, err := get(t, c, path); err != nil {
				t.Fatal(err)
			}
		}
		expect := func(path, want string) {
			t.Helper()
			if got := rate(path); got != want {
				t.Errorf("%s: %s, want %s", path, got, want)
			}
		}
		expect("/issues/1", "false 0 0 0s")
		ask("/issues/1")
		expect("/issues/1", "false 0 0 0s") // the fields of a draft are not those of the API
		told = header("60", "50", "30", "core")
		ask("/issues/1")
		told = header("10", "4", "9", "search")
		ask("/issues")
		expect("/issues/2", "true 60 49 30s") // the first of /issues counted as one of these
		expect("/issues", "true 10 4 9s")
		if r, ok := c.Rate(nil, time.Now()); !ok || r.Limit != 60 {
			t.Errorf("of no target: %v %v", r, ok)
		}
		time.Sleep(10 * time.Second)
		expect("/issues/2", "true 60 49 20s")
		expect("/issues", "true 10 10 0s")
	})
}

// A status that ends no request is a failure, of whatever is asked.
func TestOddStatusIsAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, status := range []int{0, 99, 101, 199} {
			s := &script{do: func(int, *http.Request) (*http.Response, error) { return reply(status, `{"number":1}`), nil }}
			c := forged(t, s)
			if e := failure(t, second(get(t, c, "/issues/1"))); e.Why != understudy.FailUnreachable ||
				e.ShortText() != "upstream answer unreadable" {
				t.Errorf("%03d: %v", status, e)
			}
			x := request.Exchange{Target: target(t, c, "/issues/1"), Method: http.MethodGet, Header: http.Header{}}
			if got, err := c.Exchange(t.Context(), x); err == nil {
				t.Errorf("%03d passes with %d", status, got.Response.Page.Status)
			}
		}
	})
}

// An upstream that answers what is no HTTP was reached; one that hangs up before its head ends gave none.
func TestAnswerThatIsNoHTTPIsUnreadable(t *testing.T) {
	for text, unreadable := range map[string]bool{
		"garbage\r\n\r\n": true, "HTTP/1.1 xyz OK\r\n\r\n": true, "HTTP/1.1 200 OK\r\nno field\r\n\r\n": true,
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 2\r\n\r\nok": true, "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n": true,
		"HTTP/1.1 000 OK\r\n\r\n": true, "HTTP/1.1 101 Go on\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n": true,
		"": false, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n": false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = conn.Write([]byte(text)) // its reader tells
			_ = conn.Close()
		}))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{}
		if _, err = checkFinal(transport.RoundTrip(req)); err == nil || errors.Is(err, understudy.ErrUnreadable) != unreadable {
			t.Errorf("%q: %v", text, err)
		}
		transport.CloseIdleConnections()
		server.Close()
	}
}
