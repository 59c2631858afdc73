// Jobs that programs outside the server enqueue and run.

package jobs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

const job1 = "/-/jobs/mail/0f3b0c52-5d0c-4c2a-9c7e-6a1f5f0d7f11"

// office is the handler over a runner with kinds for workers.
type office struct {
	*bench
	http.Handler
	revoked atomic.Bool // whether no credential is valid
}

// countedStore counts claims.
type countedStore struct {
	jobs.Store
	claims atomic.Int64
}

func (s *countedStore) ClaimJobs(ctx context.Context, want understudy.Claim) (understudy.Claimed, error) {
	if want.Worker == understudy.OutsideWorker {
		s.claims.Add(1)
	}
	return s.Store.ClaimJobs(ctx, want)
}

func openOffice(t *testing.T, s *countedStore) *office {
	db := storetest.Open(t, store.Options{})
	if s == nil {
		s = &countedStore{}
	}
	s.Store = db.Jobs
	b := start(t, db, jobs.Options{Store: s, Kinds: []jobs.Kind{{Name: "mail", Outside: true, Attempts: 3}, {Name: "inside", Run: func(
		context.Context, *jobs.Run) error {
		return nil
	}}, {Name: "once", Outside: true, Once: true}, {Name: "narrow", Outside: true, Concurrency: 1}}})
	o := newOffice(t, b.Runner)
	o.bench = b
	return o
}

// newOffice returns the handler over a runner, without a bench.
func newOffice(t testing.TB, runner jobs.Control) (o *office) {
	identify := func(r *http.Request) (understudy.Caller, error) {
		switch role := r.Header.Get("X-Role"); role {
		case "":
			return understudy.Caller{Name: "worker", Grant: &understudy.Grant{Service: understudy.ServiceJobs}}, nil
		case "nobody":
			return understudy.Caller{}, understudy.ErrUnauthorized
		default:
			return understudy.Caller{Grant: &understudy.Grant{Role: role}}, nil
		}
	}
	o = &office{}
	var err error
	o.Handler, err = jobs.NewHandler(jobs.HandlerOptions{Jobs: runner, Token: token, Worker: identify,
		Recheck: func(understudy.Caller) bool { return !o.revoked.Load() },
		Person: func(r *http.Request) (understudy.Caller, error) {
			c, err := identify(r)
			if err == nil && c.Role() == "" {
				err = understudy.ErrForbidden
			}
			return c, err
		}})
	checktest.MustNoError(t, err, "new handler")
	return o
}

func (o *office) send(ctx context.Context, method, target, body string, headers ...string) (int, string) {
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	if from := r.Header.Get("From"); from != "" {
		r.RemoteAddr = from
	}
	w := httptest.NewRecorder()
	o.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// want sends a request and fails the test unless the answer has the status and contains each of the parts.
func (o *office) want(status int, method, target, body string, parts ...string) {
	o.Helper()
	code, got := o.send(o.Context(), method, target, body)
	checktest.Equal(o, code, status, "status of %s %s %s: %s", method, target, body, got)
	for _, part := range parts {
		checktest.Contains(o, got, part, "the answer")
	}
}

func TestWorkerRunsAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOffice(t, nil)
		defer o.stop()
		const claim = `{"kinds":["mail"],"wait":"10s","lease":"20s"}`
		o.want(204, "POST", "/-/jobs/claim", claim)
		o.want(200, "PUT", job1, `{"data":{"to":"<a>"}}`, `"kind":"mail","key":"0f3b0c52-5d0c-4c2a-9c7e-6a1f5f0d7f11","state":"waiting"`)
		o.want(200, "PUT", job1[:13]+strings.ToUpper(job1[13:]), `{"data":{"to":"<a>"}}`)
		o.want(200, "PUT", job1, ` { "data" : { "to" : "<a>" } } `, `"number":1,`)
		o.want(409, "PUT", job1, `{"data":{"to":"b"}}`, "another body")
		o.want(409, "PUT", job1, `{"data":{"to":"<a>"},"lane":"soon"}`, "another body")
		o.want(200, "POST", "/-/jobs/claim", claim, `"attempt":1,"attempts":3,`,
			`"fence":1,"lease_end":"2000-01-01T00:00:30Z","data":{"to":"\u003ca\u003e"}`)
		o.want(204, "POST", "/-/jobs/claim", claim)
		o.want(200, "POST", job1+"/heartbeat", `{"fence":1,"lease":"60s","progress":{"done":1,"total":4,"note":"half"}}`,
			`"lease_end":"2000-01-01T00:01:20Z","stop":false`)
		o.want(409, "POST", job1+"/heartbeat", `{"fence":2}`, "another worker has it")
		o.want(409, "POST", job1+"/finish", `{"fence":7,"result":"done"}`)
		o.want(200, "POST", job1+"/finish", `{"fence":1,"result":"retry","after":"5s","error":"busy"}`, `{"state":"waiting"}`)
		o.want(409, "POST", job1+"/finish", `{"fence":1,"result":"done"}`)
		began := time.Now()
		o.want(200, "POST", "/-/jobs/claim", claim, `"attempt":2`, `"fence":2`)
		checktest.Equal(t, time.Since(began).Round(time.Second), 5*time.Second, "pause before the retry")
		o.want(200, "POST", job1+"/finish", `{"fence":2,"result":"done"}`, `{"state":"done"}`)
		o.want(200, "POST", job1+"/finish", `{"fence":2,"result":"done"}`, `{"state":"done"}`)
		o.want(409, "POST", job1+"/finish", `{"fence":2,"result":"failed"}`)
		o.want(409, "POST", job1+"/heartbeat", `{"fence":2}`, "the job is done")
		o.want(200, "PUT", job1, `{"data":{"to":"<a>"}}`, `"state":"done"`)
		o.want(204, "POST", "/-/jobs/claim", claim)
	})
}

func TestWorkerThatDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOffice(t, nil)
		defer o.stop()
		once := strings.Replace(job1, "mail", "once", 1)
		o.want(200, "PUT", job1, `{"data":1}`)
		o.want(200, "PUT", once, `{"data":2}`)
		for attempt := range 3 {
			o.want(200, "POST", "/-/jobs/claim", `{"kinds":["mail"],"wait":"1m"}`, fmt.Sprintf(`"attempt":%d`, attempt+1))
		}
		o.want(200, "POST", "/-/jobs/claim", `{"kinds":["mail","once"]}`, `"kind":"once"`)
		o.want(204, "POST", "/-/jobs/claim", `{"kinds":["mail","once"],"wait":"1m"}`)
		o.want(200, "PUT", job1, `{"data":1}`, `"state":"failed"`, "its process ended or was not heard of")
		o.want(200, "PUT", once, `{"data":2}`, `"state":"failed"`, "it runs at most once")
		other := strings.Replace(once, "/0f", "/1f", 1)
		o.want(200, "PUT", other, `{}`)
		o.want(200, "POST", "/-/jobs/claim", `{"kinds":["once"]}`, `"data":null`)
		o.want(200, "POST", other+"/finish", `{"fence":1,"result":"retry","error":"no"}`, `{"state":"failed"}`)
	})
}

func TestWorkerKindLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOffice(t, nil)
		defer o.stop()
		narrow := strings.Replace(job1, "mail", "narrow", 1)
		other := strings.Replace(narrow, "/0f", "/1f", 1)
		o.want(200, "PUT", narrow, `{}`)
		o.want(200, "PUT", other, `{}`)
		o.want(200, "POST", "/-/jobs/claim", `{"kinds":["narrow"]}`)
		o.want(204, "POST", "/-/jobs/claim", `{"kinds":["narrow"],"wait":"2s"}`)
		go func() {
			time.Sleep(time.Second)
			o.want(200, "POST", narrow+"/finish", `{"fence":1,"result":"done"}`)
		}()
		began := time.Now()
		o.want(200, "POST", "/-/jobs/claim", `{"kinds":["narrow"]}`)
		checktest.Equal(t, time.Since(began), time.Second, "wait for the place")
	})
}

func TestRequestsOfWorkersAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOffice(t, nil)
		defer o.stop()
		for _, c := range []struct {
			status             int
			method, target, in string
			text               string
		}{
			{404, "PUT", strings.Replace(job1, "mail", "fax", 1), `{}`, "add the kind under jobs.kinds"},
			{404, "PUT", strings.Replace(job1, "mail", "inside", 1), `{}`, "no jobs for workers"},
			{404, "POST", "/-/jobs/claim", `{"kinds":["mail","inside"]}`, "no jobs for workers"},
			{404, "POST", job1 + "/finish", `{"fence":1,"result":"done"}`, ""},
			{400, "PUT", "/-/jobs/mail/7", `{}`, "UUID"},
			{400, "PUT", job1, ``, "ends too soon"},
			{400, "PUT", job1, `{"payload":1}`, "unknown field"},
			{400, "PUT", job1, `{"lane":"fast"}`, "soon, steady or bulk"},
			{400, "PUT", job1, `{"data":"` + strings.Repeat("x", understudy.MaxJobPayload) + `"}`, "at most"},
			{400, "PUT", job1, `{"data":"` + strings.Repeat("x", 2*understudy.MaxJobPayload) + `"}`, "too large"},
			{400, "POST", "/-/jobs/claim", `{"kinds":[]}`, "at least one"},
			{400, "POST", "/-/jobs/claim", `{"kinds":["mail"],"wait":"2m"}`, "from 1s to 1m"},
			{400, "POST", "/-/jobs/claim", `{"kinds":["mail"],"lease":"-1s"}`, "lease"},
			{400, "POST", job1 + "/finish", `{"fence":1,"result":"good"}`, "done, retry or failed"},
			{400, "POST", job1 + "/heartbeat", `{"fence":"1"}`, "whole number"},
			{403, "GET", "/-/jobs", "", ""},
			{403, "POST", "/-/jobs/1/cancel", "", ""},
			{403, "POST", "/-/jobs/1/replay", "", ""},
		} {
			o.want(c.status, c.method, c.target, c.in, c.text)
		}
		for role, status := range map[string]int{"nobody": 401, "support": 403, "all": 200} {
			code, got := o.send(t.Context(), "PUT", job1, `{}`, "X-Role: "+role)
			checktest.Equal(t, code, status, "status for %s: %s", role, got)
		}
	})
}

// TestWorkerThatLeavesLosesNoJob: workers leave while jobs are handed out. Each job waits again without an attempt, or is run.
func TestWorkerThatLeavesLosesNoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOffice(t, nil)
		defer o.stop()
		for i := range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() { o.send(ctx, "POST", "/-/jobs/claim", `{"kinds":["mail"],"lease":"10m"}`) })
			}
			synctest.Wait()
			all.Go(func() { o.send(t.Context(), "PUT", fmt.Sprintf("%s%02d", job1[:len(job1)-2], i), `{}`) })
			cancel()
			all.Wait()
		}
		for range 20 {
			code, got := o.send(t.Context(), "POST", "/-/jobs/claim", `{"kinds":["mail"],"lease":"10m"}`)
			if code != http.StatusOK {
				break
			}
			checktest.Contains(t, got, `"attempt":1,`, "the job")
		}
	})
}

// TestRevokedCredentialEndsTheWait: a worker whose credential is revoked while it waits is told soon, although no job comes.
func TestRevokedCredentialEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOffice(t, nil)
		defer o.stop()
		began := time.Now()
		time.AfterFunc(25*time.Second, func() { o.revoked.Store(true) })
		o.want(401, "POST", "/-/jobs/claim", `{"kinds":["mail"],"wait":"60s"}`, "no longer valid")
		if took := time.Since(began); took < 25*time.Second || took > 35*time.Second {
			t.Errorf("the wait ends after %v, want 25 to 35 seconds", took)
		}
		o.want(200, "PUT", job1, `{}`)
		o.want(401, "POST", "/-/jobs/claim", `{"kinds":["mail"]}`)
		code, got := o.send(t.Context(), "POST", "/-/jobs/claim", `{"kinds":["mail"]}`, "From: 127.0.0.1:5", "Authorization: Bearer "+token)
		checktest.Equal(t, code, http.StatusOK, "status with the token of run.json: %s", got)
		checktest.Contains(t, got, `"attempt":1,`, "the answer")
		o.want(200, "PUT", strings.Replace(job1, "0f3b", "1f3b", 1), `{}`)
		o.revoked.Store(false)
		o.want(200, "POST", "/-/jobs/claim", `{"kinds":["mail"]}`, `"attempt":1,`)
	})
}

// TestWaitingWorkersCostNoStatements: 300 workers wait for ten minutes. The store is asked once, and once more for the job that comes.
func TestWaitingWorkersCostNoStatements(t *testing.T) {
	const workers = 300
	s := &countedStore{}
	synctest.Test(t, func(t *testing.T) {
		o := openOffice(t, s)
		defer o.stop()
		var all sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		var got atomic.Int64
		for range workers {
			all.Go(func() {
				for ctx.Err() == nil {
					if code, _ := o.send(ctx, "POST", "/-/jobs/claim", `{"kinds":["mail"]}`); code == http.StatusOK {
						got.Add(1)
						return
					}
				}
			})
		}
		time.Sleep(10*time.Minute + 10*time.Second) // no request ends and begins again in this instant
		if n := s.claims.Load(); n > 2 {
			t.Errorf("%d claims while nothing happens", n)
		}
		o.want(200, "PUT", job1, `{}`)
		synctest.Wait()
		checktest.Equal(t, got.Load(), 1, "workers with a job")
		if n := s.claims.Load(); n > 3 {
			t.Errorf("%d claims until one job has a worker", n)
		}
		cancel()
		all.Wait()
	})
}

// TestWaitingWorkersTakeLittleMemory measures 300 workers that wait over HTTP, together with the connections of the server.
func TestWaitingWorkersTakeLittleMemory(t *testing.T) {
	const workers, most = 300, 30 << 20
	o := openOffice(t, nil)
	defer o.stop()
	server := httptest.NewServer(o)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: workers}}
	ctx, cancel := context.WithCancel(t.Context())
	read := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := read()
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			r, _ := http.NewRequestWithContext(ctx, "POST", server.URL+"/-/jobs/claim", strings.NewReader(`{"kinds":["mail"],"wait":"1m"}`))
			if a, err := client.Do(r); err == nil {
				a.Body.Close()
			}
		})
	}
	for o.CountWaiting() < workers {
		runtime.Gosched()
	}
	used := read() - before
	t.Logf("%d waiting workers and their clients take %d KiB", workers, used>>10)
	if used > most {
		t.Errorf("%d waiting workers take %d bytes, more than %d", workers, used, most)
	}
	cancel()
	all.Wait()
}

// slip is a runner without a store. It has the job that was added last.
type slip struct {
	jobs.Control
	added understudy.Job
}

func (s *slip) EnqueueOutside(_ context.Context, j understudy.Job) (understudy.Job, error) {
	s.added = j
	return j, nil
}

func (s *slip) ClaimOutside(context.Context, []string, time.Duration, func() bool) (understudy.Job, error) {
	return s.added, nil
}

func (s *slip) RenewOutside(context.Context, understudy.Job, time.Duration) (end time.Time, stop bool, err error) {
	return end, stop, nil
}

func (s *slip) EndOutside(_ context.Context, j understudy.Job, _ time.Duration) (understudy.JobState, error) {
	return j.State, nil
}

// FuzzBodiesOfWorkers: whatever the body of a request is, the server answers with a result or an error of the client, and a worker gets
// the JSON that was sent.
func FuzzBodiesOfWorkers(f *testing.F) {
	targets := []string{"PUT " + job1, "POST " + job1 + "/heartbeat", "POST " + job1 + "/finish", "POST /-/jobs/claim"}
	for i, body := range []string{`{"data":{"to":"anna"},"lane":"bulk","run_after":"2026-06-01T12:00:00Z"}`, `{"fence":1,"lease":"30s"}`,
		`{"fence":1,"result":"retry","after":"1m"}`, `{"kinds":["mail"],"wait":"1s"}`, `{"data":[1,`, `{} {}`, `null`, `{"Fence":1}`,
		`{"data":1,"data":2}`, "{\"data\":\"\xff\"}"} {
		f.Add(uint8(i), body)
	}
	s := &slip{}
	o := newOffice(f, s)
	read := func(t *testing.T, body string) (value any) {
		var sent struct{ Data json.RawMessage }
		checktest.MustNoError(t, json.Unmarshal([]byte(body), &sent), "JSON %q", body)
		if sent.Data != nil {
			checktest.MustNoError(t, json.Unmarshal(sent.Data, &value), "data in %q", body)
		}
		return value
	}
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		method, target, _ := strings.Cut(targets[int(which)%len(targets)], " ")
		code, got := o.send(t.Context(), method, target, body)
		if code >= 500 || code < 200 {
			t.Fatalf("%s %s %q: %d %s", method, target, body, code, got)
		}
		if method != "PUT" || code != 200 {
			return
		}
		code, claimed := o.send(t.Context(), "POST", "/-/jobs/claim", `{"kinds":["mail"]}`)
		checktest.MustEqual(t, code, 200, "status of the claim")
		if want, got := read(t, body), read(t, claimed); !reflect.DeepEqual(got, want) {
			t.Fatalf("sent %q, the worker has %s", body, claimed)
		}
	})
}
