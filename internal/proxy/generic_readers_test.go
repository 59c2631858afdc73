// Several readers of a generic source: one request for all, and streams.

package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestGenericReadersOfOneColdKeyShareOneRequest(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	all, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	var wait sync.WaitGroup
	var cookies atomic.Int64
	read := func() {
		resp, err := http.DefaultClient.Do(s.request(all, "GET", "/slow", nil))
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		cookies.Add(int64(len(resp.Header["Set-Cookie"])))
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "for all" {
			t.Errorf("%q, %v", got, err)
		}
	}
	// The first is upstream before the others begin: who leaves is then never alone.
	wait.Go(read)
	for s.count() == 0 && all.Err() == nil {
		runtime.Gosched()
	}
	for range 31 {
		wait.Go(read)
	}
	ctx, cancel := context.WithCancel(all)
	wait.Go(func() { // who leaves takes nothing from the others
		if resp, err := http.DefaultClient.Do(s.request(ctx, "GET", "/slow", nil)); err == nil {
			_ = resp.Body.Close()
		}
	})
	select {
	case s.hold <- struct{}{}:
	case <-all.Done():
	}
	cancel()
	wait.Wait()
	if n := s.count(); n != 1 || cookies.Load() > 1 {
		t.Errorf("upstream was asked %d times, and %d readers have its cookie", n, cookies.Load())
	}
}

// What upstream lets nobody have without asking goes to who asked (RFC 9111, 5.2.2.4).
func TestGenericFieldsForWhoAsked(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	for _, c := range []struct {
		headers []string
		cookies int
	}{{nil, 1}, {nil, 0}, {[]string{"Cache-Control", "no-cache"}, 1}, {nil, 0}, {[]string{"If-None-Match", `"1"`}, 0},
		{[]string{"Range", "bytes=0-"}, 0}} {
		if resp, _ := s.do("GET", "/mine", "", c.headers...); len(resp.Header["Set-Cookie"]) != c.cookies {
			t.Errorf("%v: %s with the cookies %q, want %d", c.headers, resp.Status, resp.Header["Set-Cookie"], c.cookies)
		}
	}
	if n := s.count(); n != 2 {
		t.Errorf("upstream was asked %d times", n)
	}
	if resp, _ := s.do("GET", "/mine?part", "", "Range", "bytes=0-"); len(resp.Header["Set-Cookie"]) != 1 {
		t.Errorf("a part of what is not held: %s, %v", resp.Status, resp.Header)
	}
}

func TestGenericStreams(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	var want bytes.Buffer
	for i := range 12 << 10 {
		fmt.Fprintf(&want, "%01023d\n", i)
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			resp, err := http.DefaultClient.Do(s.request(t.Context(), "GET", "/large", nil))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, want.Bytes()) {
				t.Errorf("%d bytes of %d, %v", len(got), want.Len(), err)
			}
		})
	}
	wait.Wait()
	for range 3 { // it begins before it ends
		resp, err := http.DefaultClient.Do(s.request(t.Context(), "GET", "/endless", nil))
		check(t, err)
		first := make([]byte, 6)
		_, err = io.ReadFull(resp.Body, first)
		check(t, err)
		s.hold <- struct{}{}
		rest, err := io.ReadAll(resp.Body)
		check(t, err)
		_ = resp.Body.Close()
		if string(first)+string(rest) != "first\nsecond\n" {
			t.Errorf("%q %q", first, rest)
		}
	}
	// A client that leaves ends the request upstream.
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := http.DefaultClient.Do(s.request(ctx, "GET", "/endless", nil))
	check(t, err)
	cancel()
	_ = resp.Body.Close()
	select {
	case <-s.left:
	case <-time.After(30 * time.Second):
		t.Error("upstream's answer goes on for nobody")
	}
}
