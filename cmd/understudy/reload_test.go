// Tests of reading settings again: what is swapped, and what needs a restart.

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A request ends with the handler it began with, and that one's end is called
// once, after its last request.
func TestSwap(t *testing.T) {
	var s swap
	inside, release := make(chan struct{}), make(chan struct{})
	var ended atomic.Int64
	s.set(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(inside)
		<-release
		if ended.Load() != 0 {
			t.Error("ended while at work")
		}
		w.WriteHeader(201)
	}), func() { ended.Add(1) })
	first := httptest.NewRecorder()
	done := make(chan struct{})
	go func() { defer close(done); s.ServeHTTP(first, httptest.NewRequest("GET", "/", nil)) }()
	<-inside
	s.set(http.NotFoundHandler(), func() { t.Error("the one in use has ended") })
	second := httptest.NewRecorder()
	s.ServeHTTP(second, httptest.NewRequest("GET", "/", nil))
	if second.Code != 404 || ended.Load() != 0 {
		t.Errorf("status %d, ended %d", second.Code, ended.Load())
	}
	close(release)
	<-done
	if first.Code != 201 || ended.Load() != 1 {
		t.Errorf("status %d, ended %d", first.Code, ended.Load())
	}
}

func TestSwapUnderLoad(t *testing.T) {
	var s swap
	var open, ended atomic.Int64
	set := func() {
		var over atomic.Bool
		open.Add(1)
		s.set(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if over.Load() {
				t.Error("served after its end")
			}
		}), func() { over.Store(true); ended.Add(1) })
	}
	set()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				s.ServeHTTP(nil, nil)
			}
		})
	}
	for range 200 {
		set()
	}
	wg.Wait()
	if ended.Load() != open.Load()-1 {
		t.Errorf("%d of %d ended, want all but the last", ended.Load(), open.Load())
	}
}

func TestNeedRestart(t *testing.T) {
	const text = `
data: d
viewer: {listen: "127.0.0.1:1", role: all}
sources:
  web: {spec: twilio, user: u, secret: "file:x", rate: 5}
mirror: {hot: 10MiB, newest: 10s}
`
	read := func(change ...string) *config {
		t.Helper()
		c, err := parseConfig([]byte(strings.NewReplacer(change...).Replace(text)), noEnv)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, c := range []struct {
		change []string
		want   string
	}{
		{nil, ""},
		{[]string{"rate: 5", "rate: 6, polls: []", "file:x", "file:y", "role: all", "role: \"\"", "newest: 10s", "newest: 1s"}, ""},
		{[]string{"data: d", "data: e"}, "data"},
		{[]string{"user: u", "user: v"}, "sources.web.user"},
		{[]string{"user: u", "user: u, login: k"}, "sources.web.login"},
		{[]string{"hot: 10MiB", "hot: 20MiB", "127.0.0.1:1", "127.0.0.1:2"}, "mirror.hot viewer.listen"},
		{[]string{"mirror:", "limits: {headers: 9KiB, waiters: 3, head_time: 1s}\nmirror:"}, "limits.head_time limits.headers"},
		{[]string{"rate: 5", "rate: 5, timeouts: {total: 3s}"}, "sources.web.timeouts.total"},
	} {
		if got := strings.Join(needRestart(read(), read(c.change...)), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.change, got, c.want)
		}
	}
}

// Every setting named as live exists, and the document names the same ones.
func TestLiveSettingsAreDocumented(t *testing.T) {
	known := map[string]bool{}
	settingNames(reflect.TypeFor[config](), "", known)
	data, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(data), "\n## Reading them again")
	if !ok {
		t.Fatal("docs/settings.md does not say what SIGHUP does")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, name := range live {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("docs/settings.md does not say that %s is read again", name)
		}
		found := slices.ContainsFunc(slices.Collect(func(yield func(string) bool) {
			for k := range known {
				if !yield(k) {
					return
				}
			}
		}), func(k string) bool {
			return k == name || strings.HasPrefix(k, name+".") || strings.HasPrefix(k, name+"[]")
		})
		if !found {
			t.Errorf("%s is no setting", name)
		}
	}
}
