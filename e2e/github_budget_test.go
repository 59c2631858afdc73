// GitHub's budget: what has not changed costs none of it.

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
)

// A hundred held pages that are asked for anew cost a hundred 304, and nothing of the rate.
func TestRevalidatingCostsNoBudget(t *testing.T) {
	t.Parallel()
	const pages, token, other = 100, "a-token-of-the-bot-567", "a-token-of-another-678"
	api := startAPI(t, "--shape", "github", "--latency", "0s", "--records", "600")
	to, err := url.Parse(api.URL("slowapi"))
	if err != nil {
		t.Fatal(err)
	}
	var asked, unchanged atomic.Int64
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			if asked.Add(1); r.StatusCode == http.StatusNotModified {
				unchanged.Add(1)
			}
			return nil
		},
	}
	up := httptest.NewServer(forward)
	defer up.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{"github.token": "slowapitoken", "bot.secret": token, "other.secret": other, "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
sources:
  github: {spec: github, user: robin, secret: "file:github.token", upstream: "` + up.URL + `", listen: "127.0.0.1:0", rate: 500}
credentials:
  - {name: bot, source: github, secret: "file:bot.secret", role: all}
  - {name: other, source: github, secret: "file:other.secret", role: all}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	drop := start(t, dir, "serve").URL("github")
	walk := func(token string) (bodies [pages]string) {
		for i := range pages {
			r, err := ask(http.MethodGet, "", fmt.Sprintf("%s/repos/acme/tracker/issues?state=all&per_page=5&page=%d", drop, i+1), "",
				"Authorization", "token "+token, "Cache-Control", "max-age=0")
			if err != nil || r.status != http.StatusOK {
				t.Fatalf("page %d: %v, %d %s", i+1, err, r.status, r.body)
			}
			bodies[i] = string(r.body)
		}
		return bodies
	}
	remaining := func() int {
		r, err := ask(http.MethodGet, "", api.URL("slowapi")+"/user", "", "Authorization", "token slowapitoken")
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(r.header.Get("X-Ratelimit-Remaining"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := walk(token)
	asked.Store(0)
	unchanged.Store(0)
	before := remaining()
	again := walk(other)                       // one credential has a key asked for once a second
	if left := remaining(); left != before-1 { // this question itself
		t.Errorf("%d requests of the rate are left, and %d were", left, before)
	}
	if again != first || asked.Load() != unchanged.Load() || unchanged.Load() < pages {
		t.Errorf("%d requests, %d of them 304; the same pages: %v", asked.Load(), unchanged.Load(), again == first)
	}
}
