// The instruments measure what they say.

package rig

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/checktest"
)

func TestQuantile(t *testing.T) {
	var d []time.Duration
	for i := range 1000 {
		d = append(d, time.Duration((i*7919)%1000+1)*time.Millisecond)
	}
	for q, want := range map[float64]float64{0: 1, 0.25: 250, 0.5: 500, 0.99: 990, 0.999: 999, 1: 1000} {
		if got := Ms(Quantile(d, q)); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if got := Quantile([]int{}, 0.5); got != 0 {
		t.Errorf("quantile of nothing is %v", got)
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 3: "3", 0.0123456: "0.0123", 1.2345: "1.23", 12.345: "12.3", 1234.5: "1234", 1000000: "1000000"} {
		if got := Figure(v); got != want {
			t.Errorf("figure(%v) is %s, want %s", v, got, want)
		}
	}
}

func TestTargets(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out)
	r.AtMost("a", 5, 5, "ms")
	r.AtMost("b", 5.1, 5, "ms")
	r.AtLeast("c", 0.85, 0.85, "")
	r.AtLeast("d", 0.849, 0.85, "")
	r.Exactly("e", 2, 1)
	var verdicts []string
	for line := range strings.Lines(out.String()) {
		verdicts = append(verdicts, strings.Fields(line)[0])
	}
	if got := strings.Join(verdicts, " "); got != "ok missed ok missed missed" {
		t.Errorf("got %s\n%s", got, out.String())
	}
}

func TestNext(t *testing.T) {
	for body, want := range map[string]string{
		`{"next_page_uri":"/a?Page=1\u0026b","x":1}`: "/a?Page=1&b",
		`{"next_page_uri": null, "uri":"/x"}`:        "",
	} {
		got, err := Answer{Body: []byte(body)}.Next()
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", body, got, err)
		}
	}
	if _, err := (Answer{Body: []byte(`{}`)}).Next(); err == nil {
		t.Error("a page without next_page_uri is no error")
	}
}

// Both drivers measure the bare server; they must see what it hands out and
// refuse what is no answer.
func TestDrivers(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, "hello")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(bareHandler([]byte("hello"), zipped.Bytes()))
	defer server.Close()
	drivers := []Driver{{"own", ownLoad}}
	if _, err := exec.LookPath("wrk"); err == nil {
		drivers = append(drivers, Driver{"wrk", wrk})
	} else {
		t.Log("wrk is not installed: the bench uses its own driver here")
	}
	for _, d := range drivers {
		l, err := d.Run(t.Context(), Target{URL: server.URL + "/x", Headers: []string{"Accept-Encoding: gzip"}, Clients: 2, Long: time.Second})
		checktest.MustNoError(t, err, "%s", d.Name)
		checktest.True(t, l.Requests >= 10, "%s: l.Requests is %v, want >= 10", d.Name, l.Requests)
		checktest.True(t, l.Rate >= 10, "%s: l.Rate is %v, want >= 10", d.Name, l.Rate)
		checktest.True(t, l.P50 > 0, "%s: l.P50 is %v, want > 0", d.Name, l.P50)
		checktest.True(t, l.P50 <= l.P99, "%s: l.P50 is %v", d.Name, l.P50)
	}
	var seen sync.Map
	varies := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen.Store(r.URL.Path+r.Header.Get("X"), true) }))
	defer varies.Close()
	for _, d := range drivers {
		seen.Clear()
		a := Target{URL: varies.URL, URIs: []string{"/a", "/b"}, Varying: []string{"X: 1", "X: 2"}, Clients: 1, Long: time.Second}
		_, err := d.Run(t.Context(), a)
		checktest.MustNoError(t, err, "%s", d.Name)
		for _, want := range []string{"/a1", "/a2", "/b1", "/b2"} {
			_, ok := seen.Load(want)
			checktest.True(t, ok, "%s has not sent %s", d.Name, want)
		}
	}
	gone := httptest.NewServer(nil) // answers 404
	defer gone.Close()
	for _, d := range drivers {
		if _, err := d.Run(t.Context(), Target{URL: gone.URL + "/x", Clients: 1, Long: 100 * time.Millisecond}); err == nil {
			t.Errorf("%s took a 404 for an answer", d.Name)
		}
	}
}

// A child's CPU time and memory are those of the child.
func TestChild(t *testing.T) {
	c, err := Start(t.Context(), t.TempDir(), "busy", "ready", "sh", "-c", "echo 'busy  http://x'; echo ready; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exec sleep 60")
	if err != nil {
		t.Fatal(err)
	}
	defer c.kill()
	if c.Addresses["busy"] != "http://x" {
		t.Errorf("addresses %v", c.Addresses)
	}
	deadline := time.Now().Add(Patience)
	for {
		spent, err := c.Cpu()
		if err == nil && spent > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no CPU time: %v, %v", spent, err)
		}
	}
	if rss, err := c.Resident(); err != nil || rss < 1<<16 {
		t.Errorf("resident %d, %v", rss, err)
	}
}

func TestChildThatEnds(t *testing.T) {
	_, err := Start(context.Background(), t.TempDir(), "gone", "ready", "sh", "-c", "echo sorry >&2; exit 3")
	if err == nil || !strings.Contains(err.Error(), "sorry") {
		t.Errorf("got %v", err)
	}
}
