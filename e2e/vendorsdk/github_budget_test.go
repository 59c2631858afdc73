// GitHub's budget: what has not changed costs none of it, and searches have one of their own.

package vendorsdk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-github/v88/github"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// A hundred held pages that are asked for anew cost a hundred 304, and nothing of the rate.
func TestRevalidatingCostsNoBudget(t *testing.T) {
	t.Parallel()
	const pages, token, other = 100, rig.ProgramSecret, "other" + rig.ProgramSecret
	api := rig.StartAPI(t, "--shape", "github", "--latency", "0s", "--records", "600")
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
	drop := startGitHub(t, up.URL, "other").URL("github")
	walk := func(token string) (bodies [pages]string) {
		for i := range pages {
			r, err := rig.Ask(http.MethodGet, "", fmt.Sprintf("%s/repos/acme/tracker/issues?state=all&per_page=5&page=%d", drop, i+1), "",
				"Authorization", "token "+token, "Cache-Control", "max-age=0")
			if err != nil || r.Status != http.StatusOK {
				t.Fatalf("page %d: %v, %d %s", i+1, err, r.Status, r.Body)
			}
			bodies[i] = string(r.Body)
		}
		return bodies
	}
	remaining := func() int {
		r, err := rig.Ask(http.MethodGet, "", api.URL("slowapi")+"/user", "", "Authorization", "token slowapitoken")
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(r.Header.Get("X-Ratelimit-Remaining"))
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
	checktest.Equal(t, again, first, "%d requests, %d of them 304; the same pages: again", asked.Load(),
		unchanged.Load())
	checktest.Equal(t, asked.Load(), unchanged.Load(), "%d requests, %d of them 304; the same pages: asked.Load()",
		asked.Load(), unchanged.Load())
	checktest.True(t, unchanged.Load() >= pages,
		"%d requests, %d of them 304; the same pages: unchanged.Load() is %v", asked.Load(), unchanged.Load(),
		unchanged.Load())
}

// When GitHub takes no more searches, everything else goes on, and a search is told how long
// that lasts.
func TestSearchesHaveTheirOwnLimit(t *testing.T) {
	t.Parallel()
	const searches = 5
	api := rig.StartAPI(t, "--shape", "github", "--latency", "0s", "--records", "200")
	if r, err := rig.Ask(http.MethodPost, "", api.URL("slowapi")+"/-/limits", `{"limit":5000,"searches":5}`); err != nil || r.Status != http.StatusOK {
		t.Fatalf("%v, %d %s", err, r.Status, r.Body)
	}
	house := startGitHub(t, api.URL("slowapi"))
	drop, web := house.URL("github"), house.URL("viewer")
	read := func(path string) rig.Reply {
		t.Helper()
		r, err := rig.Ask(http.MethodGet, "", drop+path, "", "Authorization", "token "+rig.ProgramSecret)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	// What finds nothing has no next page that is fetched ahead.
	search := func(n int) rig.Reply { return read("/search/issues?q=nothing" + strconv.Itoa(n)) }
	core := func(n int) {
		t.Helper()
		if r := read("/repos/acme/tracker/issues?per_page=5&page=" + strconv.Itoa(n)); r.Status != http.StatusOK {
			t.Fatalf("page %d of a list: %d %s", n, r.Status, r.Body)
		}
	}
	// They come before any list: an answer that is not stored does not stay in memory when a page
	// of the same kind brings records while it arrives.
	for n := range searches {
		if r := search(n); r.Status != http.StatusOK {
			t.Fatalf("search %d: %d %s", n, r.Status, r.Body)
		}
	}
	core(1)
	for n := range 10 {
		r := search(searches + n)
		wait, err := strconv.Atoi(r.Header.Get("Retry-After"))
		checktest.MustTrue(t, r.Status >= 400, "a search too many: r.Status is %v, want >= 400", r.Status)
		checktest.MustNoError(t, err, "a search too many")
		checktest.MustTrue(t, wait >= 30, "a search too many: wait is %v, want >= 30", wait)
		checktest.MustTrue(t, wait <= 60, "a search too many: wait is %v, want <= 60", wait)
		core(2 + n)
	}
	if r := search(0); r.Status != http.StatusOK {
		t.Errorf("a search that is held: %d %s", r.Status, r.Body)
	}
	if h := rig.Get(t, "", web+"/-/health"); !strings.Contains(string(h.Body), `"status":"ok"`) {
		t.Errorf("health: %s", h.Body)
	}
	var told struct {
		Sources map[string]struct {
			Limits map[string]struct{ Limit, Now int64 }
		}
	}
	stats, err := rig.Ask(http.MethodGet, "", web+"/-/stats", "", "Authorization", "Bearer "+rig.ProgramSecret)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(stats.Body, &told); err != nil {
		t.Fatal(err)
	}
	limits := told.Sources["github"].Limits
	s, all := limits["upstream.search"], limits["upstream"]
	checktest.Equal(t, s.Limit, searches, "stats: s.Limit")
	checktest.Equal(t, s.Now, 0, "stats: s.Now")
	checktest.Equal(t, all.Limit, 5000, "stats: all.Limit")
	checktest.True(t, all.Now <= 4990, "stats: all.Now is %v, want <= 4990", all.Now)
	var came struct {
		ByPath map[string]int64 `json:"by_path"`
	}
	if err := json.Unmarshal(rig.Get(t, "", api.URL("slowapi")+"/-/stats").Body, &came); err != nil {
		t.Fatal(err)
	}
	if n := came.ByPath["/search/issues"]; n != searches {
		t.Errorf("%d searches went upstream, which takes %d", n, searches)
	}
}

// The SDKs ask for the rate of their own credential: it is what the headers of our answers
// say, told also when nothing is left, and neither upstream nor other callers count. A
// credential without a rate is told GitHub's own figures, also of answers from memory.
func TestRateLimitIsTheCallersOwnElseGitHubs(t *testing.T) {
	t.Parallel()
	const limit = 6
	api := rig.StartAPI(t, "--shape", "github", "--latency", "0s", "--records", "60")
	var upstream atomic.Int64
	up := rig.Between(t, api.URL("slowapi"), func(r *http.Request) bool {
		if r.URL.Path == "/rate_limit" {
			upstream.Add(1)
		}
		return true
	})
	drop := startGitHub(t, up, "go, rate: 6, per: 24h", "node, rate: 6, per: 24h", "python, rate: 6, per: 24h", "busy, rate: 9, per: 24h").URL("github")
	header := func(secret, path string) rig.Reply {
		t.Helper()
		r, err := rig.Ask(http.MethodGet, "", drop+path, "", "Authorization", "Bearer "+secret)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Run("", func(t *testing.T) {
		for sdk, name := range map[string]string{"google/go-github": "go", "@octokit/rest": "node", "PyGithub": "python"} {
			t.Run(sdk, func(t *testing.T) {
				t.Parallel()
				secret := name + rig.ProgramSecret
				header(secret, "/user")
				header("busy"+rig.ProgramSecret, "/user")
				found := toldRates(t, sdk, drop, secret) // asking is a request, too
				for _, r := range found {
					end := time.Until(time.Unix(r.Reset, 0))
					checktest.Equal(t, r.Limit, limit, "told: r.Limit")
					checktest.Equal(t, r.Used, 2, "told: r.Used")
					checktest.Equal(t, r.Remaining, limit-2, "told: r.Remaining")
					checktest.True(t, end >= time.Hour, "told: end is %v", end)
					checktest.True(t, end <= 24*time.Hour+time.Minute, "told: end is %v", end)
				}
				if len(found) != 3 {
					t.Errorf("told %+v", found)
				}
				for header(secret, "/user").Status == http.StatusOK {
				}
				r := header(secret, "/rate_limit")
				if r.Status != http.StatusOK || !strings.Contains(string(r.Body), `"reset":`+r.Header.Get("X-Ratelimit-Reset")+"}") {
					t.Errorf("when nothing is left: %d %v %s", r.Status, r.Header, r.Body)
				}
				if left := r.Header.Get("X-Ratelimit-Remaining"); left != "0" {
					t.Errorf("when nothing is left the header says %s", left)
				}
			})
		}
	})
	if r := header("nobody"+rig.ProgramSecret, "/rate_limit"); r.Status != http.StatusUnauthorized || r.Header.Get("X-Ratelimit-Limit") != "" {
		t.Errorf("a stranger: %d %s", r.Status, r.Body)
	}
	if upstream.Load() != 0 {
		t.Errorf("%d requests went upstream for credentials with a rate", upstream.Load())
	}
	told := func() (core string, h http.Header) { // by GitHub, and in a header
		r := toldRates(t, "google/go-github", drop, rig.ProgramSecret)[0]
		h = header(rig.ProgramSecret, "/user").Header
		return fmt.Sprint(r.Limit, r.Used, r.Remaining, r.Reset), h
	}
	rate := func(h http.Header) string {
		return strings.Join([]string{h.Get("X-Ratelimit-Limit"), h.Get("X-Ratelimit-Used"), h.Get("X-Ratelimit-Remaining"), h.Get("X-Ratelimit-Reset")}, " ")
	}
	want, h := told()
	for tries := 0; rate(h) != want && tries < 50; tries++ { // it is asked again behind an answer past fresh, and that counts
		want, h = told()
	}
	got := rate(h)
	checktest.Equal(t, got, want, "without a rate: got")
	checktest.True(t, h.Get("X-Ratelimit-Used") != "0", `without a rate: h.Get("X-Ratelimit-Used") is "0"; got %q`,
		got)
	checktest.Contains(t, h.Get("Cache-Status"), "hit", `without a rate: h.Get("Cache-Status"); got %q`, got)
}

// toldRate is what an SDK is told of one limit.
type toldRate struct{ Limit, Used, Remaining, Reset int64 }

// toldRates returns the limits that an SDK finds at an address, that of most requests first.
func toldRates(t *testing.T, sdk, address, secret string) (all []toldRate) {
	t.Helper()
	found := githubFinds(t, sdk, address, secret, "rate")["rate"]
	if sdk != "google/go-github" {
		if err := json.Unmarshal(found, &all); err != nil {
			t.Fatalf("%v: %s", err, found)
		}
		return all
	}
	var written []github.Rate // the end is a time there
	if err := json.Unmarshal(found, &written); err != nil {
		t.Fatalf("%v: %s", err, found)
	}
	for _, r := range written {
		all = append(all, toldRate{int64(r.Limit), int64(r.Used), int64(r.Remaining), r.Reset.Unix()})
	}
	return all
}
