// Tests of the permission to take profiles, and of the answers.

package diagnostics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"understudy"
	"understudy/internal/checktest"
	ours "understudy/internal/diagnostics/profile"
)

// profiling is a handler that takes profiles; the header Role names the caller.
func profiling(t *testing.T) (http.Handler, *ours.Recorder) {
	t.Helper()
	r := ours.New(ours.Options{Dir: t.TempDir(), Version: "v1", Now: time.Now})
	return New(Options{
		Snapshot: func(context.Context) (Snapshot, error) { return Snapshot{}, nil },
		Readable: func(context.Context) error { return nil },
		IsEnding: func() bool { return false },
		Person: func(r *http.Request) (understudy.Caller, error) {
			role := r.Header.Get("Role")
			if role == "" {
				return understudy.Caller{}, understudy.ErrUnauthorized
			}
			return understudy.Caller{Name: "maria", Grant: &understudy.Grant{Role: role}}, nil
		},
		Token: "0123456789abcdef", Profiles: r, Now: time.Now, PublicURL: "https://calls.example",
		Page: func(w http.ResponseWriter, _ *http.Request, name, _ string, page any) {
			list, ok := page.(*ProfilePage)
			if !ok {
				fmt.Fprintf(w, "%s: %v", name, page)
				return
			}
			fmt.Fprintf(w, "%d are kept", len(list.Kept))
			if list.Report != nil {
				fmt.Fprintf(w, ", %s of %s", list.Value(list.Report.Total), list.Report.Measure)
			}
		},
		ProfileRefused: func(w http.ResponseWriter, _ *http.Request, err error) {
			w.WriteHeader(understudy.OwnPathStatus(err))
			fmt.Fprintf(w, "a page: %v", err)
		},
	}).Handler(), r
}

func serve(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:9"
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestProfilesAreForTheRoleAll(t *testing.T) {
	h, r := profiling(t)
	for _, route := range []string{"GET /-/profile", "POST /-/profile", "POST /-/profile/stop", "GET /-/profile/allocs", "GET /-/profile/cpu",
		"GET /-/profile/kept/x", "GET /-/locks", "POST /-/locks"} {
		method, path, _ := strings.Cut(route, " ")
		for _, c := range []struct {
			status  int
			headers []string
		}{
			{401, nil},
			{403, []string{"Role", "support"}},
			{403, []string{"Role", "all", "Sec-Fetch-Site", "cross-site"}},
			{403, []string{"Role", "all", "Sec-Fetch-Site", "same-site"}},
			{401, []string{"Authorization", "Bearer wrong"}},
		} {
			if w := serve(h, method, path, "", c.headers...); w.Code != c.status || !strings.Contains(w.Body.String(), `"error"`) {
				t.Errorf("%s %v: %d %s", route, c.headers, w.Code, w.Body)
			}
		}
	}
	for status, role := range map[int]string{401: "", 403: "support"} {
		w := serve(h, "GET", "/-/profile", "", "Role", role, "Accept", "text/html,*/*;q=0.8")
		if w.Code != status || !strings.HasPrefix(w.Body.String(), "a page: ") {
			t.Errorf("a browser of %q: %d %s", role, w.Code, w.Body)
		}
	}
	if all, err := r.List(); len(all) != 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

func TestProfilesAreTakenKeptAndShown(t *testing.T) {
	h, r := profiling(t)
	w := serve(h, "GET", "/-/profile/allocs?for=100ms", "", "Role", "all")
	if _, err := profile.ParseData(w.Body.Bytes()); err != nil || w.Code != 200 {
		t.Fatalf("%d, %v", w.Code, err)
	}
	w = serve(h, "GET", "/-/profile/cpu?for=100ms&format=json", "", "Authorization", "Bearer 0123456789abcdef")
	var report ours.Report
	{
		err := json.Unmarshal(w.Body.Bytes(), &report)
		checktest.MustNoError(t, err, "w.Body %s", w.Body)
		checktest.MustEqual(t, w.Code, 200, "w.Code; w.Body %s", w.Body)
		checktest.MustEqual(t, report.Kind, "cpu", "report.Kind; w.Body %s", w.Body)
	}
	w = serve(h, "POST", "/-/profile", url.Values{"kind": {"allocs"}, "for": {"100ms"}}.Encode(), "Role", "all", "Sec-Fetch-Site",
		"same-origin")
	at := w.Header().Get("Location")
	if w.Code != 303 || !strings.HasPrefix(at, "/-/profile?id=") {
		t.Fatalf("%d %s", w.Code, at)
	}
	for path, want := range map[string]string{"/-/profile": "3 are kept", at: " of allocated", at + "&measure=held": " of held",
		at + "&since=today": " of allocated"} {
		w := serve(h, "GET", path, "", "Role", "all")
		checktest.Equal(t, w.Code, 200, "%s: w.Code; w.Body %s", path, w.Body)
		checktest.True(t, strings.HasSuffix(w.Body.String(), want), "%s: w.Body.String() is %q", path,
			w.Body.String())
		checktest.True(t, strings.HasPrefix(w.Body.String(), "3 are kept"), "%s: w.Body.String() is %q", path,
			w.Body.String())
	}
	var list ProfileList
	w = serve(h, "GET", "/-/profile?format=json", "", "Role", "all")
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list.Kept) != 3 {
		t.Errorf("%s, %v", w.Body, err)
	}
	if data, _, err := r.Read(list.Kept[0].ID); err != nil || serve(h, "GET", "/-/profile/kept/"+list.Kept[0].ID, "", "Role",
		"all").Body.String() != string(data) {
		t.Errorf("the kept profile is another: %v", err)
	}
}

func TestProfilesThatCannotBe(t *testing.T) {
	h, r := profiling(t)
	for path, status := range map[string]int{
		"/-/profile/allocs?for=1": 400, "/-/profile/allocs?for=1h": 400, "/-/profile/cpu?for=-1s": 400,
		"/-/profile/cpu?for=1s&since=nothing": 404,
		"/-/profile?id=nothing":               404, "/-/profile?measure=all": 400, "/-/profile/kept/nothing": 404, "/-/profile/heap": 404,
	} {
		if w := serve(h, "GET", path, "", "Role", "all"); w.Code != status {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := serve(h, "HEAD", "/-/profile/cpu?for=5m", "", "Role", "all"); w.Code != 405 {
		t.Errorf("HEAD: %d", w.Code)
	}
	if w := serve(h, "POST", "/-/profile/stop", "", "Role", "all"); w.Code != 200 || !strings.Contains(w.Body.String(), "false") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	first := make(chan error, 1)
	go func() {
		_, err := r.Take(t.Context(), ours.Allocs, time.Minute, "maria")
		first <- err
	}()
	for r.Taking() == nil {
		runtime.Gosched()
	}
	w := serve(h, "GET", "/-/profile/cpu?for=1s", "", "Role", "all")
	checktest.Equal(t, w.Code, 409, "w.Code; w.Body %s", w.Body)
	checktest.Contains(t, w.Body.String(), "maria", "w.Body.String()")
	checktest.True(t, w.Header().Get("Retry-After") != "", `w.Header().Get("Retry-After") is empty; w.Body %s`,
		w.Body)
	w = serve(h, "POST", "/-/profile/stop", "", "Role", "all", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Site", "same-origin")
	if err := <-first; err != nil || w.Code != 303 {
		t.Errorf("%d, %v", w.Code, err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("left"))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, "GET", "/-/profile/cpu?for=10m", nil))
}
