// Express: who loses a right loses it on the express lane, too, and what is on it looks as
// what net/http sends.

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// expressAnswers is how many answers a server has given without net/http.
func expressAnswers(t *testing.T, viewer string) int64 {
	t.Helper()
	n, err := laneAnswers(viewer)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestExpressEndsWithTheRight: under load, no request that begins after a credential has
// ended or has another role is answered by what it had before. That is so as soon as the
// settings are read.
func TestExpressEndsWithTheRight(t *testing.T) {
	t.Parallel()
	up := startAPI(t, "--latency", "1ms", "--records", "500").URL("slowapi")
	house, dir := startServer(t, settings{upstream: up, mirror: "{newest: 1h, older: 1h, final: 1h}"})
	file := filepath.Join(dir, "understudy.yml")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	masked := `secret: "file:masked.secret", role: support}`
	policies := []struct {
		settings string
		right    func(reply) bool
	}{
		{string(whole), func(r reply) bool { return r.status == 200 && !strings.Contains(string(r.body), "+1") }},
		{strings.Replace(string(whole), masked, `secret: "file:masked.secret", role: all}`, 1),
			func(r reply) bool { return r.status == 200 && strings.Contains(string(r.body), "+1") }},
		{strings.Replace(string(whole), masked, `secret: "file:masked.secret", role: support, expires: 2020-01-01}`, 1),
			func(r reply) bool { return r.status == 401 }},
	}
	var policy atomic.Int64 // the one that holds, once an answer begun now goes by it; -1: between two
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	var answers atomic.Int64
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				before := policy.Load()
				r, err := ask(http.MethodGet, account+":"+maskedToken, house.URL("twilio")+base+"/Calls.json?PageSize=20", "")
				if err != nil {
					t.Error(err)
					return
				}
				if answers.Add(1); before >= 0 && policy.Load() == before && !policies[before].right(r) {
					t.Errorf("under policy %d: %d %.300s", before, r.status, r.body)
					return
				}
			}
		})
	}
	loaded := func() string {
		var h struct {
			LoadedAt string `json:"loaded_at"`
		}
		if err := json.Unmarshal(get(t, "", house.URL("viewer")+"/-/health").body, &h); err != nil {
			t.Fatal(err)
		}
		return h.LoadedAt
	}
	for round := range 12 {
		next := round % len(policies)
		before, express, asked := loaded(), expressAnswers(t, house.URL("viewer")), answers.Load()
		policy.Store(-1)
		if err := os.WriteFile(file, []byte(policies[next].settings), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := house.Reload(); err != nil {
			t.Fatal(err)
		}
		await(t, func() string {
			if loaded() == before {
				return "the settings have not been read again"
			}
			return ""
		})
		policy.Store(int64(next))
		await(t, func() string {
			if n := answers.Load() - asked; n < 200 && !t.Failed() {
				return fmt.Sprintf("%d answers", n)
			}
			return ""
		})
		if n := expressAnswers(t, house.URL("viewer")) - express; n == 0 && next < 2 {
			t.Errorf("policy %d: the lane answered nothing", next)
		}
	}
	stop()
	wg.Wait()
}

// TestExpressLooksLikeTheOther: an answer of the lane has the header and the body of one of
// net/http, in each form and for each role; both stand in the access log.
func TestExpressLooksLikeTheOther(t *testing.T) {
	t.Parallel()
	up := startAPI(t, "--latency", "1ms", "--records", "500").URL("slowapi")
	house, dir := startServer(t, settings{upstream: up, mirror: "{newest: 1h, older: 1h, final: 1h}"})
	url := house.URL("twilio") + base + "/Calls.json?PageSize=50"
	await(t, func() string { // the page is in memory in the form it goes out in
		get(t, account+":"+demoToken, url)
		if expressAnswers(t, house.URL("viewer")) == 0 {
			return "the lane answers nothing"
		}
		return ""
	})
	for _, user := range []string{account + ":" + demoToken, account + ":" + maskedToken} {
		for _, form := range []string{"gzip", "zstd", "identity"} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				for _, match := range []string{"", "*"} {
					say := func(more ...string) reply {
						r, err := ask(method, user, url, "", append(more, "Accept-Encoding", form, "If-None-Match", match)...)
						if err != nil {
							t.Fatal(err)
						}
						for _, name := range []string{"Age", "Date", "Server-Timing", "X-Request-Id", "Cache-Status"} {
							if r.header.Get(name) == "" {
								t.Errorf("%s %s %s: no %s", method, user, form, name)
							}
							r.header.Del(name)
						}
						return r
					}
					before := expressAnswers(t, house.URL("viewer"))
					say()
					second := say()
					if n := expressAnswers(t, house.URL("viewer")) - before; n != 1 {
						t.Errorf("%s %s %q: the lane gave %d answers", method, form, match, n)
					}
					// One that differs in a header field that means nothing is net/http's.
					other := say("User-Agent", "another "+time.Now().String())
					if fmt.Sprint(second) != fmt.Sprint(other) {
						t.Errorf("%s %s %q: %d %v, and by net/http %d %v", method, form, match, second.status, second.header, other.status, other.header)
					}
				}
			}
		}
	}
	house.Stop()
	log, err := os.ReadFile(filepath.Join(dir, accessLog))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(log), "/Calls.json"); n < 2*3*2*2*3 {
		t.Errorf("%d lines in the access log, want one of each request", n)
	}
}
