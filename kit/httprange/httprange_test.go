// Contents sent: ranges, conditions, promises kept or the connection cut.

package httprange

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
)

const text = "0123456789"

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func file() Content {
	return Content{File: strings.NewReader(text), Type: "audio/x-wav", ETag: `"e"`, Modified: noon, Shown: []string{"audio/", "image/png"}}
}

// serve sends c to one request; headers are pairs.
func serve(t *testing.T, c Content, method string, headers ...string) (*http.Response, string, Sent, error) {
	t.Helper()
	r := httptest.NewRequest(method, "/x", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	sent, err := Send(w, r, c)
	resp := w.Result()
	body, rerr := io.ReadAll(resp.Body)
	if rerr != nil {
		t.Fatal(rerr)
	}
	if int64(len(body)) != sent.Bytes || sent.Status != 0 && sent.Status != resp.StatusCode {
		t.Errorf("said %+v, sent %d with %d bytes", sent, resp.StatusCode, len(body))
	}
	return resp, string(body), sent, err
}

func TestSendFile(t *testing.T) {
	for _, test := range []struct {
		name, method string
		headers      []string
		status       int
		body, rng    string
	}{
		{"whole", "GET", nil, 200, text, ""},
		{"head", "HEAD", nil, 200, "", ""},
		{"head with a range", "HEAD", []string{"Range", "bytes=0-3"}, 200, "", ""},
		{"a range", "GET", []string{"Range", "bytes=2-4"}, 206, "234", "bytes 2-4/10"},
		{"to the end", "GET", []string{"Range", "bytes=8-"}, 206, "89", "bytes 8-9/10"},
		{"the last", "GET", []string{"Range", "bytes=-2"}, 206, "89", "bytes 8-9/10"},
		{"past the end", "GET", []string{"Range", "bytes=8-99"}, 206, "89", "bytes 8-9/10"},
		{"several", "GET", []string{"Range", "bytes=0-1,4-5"}, 200, text, ""},
		{"two headers", "GET", []string{"Range", "bytes=0-1", "Range", "bytes=4-5"}, 200, text, ""},
		{"backwards", "GET", []string{"Range", "bytes=5-2"}, 200, text, ""},
		{"another unit", "GET", []string{"Range", "items=0-1"}, 200, text, ""},
		{"nonsense", "GET", []string{"Range", "bytes=x-y"}, 200, text, ""},
		{"if-range that holds", "GET", []string{"Range", "bytes=2-4", "If-Range", `"e"`}, 206, "234", "bytes 2-4/10"},
		{"if-range that does not", "GET", []string{"Range", "bytes=2-4", "If-Range", `"f"`}, 200, text, ""},
		{"if-range, beyond", "GET", []string{"Range", "bytes=99-", "If-Range", `"f"`}, 200, text, ""},
		{"unchanged", "GET", []string{"If-None-Match", `"e"`}, 304, "", ""},
		{"unchanged since", "GET", []string{"If-Modified-Since", noon.Format(http.TimeFormat)}, 304, "", ""},
		{"changed", "GET", []string{"If-None-Match", `"f"`}, 200, text, ""},
		{"precondition", "GET", []string{"If-Match", `"f"`}, 412, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, body, _, err := serve(t, file(), test.method, test.headers...)
			checktest.MustNoError(t, err, "body %q", body)
			checktest.Equal(t, resp.StatusCode, test.status, "resp.StatusCode; body %q", body)
			checktest.Equal(t, body, test.body, "body")
			checktest.Equal(t, resp.Header.Get("Content-Range"), test.rng,
				`resp.Header.Get("Content-Range"); body %q`, body)
		})
	}
	resp, body, sent, err := serve(t, file(), "GET", "Range", "bytes=99-")
	checktest.True(t, errors.Is(err, ErrRange), "beyond: err is %v, want ErrRange; body %q", err, body)
	checktest.Equal(t, sent.Status, 0, "beyond: sent.Status; body %q; %v", body, err)
	checktest.Equal(t, body, "", "beyond: body; %v", err)
	checktest.Equal(t, resp.Header.Get("Content-Range"), "bytes */10",
		`beyond: resp.Header.Get("Content-Range"); body %q; %v`, body, err)
}

func TestSendHeaders(t *testing.T) {
	for kind, shown := range map[string]bool{
		"audio/x-wav": true, "audio/mpeg; q=1": true, "AUDIO/MPEG": true, "image/png": true,
		"image/svg+xml": false, "text/html": false, "": false, "nonsense": false, "audio/": false, "audio": false, "image/pngx": false,
	} {
		c := file()
		c.Type = kind
		resp, _, _, err := serve(t, c, "GET")
		h := resp.Header
		checktest.MustNoError(t, err, "%q", kind)
		checktest.Equal(t, (h.Get("Content-Disposition") == ""), shown, `%q: (h.Get("Content-Disposition") == "")`,
			kind)
		checktest.True(t, strings.Contains(h.Get("Content-Security-Policy"), "sandbox") != shown,
			`%q: strings.Contains(h.Get("Content-Security-Policy"), "sandbox") is %v`, kind,
			strings.Contains(h.Get("Content-Security-Policy"), "sandbox"))
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Type") == "" {
			t.Errorf("%q: %v", kind, h)
		}
	}
}

// errAfter gives some text, then an error.
type errAfter struct {
	text string
	err  error
}

func (e *errAfter) Read(p []byte) (int, error) {
	if e.text == "" {
		return 0, e.err
	}
	n := copy(p, e.text)
	e.text = e.text[n:]
	return n, nil
}

func (e *errAfter) Seek(int64, int) (int64, error) { return 10, nil }

func TestSendStream(t *testing.T) {
	boom := errors.New("boom")
	for _, test := range []struct {
		name string
		c    Content
		want error
		body string
	}{
		{"whole", Content{Body: strings.NewReader(text), Status: 200, Size: 10}, nil, text},
		{"of unknown size", Content{Body: strings.NewReader(text), Status: 200, Size: -1}, nil, text},
		{"a part", Content{Body: strings.NewReader("234"), Status: 206, Size: 3, Range: "bytes 2-4/10"}, nil, "234"},
		{"empty", Content{Body: strings.NewReader(""), Status: 200, Size: 0}, nil, ""},
		{"cut", Content{Body: strings.NewReader("0123"), Status: 200, Size: 10}, ErrCut, "0123"},
		{"broken", Content{Body: &errAfter{"0123", boom}, Status: 200, Size: -1}, boom, "0123"},
		{"longer than said", Content{Body: strings.NewReader(text), Status: 200, Size: 3}, ErrCut, ""},
		{"a file that breaks", Content{File: &errAfter{"0123", boom}, Type: "audio/x-wav"}, ErrCut, "0123"},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, body, sent, err := serve(t, test.c, "GET")
			checktest.True(t, errors.Is(err, test.want), "err is %v, want test.want; body %q", err, body)
			checktest.Equal(t, body, test.body, "body; %v", err)
			checktest.True(t, sent.Status != 0, "sent.Status is 0; body %q; %v", body, err)
			if test.want != nil && !errors.Is(err, ErrCut) {
				t.Errorf("%v is no ErrCut", err)
			}
			if test.c.Range != resp.Header.Get("Content-Range") {
				t.Errorf("%v", resp.Header)
			}
		})
	}
	{
		resp, body, _, err := serve(t, Content{Body: &errAfter{"", boom}, Status: 200, Size: 10}, "HEAD")
		checktest.MustNoError(t, err, "HEAD; body %q", body)
		checktest.Equal(t, body, "", "HEAD: body")
		checktest.Equal(t, resp.Header.Get("Content-Length"), "10",
			`HEAD: resp.Header.Get("Content-Length"); body %q`, body)
	}
}

// A client that does not take what it asked for is given up on, but one that
// takes it slowly has as long as it likes.
func TestSendDeadline(t *testing.T) {
	extended := 0
	sent := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := Send(w, r, Content{
			Body: neverending{}, Status: 200, Size: -1, Type: "audio/x-wav",
			Deadline: func() time.Time { extended++; return time.Now().Add(50 * time.Millisecond) },
		})
		sent <- err
	}))
	defer srv.Close()
	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := <-sent; !errors.Is(err, ErrCut) || extended < 2 {
		t.Errorf("%v after %d pieces", err, extended)
	}
}

type neverending struct{}

func (neverending) Read(p []byte) (int, error) { return len(p), nil }

func TestRange(t *testing.T) {
	for in, want := range map[string]string{
		"bytes=0-1": "bytes=0-1", "bytes=5-": "bytes=5-", "bytes=-5": "bytes=-5", "bytes= 0-1 ": "bytes=0-1",
		"": "", "bytes=": "", "bytes=-": "", "bytes=1": "", "bytes=2-1": "", "bytes=0-1,2-3": "", "bytes=+1-2": "", "bytes=0x1-2": "",
		"Bytes=0-1": "", "bytes 0-1": "", "bytes=1-2-3": "", "bytes=--1": "", "bytes=0-9999999999999999999": "bytes=0-999999999999999999",
		"bytes=0 - 1": "", "bytes=99999999999999999999-": "bytes=999999999999999999-", "bytes=-0": "bytes=999999999999999999-",
		"items=0-1": "", "bytes=007-9": "bytes=7-9", "bytes=10-9": "",
	} {
		if got := Range(http.Header{"Range": {in}}); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	checktest.Equal(t, Range(http.Header{"Range": {"bytes=0-1"}, "If-Range": {"a", "b"}}), "",
		`none, or two: Range(http.Header{"Range": {"bytes=0-1"}, "If-Range": {"a", "b"}})`)
	checktest.Equal(t, Range(http.Header{}), "", "none, or two: Range(http.Header{})")
	checktest.Equal(t, Range(http.Header{"Range": {"bytes=0-1", "bytes=0-1"}}), "",
		`none, or two: Range(http.Header{"Range": {"bytes=0-1", "bytes=0-1"}})`)
}

// A content without bytes goes out whole, whatever part of it is asked for.
func TestNothingHasNoParts(t *testing.T) {
	for _, header := range []string{"bytes=-5", "bytes=0-", "bytes=0-4", "bytes=-0", "bytes=3-"} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header.Set("Range", header)
		empty := file()
		empty.File = strings.NewReader("")
		sent, err := Send(w, r, empty)
		checktest.MustNoError(t, err, "%s", header)
		checktest.Equal(t, sent.Status, 200, "%s: sent.Status", header)
		checktest.Equal(t, w.Header().Get("Content-Range"), "", `%s: w.Header().Get("Content-Range")`, header)
	}
}

// Whatever the header says: what goes out is all of it, one part that its own
// Content-Range describes, or nothing.
func FuzzRange(f *testing.F) {
	for _, s := range []string{"bytes=0-1", "bytes=-3", "bytes=4-", "bytes=99-", "bytes=0-1,3-4", "bytes=-0", "bytes=9-9", "items=0-1",
		"bytes=00000-01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Range"] = []string{header}
		w := httptest.NewRecorder()
		sent, err := Send(w, r, file())
		switch body := w.Body.String(); {
		case errors.Is(err, ErrRange) && sent.Status == 0 && body == "" && w.Header().Get("Content-Range") == "bytes */10":
		case err == nil && sent.Status == 200 && body == text:
		case err == nil && sent.Status == 206:
			var from, to, size int
			{
				_, err := fmt.Sscanf(w.Header().Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &size)
				checktest.MustNoError(t, err, "%q; body %q", header, body)
				checktest.Equal(t, size, 10, "%q: size; body %q", header, body)
				checktest.True(t, from <= to, "%q: from is %v; body %q", header, from, body)
				checktest.Equal(t, body, text[from:to+1], "%q: body", header)
			}
		default:
			t.Errorf("%q: %+v %q %v", header, sent, body, err)
		}
	})
}
