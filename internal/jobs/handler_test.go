// /-/jobs: permissions, what is shown and what never is, filters, pages, other sites.

package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/jobs"
)

// asked is the handler over a runner, and how to ask it.
type asked struct {
	*bench
	http.Handler
}

const token = "the-token-of-run-json"

func ask(b *bench) *asked {
	b.Helper()
	h, err := jobs.NewHandler(jobs.HandlerOptions{Jobs: b.Runner, Token: token, PublicURL: "https://calls.example.com/",
		Person: func(r *http.Request) (understudy.Caller, error) {
			switch role := r.Header.Get("X-Role"); role {
			case "nobody":
				return understudy.Caller{}, understudy.ErrUnauthorized
			case "":
				return understudy.Caller{}, nil
			default:
				return understudy.Caller{Grant: &understudy.Grant{Role: role}}, nil
			}
		}})
	if err != nil {
		b.Fatal(err)
	}
	return &asked{b, h}
}

// do asks as the role all, unless headers ("Name: value") say otherwise.
func (a *asked) do(method, target string, headers ...string) (int, string) {
	a.Helper()
	r := httptest.NewRequest(method, target, nil)
	r.Header.Set("X-Role", "all")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "From" {
			r.RemoteAddr = value
			continue
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	if ct := w.Header().Get("Content-Type"); w.Code != http.StatusMethodNotAllowed && ct != "application/json" ||
		!json.Valid(w.Body.Bytes()) && w.Code != 405 {
		a.Errorf("%s %s: %d %s %s", method, target, w.Code, ct, w.Body)
	}
	return w.Code, w.Body.String()
}

type list struct {
	Jobs []struct {
		Number   int64
		State    string
		Stopping bool
		Progress *struct {
			Done, Total int64
			Note        string
			End         *time.Time
		}
	}
	Before int64
}

func (a *asked) list(query string) (l list) {
	a.Helper()
	status, body := a.do("GET", "/-/jobs"+query)
	if err := json.Unmarshal([]byte(body), &l); err != nil || status != 200 {
		a.Fatalf("%s: %d %s", query, status, body)
	}
	return l
}

func TestWhatIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		b := start(t, nil, jobs.Options{Kinds: []jobs.Kind{
			{Name: "sync calls", Lane: understudy.PriorityBulk, Run: func(ctx context.Context, r *jobs.Run) error {
				r.SetProgress(0, 100, "page 1")
				time.Sleep(10 * time.Second)
				r.SetProgress(20, 100, "page 2")
				if err := r.SetMark(ctx, []byte("+15551234567")); err != nil {
					return err
				}
				<-gate
				return nil
			}},
			{Name: "fail", Attempts: 1, Run: func(context.Context, *jobs.Run) error { return errors.New("it is not to be") }}}})
		defer b.stop()
		a := ask(b)
		n := a.add(understudy.Job{Kind: "sync calls", Key: "calls", Payload: []byte(`{"number":"+15551234567"}`),
			ExpiresAt: time.Now().Add(time.Hour), Weight: 5})
		failed := a.add(understudy.Job{Kind: "fail"})
		a.add(understudy.Job{Kind: "fail", RunAfter: time.Now().Add(time.Hour)})
		time.Sleep(11 * time.Second)
		synctest.Wait()
		status, body := a.do("GET", "/-/jobs")
		want := `{"jobs":[` +
			`{"number":3,"kind":"fail","state":"waiting","lane":"soon","attempt":0,"attempts":1,"created":"2000-01-01T00:00:00Z",` +
			`"run_after":"2000-01-01T01:00:00Z"},` +
			`{"number":2,"kind":"fail","state":"failed","lane":"soon","attempt":1,"attempts":1,"created":"2000-01-01T00:00:00Z",` +
			`"started":"2000-01-01T00:00:00Z","ended":"2000-01-01T00:00:00Z","error":"it is not to be"},` +
			`{"number":1,"kind":"sync calls","key":"calls","state":"running","lane":"bulk","attempt":1,"attempts":5,"weight":5,` +
			`"created":"2000-01-01T00:00:00Z","expires_at":"2000-01-01T01:00:00Z","started":"2000-01-01T00:00:00Z",` +
			`"progress":{"done":20,"total":100,"note":"page 2","end":"2000-01-01T00:00:55Z"}}]}` + "\n"
		if status != 200 || body != want {
			t.Errorf("%d\n got %s\nwant %s", status, body, want)
		}
		if status, body := a.do("POST", fmt.Sprintf("/-/jobs/%d/cancel", failed)); status != 409 || strings.Contains(body, "555") {
			t.Errorf("%d %s", status, body)
		}
		if status, body := a.do("POST", fmt.Sprintf("/-/jobs/%d/replay", failed)); status != 200 || body != `{"number":4}`+"\n" {
			t.Errorf("%d %s", status, body)
		}
		if status, _ := a.do("POST", fmt.Sprintf("/-/jobs/%d/replay", n)); status != 409 {
			t.Errorf("replay of a running job: %d", status)
		}
		{
			status, body := a.do("POST", fmt.Sprintf("/-/jobs/%d/cancel", n))
			checktest.Equal(t, status, 200, "status; body %s", body)
			checktest.Lacks(t, body, "555", "body")
			checktest.Contains(t, body, `"stopping":true`, "body")
		}
		synctest.Wait() // the replay ends, too
		if l := a.list("?state=running"); len(l.Jobs) != 1 || !l.Jobs[0].Stopping {
			t.Errorf("%+v", l)
		}
		close(gate)
	})
}

func TestFiltersAndPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := func(name string) jobs.Kind {
			return jobs.Kind{Name: name, Run: func(context.Context, *jobs.Run) error { return nil }}
		}
		b := start(t, nil, jobs.Options{Kinds: []jobs.Kind{kind("even"), kind("odd")}})
		defer b.stop()
		a := ask(b)
		for i := range 10 {
			j := understudy.Job{Kind: []string{"even", "odd"}[i%2]}
			if i >= 6 {
				j.RunAfter = time.Now().Add(time.Hour)
			}
			a.add(j)
		}
		synctest.Wait()
		for query, want := range map[string]string{
			"": "[10 9 8 7 6 5 4 3 2 1] 0", "?limit=4": "[10 9 8 7] 7", "?limit=4&before=7": "[6 5 4 3] 3", "?limit=4&before=3": "[2 1] 0",
			"?limit=2&before=3": "[2 1] 0",
			"?kind=odd":         "[10 8 6 4 2] 0", "?kind=else": "[] 0", "?state=waiting": "[10 9 8 7] 0",
			"?state=waiting,done&kind=even":       "[9 7 5 3 1] 0",
			"?state=waiting&state=failed&limit=2": "[10 9] 9",
		} {
			l := a.list(query)
			numbers := []int64{}
			for _, j := range l.Jobs {
				numbers = append(numbers, j.Number)
			}
			if got := fmt.Sprint(numbers, " ", l.Before); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		for _, query := range []string{"?limit=0", "?limit=x", "?limit=500", "?limit=-1", "?before=0", "?before=x", "?state=sleeping", "?state=",
			"?kind=a%ZZ", "?x=1", "?state=running,"} {
			if status, body := a.do("GET", "/-/jobs"+query); status != 400 || strings.Contains(body, "store") {
				t.Errorf("%s: %d %s", query, status, body)
			}
		}
	})
}

func TestWhoMaySeeJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, nil, jobs.Options{Kinds: []jobs.Kind{{Name: "work", Run: func(context.Context, *jobs.Run) error { return nil }}}})
		defer b.stop()
		a := ask(b)
		n := a.add(understudy.Job{Kind: "work", RunAfter: time.Now().Add(time.Hour)})
		cancel := fmt.Sprintf("/-/jobs/%d/cancel", n)
		for name, c := range map[string]struct {
			method, target string
			headers        []string
			want           int
		}{
			"another role":             {"GET", "/-/jobs", []string{"X-Role: support"}, 403},
			"no role":                  {"GET", "/-/jobs", []string{"X-Role: "}, 403},
			"nobody":                   {"GET", "/-/jobs", []string{"X-Role: nobody"}, 401},
			"another role cancels":     {"POST", cancel, []string{"X-Role: support"}, 403},
			"nobody replays":           {"POST", "/-/jobs/1/replay", []string{"X-Role: nobody"}, 401},
			"another site":             {"POST", cancel, []string{"Sec-Fetch-Site: cross-site"}, 403},
			"a sibling site":           {"POST", cancel, []string{"Sec-Fetch-Site: same-site"}, 403},
			"another origin":           {"POST", cancel, []string{"Origin: https://evil.example"}, 403},
			"the token from elsewhere": {"GET", "/-/jobs", []string{"X-Role: nobody", "Authorization: Bearer " + token}, 401},
			"a wrong token":            {"GET", "/-/jobs", []string{"X-Role: all", "From: 127.0.0.1:5", "Authorization: Bearer x"}, 401},
			"the token": {"GET", "/-/jobs", []string{"X-Role: nobody", "From: 127.0.0.1:5", "Authorization: Bearer " + token},
				200},
			"a GET of what is done by POST":  {"GET", cancel, nil, 405},
			"a DELETE":                       {"DELETE", "/-/jobs", nil, 405},
			"a number nobody has":            {"POST", "/-/jobs/99/cancel", nil, 404},
			"a number that is none":          {"POST", "/-/jobs/x/cancel", nil, 404},
			"a number that is none replayed": {"POST", "/-/jobs/-1/replay", nil, 404},
		} {
			if status, body := a.do(c.method, c.target, c.headers...); status != c.want {
				t.Errorf("%s: %d %s, want %d", name, status, body, c.want)
			}
		}
		a.is(n, understudy.JobWaiting)
		if status, _ := a.do("POST", cancel, "Origin: https://calls.example.com"); status != 200 {
			t.Errorf("our own origin: %d", status)
		}
		a.is(n, understudy.JobCancelled)
	})
}

// The error of a store that does not answer does not go out.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, nil, jobs.Options{Kinds: []jobs.Kind{{Name: "work", Run: func(context.Context, *jobs.Run) error { return nil }}}})
		a := ask(b)
		b.stop()
		if err := b.store.Close(); err != nil {
			t.Fatal(err)
		}
		if status, body := a.do("GET", "/-/jobs"); status != 503 || strings.Contains(body, "closed") {
			t.Errorf("%d %s", status, body)
		}
	})
}

// Any query is a filter within its bounds or an error of the asker's.
func FuzzFilter(f *testing.F) {
	for _, q := range []string{"", "kind=sync+calls", "state=waiting,running&limit=20", "before=5&limit=499", "limit=500", "state=,",
		"kind=a&kind=b", "a=%zz", "before=-1", "state=done;limit=1"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got, err := jobs.FilterOf(query)
		if err != nil {
			if !errors.Is(err, understudy.ErrInvalid) {
				t.Fatalf("%q: %v", query, err)
			}
			return
		}
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatalf("%q was read", query)
		}
		checktest.MustTrue(t, got.Limit >= 1, "%q: got.Limit is %v, want >= 1", query, got.Limit)
		checktest.MustTrue(t, got.Limit < understudy.MaxJobs, "%q: got.Limit is %v", query, got.Limit)
		checktest.MustTrue(t, got.Before >= 0, "%q: got.Before is %v, want >= 0", query, got.Before)
		checktest.MustEqual(t, got.Number, 0, "%q: got.Number", query)
		checktest.MustTrue(t, len(got.States) <= 6, "%q: len(got.States) is %v, want <= 6", query, len(got.States))
		if kinds := q["kind"]; len(kinds) > 0 && kinds[len(kinds)-1] != got.Kind || len(kinds) == 0 && got.Kind != "" {
			t.Fatalf("%q: kind %q", query, got.Kind)
		}
		if got.Before == 0 && q.Has("before") || len(got.States) == 0 && q.Has("state") {
			t.Fatalf("%q: %+v", query, got)
		}
	})
}

// A credential of one source sees no jobs where there are others.
func TestJobsAreForWhoSeesAll(t *testing.T) {
	h, err := jobs.NewHandler(jobs.HandlerOptions{
		Person: func(*http.Request) (understudy.Caller, error) {
			return understudy.Caller{Source: "web", Grant: &understudy.Grant{Role: understudy.RoleAll}}, nil
		},
		SeesAll: func(c understudy.Caller) bool { return c.Source == "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*http.Request{httptest.NewRequest("GET", "/-/jobs", nil), httptest.NewRequest("POST", "/-/jobs/1/cancel", nil)} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", r.Method, w.Code)
		}
	}
}
