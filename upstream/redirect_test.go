// Redirects of lists and instances: followed at home, and only there.

package upstream

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/upstream/throttle"
)

func TestRedirects(t *testing.T) {
	var strangers atomic.Int64
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { strangers.Add(1) }))
	defer stranger.Close()
	var mu sync.Mutex
	var status, asked int
	var steps []string
	begin := func(s int, locations ...string) {
		mu.Lock()
		defer mu.Unlock()
		status, asked, steps = s, 0, locations
	}
	sent := func() int {
		mu.Lock()
		defer mu.Unlock()
		return asked
	}
	client := served(t, func(w http.ResponseWriter, r *http.Request) {
		if _, pass, _ := r.BasicAuth(); pass != token {
			t.Errorf("%s is asked without our credential", r.URL)
		}
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked <= len(steps) {
			w.Header()["Location"] = []string{steps[asked-1]}
			w.WriteHeader(status)
		}
		fmt.Fprint(w, emptyCalls)
	}, func(o *Options) { o.Secret = understudy.NewSecret(token) })
	home := client.o.Base
	for _, c := range []struct {
		steps string // Locations in turn, then an answer
		asked int
		text  string // "" = followed to the answer
	}{
		{"/v1/Alerts", 2, ""},
		{"Other.json", 2, ""},
		{"?PageSize=7", 2, ""},
		{home + callsPath + "?x=%2B1#part", 2, ""},
		{strings.Replace(home, "http:", "", 1) + "/v1/Alerts", 2, ""},
		{"/v1/Alerts?1 /v1/Alerts?2 /v1/Alerts?3 /v1/Alerts?4 /v1/Alerts?5", 6, ""},
		{"/v1/Alerts?1 /v1/Alerts?2 /v1/Alerts?3 /v1/Alerts?4 /v1/Alerts?5 /v1/Alerts?6", 6, "more than 5 redirects"},
		{callsPath + "?PageSize=50", 1, "in a circle"},
		{"/v1/Alerts /v1/Events /v1/Alerts", 3, "in a circle"},
		{stranger.URL + "/2010-04-01/x", 1, "a redirect to 127.0.0.1"},
		{"/v1/Alerts " + stranger.URL + "/v1/Alerts", 2, "is not followed"},
		{"//evil.example/2010-04-01/x", 1, "a redirect to evil.example is not followed"},
		{"https://api.twilio.com/2010-04-01/x", 1, "a redirect to api.twilio.com is not followed"},
		{"/login", 1, "a redirect is not followed"},
		{"/2010-04-01/../login", 1, "not followed"},
		{"/2010-04-01/%2e%2e/login", 1, "not followed"},
		{"/2010-04-012/x", 1, "not followed"},
		{"ftp://x/2010-04-01", 1, `a redirect to scheme "ftp"`},
		{"javascript:alert(1)", 1, "without a valid address"},
		{"http://[::1", 1, "without a valid address"},
		{"", 1, "without a valid address"},
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			begin(status, strings.Split(c.steps, " ")...)
			client.breaker = throttle.NewBreaker(client.o.throttle())
			before := client.Stats().Requests
			_, err := get(t, client, callsPath)
			switch {
			case c.text == "" && err != nil:
				t.Errorf("%s: %v", c.steps, err)
			case c.text != "" && err == nil:
				t.Errorf("%s: followed", c.steps)
			case c.text != "" && (failure(t, err).Why != understudy.FailUnusable || !contains(err, c.text)):
				t.Errorf("%s: %v, want %q", c.steps, err, c.text)
			}
			if n := client.Stats().Requests - before; int(n) != sent() || sent() != c.asked {
				t.Errorf("%s: %d requests were sent, %d counted, want %d", c.steps, sent(), n, c.asked)
			}
		}
	}
	for _, status := range []int{300, 304, 305, 306} {
		begin(status, "/v1/Alerts")
		client.breaker = throttle.NewBreaker(client.o.throttle())
		{
			_, err := get(t, client, callsPath)
			checktest.MustTrue(t, err != nil, "status %d: err is nil", status)
			checktest.Equal(t, failure(t, err).Why, understudy.FailUnusable, "status %d: failure(t, err).Why",
				status)
			checktest.Equal(t, sent(), 1, "status %d: sent(); %v", status, err)
		}
	}
	if n := strangers.Load(); n > 0 {
		t.Errorf("%d requests went to a stranger", n)
	}
}
