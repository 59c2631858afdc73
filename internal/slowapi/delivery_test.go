// Tests of deliveries: contents in parts, credentials, faults, signed addresses.
package slowapi_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/slowapitest"
	"understudy/internal/slowapi/world"
)

func TestContentInParts(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 400})
	path, _ := r.CompletedRecording(2)
	for _, ending := range []string{".wav", ".mp3"} {
		resp, whole := r.Fetch("GET", path+ending)
		tag, changed := resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
		checktest.MustTrue(t, tag != "", "%s: tag is empty", ending)
		checktest.MustTrue(t, changed != "", "%s: changed is empty", ending)
		checktest.MustEqual(t, resp.Header.Get("Accept-Ranges"), "bytes", `%s: resp.Header.Get("Accept-Ranges")`,
			ending)
		n := len(whole)
		for _, c := range []struct {
			headers []string
			status  int
			want    []byte
		}{
			{[]string{"Range", "bytes=0-0"}, 206, whole[:1]},
			{[]string{"Range", "bytes=40-50"}, 206, whole[40:51]},
			{[]string{"Range", "bytes=43-"}, 206, whole[43:]},
			{[]string{"Range", "bytes=-77"}, 206, whole[n-77:]},
			{[]string{"Range", fmt.Sprintf("bytes=%d-", n)}, 416, nil},
			{[]string{"Range", "bytes=5-10", "If-Range", tag}, 206, whole[5:11]},
			{[]string{"Range", "bytes=5-10", "If-Range", changed}, 206, whole[5:11]},
			{[]string{"Range", "bytes=5-10", "If-Range", `"other"`}, 200, whole},
			{[]string{"Range", "lines=5-10"}, 416, nil},
			{[]string{"If-None-Match", tag}, 304, nil},
			{[]string{"If-Modified-Since", changed}, 304, nil},
			{[]string{"Accept-Encoding", "gzip"}, 200, whole},
		} {
			resp, got := r.Fetch("GET", path+ending, c.headers...)
			checktest.Equal(t, resp.StatusCode, c.status, "%s %v: resp.StatusCode", ending, c.headers)
			checktest.True(t, !(c.status < 300 && !bytes.Equal(got, c.want)),
				"%s %v: c.status < 300 && !bytes.Equal(got, c.want); c.status is %v", ending, c.headers, c.status)
			checktest.Equal(t, resp.Header.Get("Content-Encoding"), "", `%s %v: resp.Header.Get("Content-Encoding")`,
				ending, c.headers)
		}
		head, body := r.Fetch("HEAD", path+ending)
		checktest.Equal(t, head.StatusCode, 200, "HEAD %s: head.StatusCode", ending)
		checktest.Equal(t, head.ContentLength, int64(n), "HEAD %s: head.ContentLength", ending)
		checktest.MustEqual(t, len(body), 0, "HEAD %s: len(body)", ending)
		checktest.Equal(t, head.Header.Get("ETag"), tag, `HEAD %s: head.Header.Get("ETag")`, ending)
	}
}

func TestContentNeedsCredentialsAndTheRightPath(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 400})
	path, _ := r.CompletedRecording(2)
	for _, ending := range []string{"", ".wav", ".mp3"} {
		resp, err := http.Get(r.Web.URL + path + ending)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 401 {
			t.Errorf("%s without credentials: %d", ending, resp.StatusCode)
		}
	}
	sid := path[len(path)-34:]
	call := r.One(path + ".json")["call_sid"].(string)
	_, whole := r.Fetch("GET", path+".mp3")
	for target, want := range map[string]int{
		root + "/Calls/" + call + "/Recordings/" + sid + ".mp3": 200,
		root + "/Calls/" + call + "/Recordings/" + sid:          200,
		path + ".ogg": 404, path + ".": 404, path + ".mp3.mp3": 404, path + "/.mp3": 404, root + "/Recordings/.wav": 404,
		root + "/Recordings": 404, root + "/Calls/" + call: 404, root + "/Calls/" + call + ".mp3": 404,
		root + "/Recordings/REffffffffffffffffffffffffffffffff.wav": 404,
	} {
		resp, body := r.Fetch("GET", target)
		if resp.StatusCode != want || want == 200 && strings.HasSuffix(target, ".mp3") && !bytes.Equal(body, whole) {
			t.Errorf("GET %s: %d, want %d", target, resp.StatusCode, want)
		}
	}
	if resp, _ := r.Fetch("DELETE", path+".mp3"); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("DELETE: %d", resp.StatusCode)
	}
}

func TestFaultsBreakContent(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 400})
	path, _ := r.CompletedRecording(1)
	_, whole := r.Fetch("GET", path+".wav")
	ask := func(rule string, headers ...string) (*http.Response, []byte, error) {
		t.Helper()
		r.Control("/-/faults", `{"rules":[{"match":".wav",`+rule+`}]}`, 200)
		req, _ := http.NewRequest("GET", r.Web.URL+path+".wav", nil)
		req.SetBasicAuth(mainSID, "slowapitoken")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			return nil, nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp, body, err
	}
	if _, _, err := ask(`"reset":true`); err == nil {
		t.Error("reset: an answer")
	}
	resp, body, err := ask(`"truncate":1000`)
	checktest.MustTrue(t, err != nil, "truncate: err is nil")
	checktest.True(t, bytes.Equal(body, whole[:1000]), "truncate: body is %q, want %q; %v", body, whole[:1000], err)
	checktest.Equal(t, resp.ContentLength, int64(len(whole)), "truncate: resp.ContentLength; %v", err)
	resp, body, err = ask(`"truncate":10`, "Range", "bytes=100-199")
	checktest.MustTrue(t, err != nil, "truncate a part: err is nil")
	checktest.True(t, bytes.Equal(body, whole[100:110]), "truncate a part: body is %q, want %q; %v", body,
		whole[100:110], err)
	checktest.Equal(t, resp.StatusCode, 206, "truncate a part: resp.StatusCode; %v", err)
	checktest.Equal(t, resp.ContentLength, 100, "truncate a part: resp.ContentLength; %v", err)
	resp, body, err = ask(`"status":503,"retry_after":7`)
	checktest.MustNoError(t, err, "status; body %s", body)
	checktest.Equal(t, resp.StatusCode, 503, "status: resp.StatusCode; body %s", body)
	checktest.Equal(t, resp.Header.Get("Retry-After"), "7", `status: resp.Header.Get("Retry-After"); body %s`, body)
	checktest.Contains(t, string(body), `"code":20503`, "status: string(body)")
	resp, body, err = ask(`"delay_ms":1`)
	checktest.MustNoError(t, err, "delay")
	checktest.Equal(t, resp.Header.Get("Content-Type"), "audio/x-wav", `delay: resp.Header.Get("Content-Type")`)
	checktest.True(t, bytes.Equal(body, whole), "delay: body is %q, want %q", body, whole)
	if head, _ := r.Fetch("HEAD", path+".wav"); head.ContentLength != int64(len(whole)) {
		t.Errorf("HEAD under a delay: %d bytes, not %d", head.ContentLength, len(whole))
	}
	if _, body, err = ask(`"body":"<html>","content_type":"text/html"`); err != nil || string(body) != "<html>" {
		t.Errorf("body: %v %s", err, body)
	}
}

func TestSignedAddressesEnd(t *testing.T) {
	var later atomic.Int64
	r := slowapitest.Start(t, slowapi.Options{Records: 60, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	_, paths := r.WriteMessage(2)
	resp, _ := r.Fetch("GET", paths[0])
	to := strings.TrimPrefix(resp.Header.Get("Location"), r.Web.URL)
	one, other := paths[0][len(paths[0])-34:], paths[1][len(paths[1])-34:]
	for target, want := range map[string]int{
		to:                                     200,
		strings.Replace(to, one, other, 1):     403,
		strings.Replace(to, "=", "=9", 1):      403,
		to + "0":                               403,
		strings.Split(to, "?")[0]:              403,
		strings.Replace(to, "/0/", "/1/", 1):   403,
		strings.Replace(to, "/0/", "/0//", 1):  403,
		"/-/cdn/":                              403,
		"/-/cdn/0/" + one + "?Signature=&Expi": 403,
	} {
		if resp, _ := r.Fetch("GET", target); resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", target, resp.StatusCode, want)
		}
	}
	if resp, _ := r.Fetch("POST", to); resp.StatusCode != 405 {
		t.Errorf("POST: %d", resp.StatusCode)
	}
	later.Store(int64(slowapi.CDNValid + 2*time.Second))
	if resp, _ := r.Fetch("GET", to); resp.StatusCode != 403 {
		t.Errorf("after its end: %d", resp.StatusCode)
	}
	later.Store(0)
	r.Write("DELETE", paths[0]+".json", nil, 204)
	if resp, _ := r.Fetch("GET", to); resp.StatusCode != 404 {
		t.Errorf("of a deleted medium: %d", resp.StatusCode)
	}
}

func TestMediaMayComeLate(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 60, Quirks: []string{world.MediaLate}})
	_, paths := r.WriteMessage(2)
	for _, path := range paths {
		for i, want := range []int{404, 307, 307} {
			if resp, _ := r.Fetch("GET", path); resp.StatusCode != want {
				t.Errorf("request %d for %s: %d, want %d", i+1, path, resp.StatusCode, want)
			}
		}
	}
}

// FuzzCDN asks for any address: only those signed here open.
func FuzzCDN(f *testing.F) {
	s, err := slowapi.New(slowapi.Options{Records: 60})
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	media := s.World().Sequences[0][kinds.Media]
	good := s.SignContent(0, s.World().SID(media, kinds.MediaSlots*kinds.MediaMessage(1, 2)), time.Now())
	if got := slowapitest.Serve(s, good); got.Code != 200 {
		f.Fatalf("a good address: %d", got.Code)
	}
	for _, seed := range []string{good, "/-/cdn/0/ME?Expires=1&Signature=x", "/-/cdn/-1/x", "/-/cdn//", "/-/cdn/0/%00?Expires=%zz",
		"/-/cdn/9999999999999999999/ME"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		at, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(at.Path, slowapi.CDNPath) {
			return
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.URL, r.RequestURI = at, target
		got := httptest.NewRecorder()
		s.ServeHTTP(got, r)
		q := at.Query()
		signed := q.Get("Signature") == s.Sign(at.Path, q.Get("Expires"))
		if got.Code != 403 && !signed || got.Code != 403 && got.Code != 200 && got.Code != 404 {
			t.Fatalf("%d", got.Code)
		}
	})
}

// FuzzContentRange reads any part of a sound: it is that part of the whole.
func FuzzContentRange(f *testing.F) {
	s, err := slowapi.New(slowapi.Options{Records: 400})
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	path := ""
	w := s.World()
	for i := range w.Sequences[0][kinds.Recordings].SeededCount {
		s := w.Sequences[0][kinds.Recordings]
		if s.Kind.Generate(w, s, i)["status"] == "completed" {
			path = root + "/Recordings/" + string(w.AppendSID(nil, s, i))
		}
	}
	wholes := map[bool][]byte{true: slowapitest.Serve(s, path+".mp3").Body.Bytes(), false: slowapitest.Serve(s, path+".wav").Body.Bytes()}
	for _, seed := range []string{"bytes=0-0", "bytes=-5", "bytes=40-", "bytes=0-1,5-6", "bytes=9-3", "bytes=", "items=0-1",
		"bytes=0-99999999999999999999", "bytes = 1 - 2"} {
		f.Add(seed, "", true)
		f.Add(seed, `"x"`, false)
	}
	f.Fuzz(func(t *testing.T, asked, ifRange string, mp3 bool) {
		target := path + map[bool]string{true: ".mp3", false: ".wav"}[mp3]
		r := httptest.NewRequest("GET", target, nil)
		r.SetBasicAuth(mainSID, "slowapitoken")
		r.Header.Set("Range", asked)
		r.Header.Set("If-Range", ifRange)
		got := httptest.NewRecorder()
		s.ServeHTTP(got, r)
		var from, to, size int
		switch whole := wholes[mp3]; got.Code {
		case 200:
			if !bytes.Equal(got.Body.Bytes(), whole) {
				t.Fatal("the whole is not the whole")
			}
		case 206:
			if _, err := fmt.Sscanf(got.Header().Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &size); err != nil {
				return // several parts
			}
			if size != len(whole) || !bytes.Equal(got.Body.Bytes(), whole[from:to+1]) {
				t.Fatalf("%d to %d is not that part", from, to)
			}
		case 416:
		default:
			t.Fatalf("%d", got.Code)
		}
	})
}
