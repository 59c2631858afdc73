// Batches: each request is one of its own, and the answers come in their order.

package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/kit/jsonhttp"
	"understudy/request"
)

// batch sends paths in one request.
func (b *bed) batch(t *testing.T, secret string, paths ...string) *httptest.ResponseRecorder {
	t.Helper()
	var in struct {
		Requests []batchRequest `json:"requests"`
	}
	for _, path := range paths {
		in.Requests = append(in.Requests, batchRequest{Path: path})
	}
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return b.send(httptest.NewRequest("POST", batchPath, strings.NewReader(string(body))), secret)
}

// batched are the answers in the body of a batch.
func batched(t *testing.T, w *httptest.ResponseRecorder) []batchResponse {
	t.Helper()
	var out struct {
		Responses []batchResponse `json:"responses"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 {
		t.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	return out.Responses
}

// TestBatchAnswersAsOneByOne: the answers are those of the requests alone, in their order, what
// is wrong with one included.
func TestBatchAnswersAsOneByOne(t *testing.T) {
	b := newBed(t)
	b.script.page = func(_ context.Context, a request.Request) (*request.Response, error) {
		if strings.Contains(a.Target.Key.URI, "PageSize=7") {
			return nil, understudy.ErrUnavailable
		}
		p := page("calls", true, 200, fmt.Sprintf(`{"calls":[],"uri":%q}`, a.Target.Key.URI))
		return &request.Response{Page: p, Outcome: request.Warm, Stored: true}, nil
	}
	paths := []string{}
	for n := range 100 {
		paths = append(paths, fmt.Sprintf("%s/Calls.json?PageSize=%d&Status=busy", root, n+1))
	}
	paths[50], paths[51], paths[52] = "/-/health", "no path", root+"/Nothing.json"
	got := batched(t, b.batch(t, demo, paths...))
	if len(got) != len(paths) {
		t.Fatalf("%d answers", len(got))
	}
	if body := string(got[2].Body); strings.Contains(body, `\u0026`) {
		t.Errorf("a URL is escaped anew: %s", body)
	}
	for i, path := range paths {
		if i == 50 || i == 51 {
			if got[i].Status != 400 {
				t.Errorf("%s: %+v", path, got[i])
			}
			continue
		}
		want := b.ask("GET", path, demo)
		var mine, its any
		if err := json.Unmarshal(got[i].Body, &mine); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(want.Body.Bytes(), &its); err != nil {
			t.Fatal(err)
		}
		checktest.Equal(t, got[i].Status, want.Code, "%s: got[i].Status", path)
		checktest.Equal(t, fmt.Sprint(mine), fmt.Sprint(its), "%s: fmt.Sprint(mine)", path)
		checktest.Equal(t, got[i].Headers["Etag"], want.Header().Get("Etag"), `%s: got[i].Headers["Etag"]`, path)
		checktest.Equal(t, got[i].Headers["Cache-Status"], want.Header().Get("Cache-Status"),
			`%s: got[i].Headers["Cache-Status"]`, path)
		checktest.True(t, got[i].Headers["X-Request-Id"] != "", `%s: got[i].Headers["X-Request-Id"] is empty`, path)
	}
	if n := strings.Count(b.text(t), "method=GET"); n != 98+98 {
		t.Errorf("%d requests are in the log, want each of the batch as alone", n)
	}
}

// TestBatchBeginsTogether: sixteen are at work at once, and no more.
func TestBatchBeginsTogether(t *testing.T) {
	b := newBed(t)
	var mu sync.Mutex
	now, most := 0, 0
	together := make(chan struct{})
	b.Proxy.o.Mirror = still{func(ctx context.Context, _ request.Request) (*request.Response, error) {
		mu.Lock()
		now++
		if most = max(most, now); now == maxBatchAtOnce && most == maxBatchAtOnce {
			close(together)
		}
		mu.Unlock()
		<-together
		mu.Lock()
		defer mu.Unlock()
		now--
		return &request.Response{Page: page("calls", true, 200, `{"calls":[]}`), Outcome: request.Cold}, nil
	}}
	paths := slices.Repeat([]string{root + "/Calls.json"}, maxBatchAtOnce)
	got := batched(t, b.batch(t, demo, paths...))
	checktest.MustEqual(t, len(got), len(paths), "%d answers, %d at once: len(got)", len(got), most)
	checktest.Equal(t, got[15].Status, 200, "%d answers, %d at once: got[15].Status", len(got), most)
	checktest.Equal(t, most, maxBatchAtOnce, "%d answers, %d at once: most", len(got), most)
}

func TestBatchRefuses(t *testing.T) {
	b := newBed(t)
	b.answers(page("calls", true, 200, `{"calls":["`+strings.Repeat("x", maxBatchReply)+`"]}`))
	one := `{"requests":[{"path":"` + root + `/Calls.json"}]}`
	for _, test := range []struct {
		method, secret, body, want string
		status                     int
	}{
		{"POST", "", one, "", 401},
		{"POST", "wrong", one, "", 401},
		{"GET", demo, "", "", 405},
		{"POST", demo, "", "the body is not {", 400},
		{"POST", demo, "{}", "1 to 100 requests; this one has 0", 400},
		{"POST", demo, `{"requests":[` + strings.Repeat(`{"path":"/"},`, 100) + `{"path":"/"}]}`, "this one has 101", 400},
		{"POST", demo, `{"requests":[{"path":"/","method":"DELETE"}]}`, "unknown field", 400},
		{"POST", demo, one + one, "other data follows", 400},
		{"POST", demo, `{"requests":[{"path":"/","headers":{"authorization":"Basic x"}}]}`, "can't have", 200},
		{"POST", demo, `{"requests":[{"path":"/","headers":{"X-Forwarded-For":"127.0.0.1"}}]}`, "can't have", 200},
		{"POST", demo, one, "request it outside a batch", 200},
		{"POST", demo, `{"requests":["` + strings.Repeat("x", 2<<20) + `"]}`, "larger than", 413},
	} {
		w := b.send(httptest.NewRequest(test.method, batchPath, strings.NewReader(test.body)), test.secret)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s %.60s: %d %.300s, want %d %s", test.method, test.body, w.Code, w.Body, test.status, test.want)
		}
	}
}

// waiting makes the mirror wait before each read until go ahead is closed, and says when so
// many reads have begun.
func (b *bed) waiting(begun int, goAhead <-chan struct{}) <-chan struct{} {
	all := make(chan struct{})
	var n atomic.Int64
	b.script.page = func(ctx context.Context, _ request.Request) (*request.Response, error) {
		if n.Add(1) == int64(begun) {
			close(all)
		}
		<-goAhead
		return &request.Response{Page: page("calls", true, 200, `{"calls":[]}`), Outcome: request.Warm}, ctx.Err()
	}
	return all
}

// TestBatchesAtOnceAreBounded: one caller has half of the places, and a caller without one is
// told when to send the batch again.
func TestBatchesAtOnceAreBounded(t *testing.T) {
	b := newBed(t)
	goAhead := make(chan struct{})
	all := b.waiting(maxBatches/2, goAhead)
	var under sync.WaitGroup
	for range maxBatches / 2 {
		under.Go(func() {
			if w := b.batch(t, demo, root+"/Calls.json"); w.Code != 200 {
				t.Errorf("a batch within the bound: %d", w.Code)
			}
		})
	}
	<-all
	w := b.batch(t, demo, root+"/Calls.json")
	if w.Code != 503 {
		t.Errorf("one more batch of the caller: %d, want 503", w.Code)
	}
	if w.Header().Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %v", w.Header())
	}
	if !strings.Contains(w.Body.String(), "too many batches") {
		t.Errorf("%s", w.Body)
	}
	under.Go(func() {
		if w := b.batch(t, masked, root+"/Calls.json"); w.Code != 200 {
			t.Errorf("a batch of another caller: %d", w.Code)
		}
	})
	close(goAhead)
	under.Wait()
	if w := b.batch(t, demo, root+"/Calls.json"); w.Code != 200 {
		t.Errorf("after the others have ended: %d", w.Code)
	}
}

// TestAnswersOfABatchAreBoundedTogether: what is beyond the bound of all answers is asked for
// alone, as one answer that is too long is.
func TestAnswersOfABatchAreBoundedTogether(t *testing.T) {
	b := newBed(t)
	b.answers(page("calls", true, 200, `{"calls":["`+strings.Repeat("x", 3<<20)+`"]}`))
	w := b.batch(t, demo, slices.Repeat([]string{root + "/Calls.json"}, 20)...)
	if n := w.Body.Len(); n > maxBatchBytes+64<<10 {
		t.Errorf("the answer has %d bytes", n)
	}
	var statuses [600]int
	for _, a := range batched(t, w) {
		statuses[a.Status]++
		if own := a.Headers[jsonhttp.ErrorHeader] != ""; own != (a.Status == 507) {
			t.Errorf("%d has the header %v", a.Status, a.Headers)
		}
		if a.Status == 507 {
			wantShape(t, a.Body, 507, 20500, "request it outside a batch")
		}
	}
	if statuses[200] != 10 || statuses[507] != 10 {
		t.Errorf("%d were answered and %d refused, want 10 each", statuses[200], statuses[507])
	}
}

// TestBatchEndsWithItsCredential: the policy in force answers each request of a batch, so that
// none begins after its credential was revoked.
func TestBatchEndsWithItsCredential(t *testing.T) {
	b, after := newBed(t), newBed(t)
	after.Proxy.o.Callers = nobody{}
	var now atomic.Pointer[Proxy]
	now.Store(b.Proxy)
	b.Proxy.o.CurrentProxy = now.Load
	goAhead := make(chan struct{})
	all := b.waiting(maxBatchAtOnce, goAhead)
	go func() {
		<-all
		now.Store(after.Proxy)
		close(goAhead)
	}()
	for i, a := range batched(t, b.batch(t, demo, slices.Repeat([]string{root + "/Calls.json"}, 100)...)) {
		if i < maxBatchAtOnce && a.Status != 200 {
			t.Errorf("request %d had begun: %d", i, a.Status)
		}
		if i >= maxBatchAtOnce && a.Status != 401 {
			t.Errorf("request %d begins after the revocation: %d", i, a.Status)
		}
	}
}

// nobody has a credential.
type nobody struct{}

func (nobody) Identify(*http.Request, string) (understudy.Caller, error) {
	return understudy.Caller{}, understudy.ErrUnauthorized
}

func (nobody) Rate(understudy.Caller) (understudy.Rate, bool) { return understudy.Rate{}, false }

// TestBatchIsNotAnsweredAtUpstreamsAddress: a tunnel answers no path of our own.
func TestBatchIsNotAnsweredAtUpstreamsAddress(t *testing.T) {
	b := newBed(t)
	b.Proxy = b.Proxy.UpstreamFrontend(func(string) string { return "https://api.example.com" }, b.Proxy.o.Callers)
	if w := b.batch(t, demo, root+"/Calls.json"); w.Code != 404 {
		t.Errorf("%d, want 404: %s", w.Code, w.Body)
	}
}
