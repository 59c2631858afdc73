// Decoding: every coding whole, cut, spoiled, and swollen.

package upstream

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"understudy"
	"understudy/internal/checktest"
	"understudy/upstream/body"
	"understudy/upstream/throttle"
)

// packers make a coded body, and name the coding.
var packers = []struct {
	name, coding string
	writer       func(io.Writer) io.WriteCloser
	sum          bool // the format holds a checksum
}{
	{"gzip", "gzip", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, true},
	{"x-gzip", "X-GZip", func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, true},
	{"zstd", "zstd", func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }, true},
	{"brotli", "br", func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }, false},
	{"zlib", "deflate", func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, true},
	{"bare deflate", "deflate", func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 6); return z }, false},
}

func packed(writer func(io.Writer) io.WriteCloser, body []byte) []byte {
	var b bytes.Buffer
	w := writer(&b)
	_, _ = w.Write(body)
	w.Close()
	return b.Bytes()
}

func TestCodings(t *testing.T) {
	body := callsPage(50)
	swollen := append([]byte(emptyCalls), bytes.Repeat([]byte(" "), 3<<20)...)
	type answer struct {
		coding  string
		wire    []byte
		chunked bool
	}
	var next atomic.Pointer[answer]
	client := served(t, func(w http.ResponseWriter, r *http.Request) {
		a := next.Load()
		if got := r.Header.Get("Accept-Encoding"); got != "zstd, gzip, br" {
			t.Errorf("asked for %q", got)
		}
		w.Header().Set("Content-Encoding", a.coding)
		w.Header().Set("Content-Type", "application/json")
		if !a.chunked {
			w.Header().Set("Content-Length", fmt.Sprint(len(a.wire)))
		}
		_, _ = w.Write(a.wire)
		if a.chunked {
			w.(http.Flusher).Flush()
		}
	}, func(o *Options) { o.MaxBody = 2 << 20 })
	for _, p := range packers {
		whole := packed(p.writer, body)
		spoiled := bytes.Clone(whole)
		spoiled[len(spoiled)-3] ^= 0x55
		for _, c := range []struct {
			name string
			wire []byte
			rows int
			text string
		}{
			{"whole", whole, 50, ""},
			{"whole again", whole, 50, ""},
			{"a bomb", packed(p.writer, swollen), 0, "larger"},
			{"without its end", whole[:len(whole)-4], 0, "cut"},
			{"half", whole[:len(whole)/2], 0, "cut"},
			{"its first byte", whole[:1], 0, "cut"},
			{"something behind", append(bytes.Clone(whole), "xxxxxxxxxxxxxxxxx"...), 0, "body"},
			{"no such stream", body, 0, "body"},
			{"nothing", nil, 0, ""},
			{"whole after all that", whole, 50, ""},
		} {
			for _, chunked := range []bool{false, true} {
				next.Store(&answer{p.coding, c.wire, chunked})
				check(t, client, fmt.Sprintf("%s, %s, chunked %v", p.name, c.name, chunked), body, c.rows, c.text)
			}
		}
		if next.Store(&answer{p.coding, spoiled, false}); p.sum {
			check(t, client, p.name+", a wrong sum", body, 0, "body")
		}
	}
	// Members and frames one after another are one body.
	for _, p := range packers[:3] {
		next.Store(&answer{p.coding, append(packed(p.writer, body[:1000]), packed(p.writer, body[1000:])...), false})
		check(t, client, p.name+" in two", body, 50, "")
	}
	for _, coding := range []string{"compress", "gzip, br", "aws-chunked", "gzip;q=1", "zstd\tgzip"} {
		next.Store(&answer{coding, packed(packers[0].writer, body), false})
		check(t, client, coding, body, 0, "was not requested")
	}
	// A window larger than HTTP allows (RFC 9659) is refused before memory is taken.
	wide := packed(func(w io.Writer) io.WriteCloser {
		z, _ := zstd.NewWriter(w, zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false))
		_, _ = z.Write([]byte(emptyCalls))
		z.Flush()
		return z
	}, bytes.Repeat([]byte(" "), 1000))
	next.Store(&answer{"zstd", wide, false})
	check(t, client, "a wide window", body, 0, "window")
}

// check fetches and looks whether the body came, or failed with the text.
func check(t *testing.T, c *Client, name string, body []byte, rows int, text string) {
	t.Helper()
	// Earlier answers must not affect this fetch: failures may not refuse it, and fast answers may not shorten its deadline.
	c.breaker, c.pace = throttle.NewBreaker(c.o.throttle()), latencies{}
	page, err := get(t, c, fmt.Sprintf("%s?To=%d", callsPath, c.Stats().Requests))
	if rows > 0 {
		checktest.MustNoError(t, err, "%s", name)
		checktest.MustEqual(t, len(page.Rows), rows, "%s: len(page.Rows)", name)
		checktest.True(t, bytes.Equal(page.Body, body), "%s: page.Body is %q, want %q", name, page.Body, body)
		return
	}
	if err == nil {
		t.Errorf("%s: passes as %d bytes", name, len(page.Body))
		return
	}
	if e := failure(t, err); e.Why != understudy.FailUnusable || !contains(err, text) {
		t.Errorf("%s: %v, want %q", name, err, text)
	}
}

func BenchmarkCodings(b *testing.B) {
	page := callsPage(50)
	r := body.NewReader("x", 64<<20)
	free := func(context.Context, int64) error { return nil }
	for _, p := range packers {
		wire := packed(p.writer, page)
		b.Run(p.name, func(b *testing.B) {
			b.SetBytes(int64(len(page)))
			b.ReportAllocs()
			resp := &http.Response{Header: http.Header{"Content-Encoding": {p.coding}}, ContentLength: -1}
			for b.Loop() {
				q := &body.Quota{Ctx: b.Context(), Weigh: free, Pause: func() func() { return func() {} }, Length: -1, Max: 64 << 20}
				if got, err := r.Read(resp, bytes.NewReader(wire), q, ""); err != nil || len(got) != len(page) {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}
