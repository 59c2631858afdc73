// Tests of serving: credentials, errors, cap, latency, compression, counts.
package slowapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/slowapitest"
)

func TestCredentials(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	for _, who := range [][2]string{{"", ""}, {mainSID, "wrong"}, {"AC1", "slowapitoken"}, {mainSID, ""}} {
		for _, target := range []string{root + "/Calls.json", "/nowhere"} {
			req, _ := http.NewRequest("GET", r.Web.URL+target, nil)
			if who[0] != "" {
				req.SetBasicAuth(who[0], who[1])
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			const want = `{"code":20003,"message":"Authenticate","more_info":"https://www.twilio.com/docs/errors/20003","status":401}`
			checktest.Equal(t, resp.StatusCode, 401, "%v %s: resp.StatusCode; body %s", who, target, body)
			checktest.Equal(t, string(body), want, "%v %s: string(body)", who, target)
			checktest.True(t, strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Basic "),
				`%v %s: resp.Header.Get("WWW-Authenticate") is %q; body %s`, who, target,
				resp.Header.Get("WWW-Authenticate"), body)
		}
	}
}

func TestHeadersGzipAndHEAD(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 60})
	plain := r.Get(root + "/Calls.json")
	req, _ := http.NewRequest("GET", r.Web.URL+root+"/Calls.json", nil)
	req.SetBasicAuth(mainSID, "slowapitoken")
	req.Header.Set("Accept-Encoding", "br;q=1, gzip;q=0.8")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	packed, _ := io.ReadAll(resp.Body)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	{
		opened, _ := io.ReadAll(z)
		checktest.True(t, bytes.Equal(opened, plain), "gzip: opened is %q, want %q", opened, plain)
		checktest.Equal(t, resp.Header.Get("Content-Encoding"), "gzip", `gzip: resp.Header.Get("Content-Encoding")`)
		checktest.Equal(t, resp.ContentLength, int64(len(packed)), "gzip: resp.ContentLength")
	}
	id := resp.Header.Get("Twilio-Request-Id")
	checktest.True(t, format.IsSID(id, "RQ"), `format.IsSID(id, "RQ") is false`)
	checktest.Equal(t, resp.Header.Get("Twilio-Concurrent-Requests"), "1",
		`resp.Header.Get("Twilio-Concurrent-Requests")`)
	checktest.True(t, resp.Header.Get("Twilio-Request-Duration") != "",
		`resp.Header.Get("Twilio-Request-Duration") is empty`)
	checktest.Equal(t, resp.Header.Get("ETag"), "", `resp.Header.Get("ETag")`)
	for accept, want := range map[string]bool{"": false, "identity": false, "gzip;q=0": false, "gzip; q=0.0": false, "*": true, "gzip": true,
		"deflate, gzip": true, "gzip;q=x": false} {
		q := httptest.NewRequest("GET", "/", nil)
		q.Header.Set("Accept-Encoding", accept)
		if slowapi.AcceptsGzip(q) != want {
			t.Errorf("Accept-Encoding %q", accept)
		}
	}
	status, body, header := r.Ask("HEAD", root+"/Calls.json", nil)
	checktest.Equal(t, status, 200, "HEAD: status")
	checktest.MustEqual(t, len(body), 0, "HEAD: len(body)")
	checktest.Equal(t, header.Get("Content-Type"), "application/json", `HEAD: header.Get("Content-Type")`)
}

func TestCapRefusesAtOnceAndFreesSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := slowapi.New(slowapi.Options{Records: 5, Latency: time.Minute, Cap: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, leave := context.WithCancel(t.Context())
		var done sync.WaitGroup
		for range 2 {
			done.Go(func() {
				r := httptest.NewRequestWithContext(ctx, "GET", root+"/Calls.json", nil)
				s.ServeHTTP(httptest.NewRecorder(), r)
			})
		}
		synctest.Wait()
		began := time.Now()
		got := slowapitest.Serve(s, root+"/Calls.json")
		checktest.Equal(t, got.Code, 429, "the third: got.Code")
		checktest.Contains(t, got.Body.String(), `"code":20429`, "the third: got.Body.String()")
		checktest.Equal(t, time.Since(began), 0, "the third: time.Since(began)")
		leave()
		done.Wait()
		if time.Since(began) != 0 {
			t.Errorf("those who left held their slots for %s", time.Since(began))
		}
		if got := slowapitest.Serve(s, root+"/Calls.json"); got.Code != 200 {
			t.Errorf("after they left: %d", got.Code)
		}
	})
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := slowapi.New(slowapi.Options{Records: 5, Latency: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		took := func(target string) time.Duration {
			began := time.Now()
			slowapitest.Serve(s, target)
			return time.Since(began)
		}
		low, high := time.Hour, time.Duration(0)
		for range 200 {
			d := took(root + "/Calls.json")
			low, high = min(low, d), max(high, d)
		}
		checktest.True(t, low >= 800*time.Millisecond, "lists take: low is %v", low)
		checktest.True(t, high <= 1200*time.Millisecond, "lists take: high is %v", high)
		checktest.True(t, low <= 850*time.Millisecond, "lists take: low is %v", low)
		checktest.True(t, high >= 1150*time.Millisecond, "lists take: high is %v", high)
		if d := took(root + ".json"); d < 240*time.Millisecond || d > 360*time.Millisecond {
			t.Errorf("a record takes %s", d)
		}
	})
}

func TestClosingEndsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := slowapi.New(slowapi.Options{Records: 5, Latency: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan *httptest.ResponseRecorder)
		go func() { got <- slowapitest.Serve(s, root+"/Calls.json") }()
		synctest.Wait()
		began := time.Now()
		_ = s.Close()
		if one := <-got; one.Code != 503 || time.Since(began) != 0 {
			t.Errorf("%d after %s", one.Code, time.Since(began))
		}
	})
}

func TestStats(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	r.Get(root + "/Calls.json?PageSize=2")
	r.Get(root + "/Calls.json?PageSize=2")
	r.Get(root + "/Calls.json")
	r.Ask("GET", "/nowhere", nil)
	resp, err := http.Get(r.Web.URL + "/-/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got slowapi.Stats
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	checktest.Equal(t, got.Requests, 4, "stats: got.Requests")
	checktest.Equal(t, got.ByPath[root+"/Calls.json"], 3, `stats: got.ByPath[root+"/Calls.json"]`)
	checktest.Equal(t, got.ByPath["/nowhere"], 1, `stats: got.ByPath["/nowhere"]`)
	checktest.Equal(t, got.ByTarget[root+"/Calls.json?PageSize=2"], 2,
		`stats: got.ByTarget[root+"/Calls.json?PageSize=2"]`)
	checktest.Equal(t, got.ByTarget[root+"/Calls.json"], 1, `stats: got.ByTarget[root+"/Calls.json"]`)
	checktest.Equal(t, len(got.ByTarget), 3, "stats: len(got.ByTarget)")
	var c slowapi.Counts
	for i := range slowapi.MaxTargets + 10 {
		c.Add("/p", "/p?"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+time.Duration(i).String())
	}
	c.Add(strings.Repeat("/long", 1000), "/")
	all := c.Read()
	checktest.MustTrue(t, len(all.ByTarget) <= slowapi.MaxTargets+1, "len(all.ByTarget) is %v", len(all.ByTarget))
	checktest.True(t, all.ByTarget["other"] != 0, `all.ByTarget["other"] is 0`)
	checktest.Equal(t, all.ByPath["other"], 1, `all.ByPath["other"]`)
	checktest.Equal(t, all.Requests, slowapi.MaxTargets+11, "all.Requests")
}

// The truth is there while everything else is slow and wrong, and leaves no trace.
func TestTruth(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 5})
	target := root + "/Calls.json?PageSize=2"
	good := r.Get(target)
	_, _, before := r.Ask(http.MethodGet, "/-/stats", nil)
	r.Control("/-/faults", `{"rules":[{"status":500,"delay_ms":3600000}]}`, 200)
	for _, c := range []struct {
		method, target string
		status         int
		body           string
	}{
		{http.MethodGet, "/-/truth" + target, 200, string(good)},
		{http.MethodHead, "/-/truth" + target, 200, ""},
		{http.MethodGet, "/-/truth" + root + "/Calls/CA0.json", 404, ""},
		{http.MethodPost, "/-/truth" + root + "/Messages.json", 405, ""},
	} {
		status, body, _ := r.Ask(c.method, c.target, nil)
		if status != c.status || c.body != "" && string(body) != c.body {
			t.Errorf("%s %s: %d %s", c.method, c.target, status, body)
		}
	}
	if _, _, after := r.Ask(http.MethodGet, "/-/stats", nil); after.Get("Content-Length") != before.Get("Content-Length") {
		t.Error("the truth is counted")
	}
}
