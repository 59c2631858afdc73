// Pipelines: what comes together is begun together and answered in order.

package frontend

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// gathering answers when so many requests are there at once; it notes who came and went.
type gathering struct {
	mu    sync.Mutex
	want  int
	here  int
	ready chan struct{}
	log   []string
}

func (g *gathering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.log = append(g.log, "+"+r.URL.Path)
	if g.here++; g.here == g.want {
		close(g.ready)
	}
	ready := g.ready
	g.mu.Unlock()
	if r.Method == http.MethodGet {
		select {
		case <-ready:
		case <-r.Context().Done():
		}
	}
	text := r.URL.Path
	if n, err := strconv.Atoi(r.URL.Query().Get("long")); err == nil {
		text += strings.Repeat("x", n)
	}
	g.mu.Lock()
	g.log = append(g.log, "-"+r.URL.Path)
	g.mu.Unlock()
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = fmt.Fprint(w, text)
}

// TestPipelinedReadsBeginTogether: eight requests that none has seen before wait for each
// other, so all must be at work at once; the answers come in their order, long ones, too.
func TestPipelinedReadsBeginTogether(t *testing.T) {
	for _, long := range []int{0, 200_000} {
		l := newLanes(t)
		g := &gathering{want: 8, ready: make(chan struct{})}
		l.fast.SetHandler(g, nil, nil)
		all, want := "", []string{}
		for n := range 8 {
			all += fmt.Sprintf("GET /%d?long=%d%s\r\n", n, long, host)
			want = append(want, fmt.Sprintf("/%d%s", n, strings.Repeat("x", long)))
		}
		got, rest := l.ask(l.fast, []byte(all))
		bodies := []string{}
		for _, one := range got {
			bodies = append(bodies, one.Body)
		}
		if !slices.Equal(bodies, want) || rest != "" {
			t.Errorf("%d answers, then %q", len(got), rest)
		}
	}
}

// TestAWriteIsABarrier: a write begins after all that came before it were answered, and what
// comes behind it begins after its answer.
func TestAWriteIsABarrier(t *testing.T) {
	l := newLanes(t)
	g := &gathering{want: 1, ready: make(chan struct{})}
	l.fast.SetHandler(g, nil, nil)
	get := func(path string) string { return "GET " + path + host + "\r\n" }
	got, rest := l.ask(l.fast, []byte(get("/a")+get("/b")+"POST /w"+host+"Content-Length: 1\r\n\r\nx"+get("/c")+get("/d")))
	if len(got) != 5 || rest != "" {
		t.Fatalf("%+v %q", got, rest)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	at := func(text string) int { return slices.Index(g.log, text) }
	if at("+/w") < max(at("-/a"), at("-/b")) || min(at("+/c"), at("+/d")) < at("-/w") {
		t.Error(g.log)
	}
}

// TestAStreamBegunEarlyIsSentAsItComes: the client gets the first piece of an answer that was
// begun before its turn while the handler still waits with the second.
func TestAStreamBegunEarlyIsSentAsItComes(t *testing.T) {
	l := newLanes(t)
	begun := map[string]chan struct{}{"/second": make(chan struct{}), "/broken": make(chan struct{})}
	more := map[string]chan struct{}{"/second": make(chan struct{}), "/broken": make(chan struct{})}
	l.fast.SetHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if next, ok := strings.CutPrefix(r.URL.Path, "/before"); ok {
			<-begun[next]
			w.Header().Set("Content-Length", "0")
			return
		}
		close(begun[r.URL.Path])
		control := http.NewResponseController(w)
		_, err := w.Write([]byte("piece"))
		if err := errors.Join(err, control.SetWriteDeadline(time.Now().Add(time.Minute)), control.Flush()); err != nil {
			t.Error(err)
		}
		<-more[r.URL.Path]
		_, _ = w.Write([]byte("end"))
		w.Header().Set(http.TrailerPrefix+"X-Sum", "8")
		if r.URL.Path == "/broken" {
			panic(http.ErrAbortHandler)
		}
	}), nil, nil)
	for path, sum := range map[string]string{"/second": "8", "/broken": ""} {
		sendsAsItComes(t, l, path, more[path], sum)
	}
}

// sendsAsItComes reads what path gives behind another answer. sum is its trailer; without, it is not
// all.
func sendsAsItComes(t *testing.T, l *lanes, path string, more chan struct{}, sum string) {
	t.Helper()
	c, err := net.Dial("tcp", l.fast.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Write([]byte("GET /before" + path + host + "\r\nGET " + path + host + "\r\n")); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	var resp *http.Response
	for _, want := range []string{"", "piece"} {
		if resp, err = http.ReadResponse(in, nil); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v", got, err)
		}
	}
	close(more)
	rest, err := io.ReadAll(resp.Body)
	if whole := err == nil && string(rest) == "end"; whole != (sum != "") || resp.Trailer.Get("X-Sum") != sum {
		t.Errorf("%s: %q, %v, %v", path, rest, err, resp.Trailer)
	}
}

// TestAPipelineEndsWithItsConnection: requests of a client that is gone are given up, and
// of one connection no more than sixteen are at work.
func TestAPipelineEndsWithItsConnection(t *testing.T) {
	l := newLanes(t)
	g := &gathering{want: 100, ready: make(chan struct{})}
	l.fast.SetHandler(g, nil, nil)
	c, err := net.Dial("tcp", l.fast.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte(strings.Repeat("GET /a"+host+"\r\n", 40))); err != nil {
		t.Fatal(err)
	}
	count := func(text string) int {
		g.mu.Lock()
		defer g.mu.Unlock()
		n := 0
		for _, one := range g.log {
			if one == text {
				n++
			}
		}
		return n
	}
	until := func(text string, n int) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); count(text) < n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d of %s, want %d", count(text), text, n)
			}
		}
	}
	until("+/a", 16)
	_ = c.Close()
	until("-/a", 16)
	if n := count("+/a"); n != 16 {
		t.Errorf("%d were begun", n)
	}
}

// TestPipelinesGoOnAfterPartsOfHeads: where what came ends within a head its rest is waited for,
// and what is behind it is begun together as well.
func TestPipelinesGoOnAfterPartsOfHeads(t *testing.T) {
	l := newLanes(t)
	all := ""
	for n := range 40 {
		all += fmt.Sprintf("GET /cold/%d%sX: %s\r\n\r\n", n, host, strings.Repeat("x", 300))
	}
	for cut := 1; cut < len(all); cut += 1999 {
		before := l.fast.express.answered.Load()
		if got := l.same([]byte(all[:cut]), []byte(all[cut:])); len(got) != 40 {
			t.Errorf("cut at %d: %d answers", cut, len(got))
		}
		if n := l.fast.express.answered.Load() - before; n < 15 {
			t.Errorf("cut at %d: %d requests were begun early", cut, n)
		}
	}
}
