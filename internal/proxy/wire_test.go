// The wire: many requests on one connection, requests that hide others, and
// callers that leave.

package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/internal/checktest"
)

// Fifty requests in one piece, warm and cold by turns and a write in their
// midst, are answered in order, and the write is between the reads around it.
func TestPipelined(t *testing.T) {
	c := build(t)
	warm := root + "/Calls.json?PageSize=2"
	c.get(warm, demo)
	c.journal.take()
	form := "To=%2B14155551234&From=%2B14155550000&Body=in+the+middle"
	var all strings.Builder
	line := func(i int) (method, target string) {
		switch {
		case i == 25:
			return "POST", root + "/Messages.json"
		case i == 24, i == 26:
			return "GET", root + "/Messages.json?PageSize=1"
		case i%2 == 0:
			return "GET", warm
		}
		return "GET", root + "/Calls.json?PageSize=" + strconv.Itoa(i+2)
	}
	for i := range 50 {
		method, target := line(i)
		fmt.Fprintf(&all, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nX-Request-Id: no%d\r\n", method, target, basic(demo), i)
		if method == "POST" {
			fmt.Fprintf(&all, "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n", len(form))
		}
		all.WriteString("\r\n")
		if method == "POST" {
			all.WriteString(form)
		}
	}
	conn := c.dial(c.server)
	defer conn.Close()
	_, err := io.WriteString(conn, all.String())
	check(t, err)
	in := bufio.NewReader(conn)
	var bodies []string
	for i := range 50 {
		method, target := line(i)
		status, body, h := c.readOne(in, method)
		if want := map[string]int{"GET": 200, "POST": 201}[method]; status != want || h.Get("X-Request-Id") != "no"+strconv.Itoa(i) {
			t.Fatalf("answer %d: %d to %s: %.200s", i, status, h.Get("X-Request-Id"), body)
		}
		bodies = append(bodies, body)
		if _, direct := c.ask(c.slow, "GET", target, api, ""); method == "GET" && i != 24 && body != direct {
			t.Errorf("answer %d is not that of %s", i, target)
		}
	}
	checktest.Lacks(t, bodies[24], "in the middle", "the write is not between the reads around it: bodies[24]")
	checktest.Contains(t, bodies[25], "in the middle", "the write is not between the reads around it: bodies[25]")
	checktest.Contains(t, bodies[26], "in the middle", "the write is not between the reads around it: bodies[26]")
}

// hidden is one case of the corpus.
type hidden struct {
	name, raw string
	want      []int
	close     bool
}

func corpus(t *testing.T) (all []hidden) {
	t.Helper()
	text, err := os.ReadFile("testdata/smuggling.txt")
	check(t, err)
	form := "To=%2B14155551234&From=%2B14155550000&Body=hello"
	auth := "Authorization: " + basic(demo) + "\r\n"
	second := "To=%2B14155551234&From=%2B14155550000&Body=smuggled"
	smuggled := fmt.Sprintf("POST %s/Messages.json HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", root, auth, len(second), second)
	fill := strings.NewReplacer("{path}", root+"/Calls.json?PageSize=1000", "{bare}", root+"/Calls.json", "{create}", root+"/Messages.json",
		"{auth}", auth, "{smuggled}", smuggled,
		"{length}", strconv.Itoa(len(smuggled)), "{form}", form, "{fits}", strconv.Itoa(len(form)), "{chunk}",
		fmt.Sprintf("%x\r\n%s\r\n", len(form), form),
		"{8k}", strings.Repeat("y", 8<<10), "{2m}", strings.Repeat("y", 2<<20), "{extensions}",
		strings.Repeat("1;"+strings.Repeat("y", 2000)+"\r\nx\r\n", 40))
	for block := range strings.SplitSeq(string(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		if strings.HasPrefix(lines[0], "#") {
			continue
		}
		if len(lines) != 3 {
			t.Fatalf("%q: want three lines", block)
		}
		raw, err := strconv.Unquote(lines[2])
		check(t, err)
		h := hidden{name: lines[0], raw: fill.Replace(raw)}
		for word := range strings.FieldsSeq(lines[1]) {
			if h.close = word == "close"; !h.close {
				status, err := strconv.Atoi(word)
				check(t, err)
				h.want = append(h.want, status)
			}
		}
		all = append(all, h)
	}
	return all
}

// Each request of the corpus is refused, or handled as exactly one; whatever
// hides behind it never reaches upstream.
func TestSmuggling(t *testing.T) {
	c := build(t)
	c.get(root+"/Calls.json?PageSize=1000", demo)
	c.journal.take()
	all := corpus(t)
	if len(all) < 40 {
		t.Fatalf("only %d cases", len(all))
	}
	t.Logf("%-52s %-16s %-6s %s", "request", "answered", "then", "upstream was asked")
	for _, h := range all {
		conn := c.dial(c.server)
		go func() { _, _ = io.WriteString(conn, h.raw) }() // who is refused stops reading
		statuses, closed := c.drain(conn, h)
		check(t, conn.Close())
		asked := c.journal.take()
		then := "open"
		if closed {
			then = "closed"
		}
		t.Logf("%-52s %-16s %-6s %s", h.name, strings.Trim(fmt.Sprint(statuses), "[]"), then,
			strings.ReplaceAll(strings.Join(asked, "; "), root, "…"))
		if !slices.Equal(statuses, h.want) || closed != h.close {
			t.Errorf("%s: answered %v, closed %v; want %v, %v", h.name, statuses, closed, h.want, h.close)
		}
		if len(asked) > 1 {
			t.Errorf("%s: upstream was asked %d times: %q", h.name, len(asked), asked)
		}
		for _, one := range asked {
			if strings.Contains(one, "smuggled") || strings.HasPrefix(one, "GET ") && strings.Contains(strings.TrimPrefix(one, "GET "), " ") {
				t.Errorf("%s: upstream was asked %q", h.name, one)
			}
		}
	}
	if _, body := c.ask(c.slow, "GET", root+"/Messages.json?PageSize=1000", api, ""); strings.Contains(body, "smuggled") ||
		!strings.Contains(body, "hello") {
		t.Error("a hidden request was carried out, or none of the open ones")
	}
}

// drain reads answers until the connection ends or is quiet.
func (c *product) drain(conn net.Conn, h hidden) (statuses []int, closed bool) {
	c.Helper()
	in := bufio.NewReader(conn)
	for {
		wait := 10 * time.Second
		if len(statuses) == len(h.want) && !h.close {
			wait = 50 * time.Millisecond // nothing more should come
		}
		check(c.T, conn.SetReadDeadline(time.Now().Add(wait)))
		if _, err := in.Peek(1); err != nil {
			return statuses, !errors.Is(err, os.ErrDeadlineExceeded)
		}
		method := "GET"
		if strings.HasPrefix(h.raw, "HEAD") && len(statuses) == 0 {
			method = "HEAD"
		}
		answer, err := http.ReadResponse(in, &http.Request{Method: method})
		check(c.T, err)
		_, err = io.Copy(io.Discard, answer.Body)
		check(c.T, err)
		check(c.T, answer.Body.Close())
		statuses = append(statuses, answer.StatusCode)
	}
}

// A write that has gone out is finished though its caller has left: upstream
// keeps it, and so do we.
func TestAWriteOutlivesItsCaller(t *testing.T) {
	c := build(t)
	c.get(root+"/Messages.json?PageSize=1", demo)
	c.ask(c.slow, "POST", "/-/faults", "", `{"rules":[{"match":"/Messages","delay_ms":500,"times":3}]}`) // a page read ahead may take one
	c.journal.take()
	form := "To=%2B14155551234&From=%2B14155550000&Body=from+one+who+left"
	conn := c.dial(c.server)
	_, err := fmt.Fprintf(conn, "POST %s/Messages.json HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Type: "+
		"application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", root, basic(demo), len(form), form)
	check(t, err)
	c.until("the write is at upstream", func() bool { return strings.Contains(strings.Join(c.journal.peek(), "\n"), "POST ") })
	check(t, conn.Close())
	c.until("the write is done", func() bool {
		_, body := c.ask(c.slow, "GET", root+"/Messages.json?PageSize=1", api, "")
		return strings.Contains(body, "from one who left")
	})
	c.until("we know of it", func() bool {
		_, body := c.get(root+"/Messages.json?PageSize=1", demo)
		return strings.Contains(body, "from one who left")
	})
	posts := 0
	for _, one := range c.journal.take() {
		if strings.HasPrefix(one, "POST ") {
			posts++
		}
	}
	if posts != 1 {
		t.Errorf("written %d times", posts)
	}
}

// One whose caller leaves while it waits for its turn is never sent.
func TestAWriteThatWaitsEndsWithItsCaller(t *testing.T) {
	c := build(t)
	c.ask(c.slow, "POST", "/-/faults", "", `{"rules":[{"match":"/Calls","delay_ms":1500,"times":20}]}`)
	c.journal.take()
	for i := range 20 { // all places at upstream
		conn := c.dial(c.server)
		defer conn.Close()
		_, err := fmt.Fprintf(conn, "GET %s/Calls.json?PageSize=%d HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n\r\n", root, i+1, basic(demo))
		check(t, err)
	}
	c.until("upstream is full", func() bool { return len(c.journal.peek()) == 20 })
	conn := c.dial(c.server)
	_, err := fmt.Fprintf(conn, "POST %s/Messages.json HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: 5\r\n\r\nTo=%%2", root,
		basic(demo))
	check(t, err)
	c.until("the write waits", func() bool { return c.proxy.Writes() == 1 })
	check(t, conn.Close())
	c.until("it has ended", func() bool { return c.proxy.Writes() == 0 })
	if status, _ := c.get(root+"/Calls.json?PageSize=30", demo); status.StatusCode != 200 {
		t.Error(status.Status)
	}
	for _, one := range c.journal.take() {
		if strings.HasPrefix(one, "POST ") {
			t.Errorf("upstream was asked %q", one)
		}
	}
}

// until waits for something that other goroutines bring about.
func (c *product) until(what string, done func() bool) {
	c.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 2000 {
		if done() {
			return
		}
		<-tick.C
	}
	c.Fatalf("never: %s", what)
}
