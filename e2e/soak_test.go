// Soak: answers under faults that change every second, each compared with the
// truth; the process must hold no more at the end than at the start.

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/binary"
)

const (
	soakClients = 16
	soakTime    = 6 * time.Second // when no count is asked for
	soakFresh   = 4               // seconds: the longest any answer is fresh here
)

// truth is one request and what upstream answers when it is well. The world
// stands still, so that never changes.
type truth struct {
	path string
	body []byte
}

// TestSoak asks for PROVE_ANSWERS answers, or for some seconds.
func TestSoak(t *testing.T) {
	t.Parallel()
	chance := random(t)
	up := startAPI(t, "--latency", "20ms", "--records", "3000").URL("slowapi")
	house, _ := startServer(t, settings{
		upstream: up, polls: "[calls, messages]",
		source: "max_body: 1MiB, timeouts: {connect: 1s, first_byte: 2s, stall: 1s, total: 3s}",
		mirror: "{hot: 8MiB, newest: 2s, older: 4s, final: 4s, other: 2s, stale: 3s}",
	})
	truths := truthsOf(t, up, chance)
	for i, k := range truths { // before any fault everything is as upstream has it
		r := get(t, account+":"+demoToken, house.URL("twilio")+k.path)
		if r.status != 200 || !bytes.Equal(r.body, k.body) {
			t.Fatalf("truth %d, %s: %d, %s", i, k.path, r.status, firstDifference(k.body, r.body))
		}
	}
	s := &soak{t: t, server: house, truths: truths, want: 1 << 62}
	s.nobody = truth{nobodysPath(nobodyNumber), get(t, account+":"+apiToken, up+nobodysPath(nobodyNumber)).body}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if text := os.Getenv("PROVE_ANSWERS"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		s.want = n
	} else {
		ctx, stop = context.WithTimeout(ctx, soakTime)
		defer stop()
	}
	before := s.held()
	began := time.Now()
	var wg sync.WaitGroup
	for range soakClients {
		seed := chance.Uint64()
		wg.Go(func() { s.client(ctx, stop, rand.New(rand.NewPCG(seed, 1))) })
	}
	samples := s.storm(ctx, up, chance)
	wg.Wait()
	control(t, up, "/-/faults", `{"rules":[]}`)
	took := time.Since(began)
	t.Logf("%d answers in %v, %.0f a second: %d right (%d stale, %d fetched), %d refused in the right shape, %d wrong",
		s.answers.Load(), took.Round(time.Second), float64(s.answers.Load())/took.Seconds(), s.right.Load(), s.stale.Load(), s.cold.Load(), s.refused.Load(), s.wrong.Load())
	if s.right.Load() == 0 || s.stale.Load() == 0 || s.cold.Load() == 0 || s.refused.Load() == 0 {
		t.Error("the faults, or the answers, were not what this test is about")
	}
	s.flat(samples)
	s.rest(before)
}

// soak is one run.
type soak struct {
	t      *testing.T
	server *binary.Server
	truths []truth
	nobody truth // the calls of a number that has none; every such number's look alike
	want   int64

	answers, right, stale, cold, refused, wrong atomic.Int64
}

// truthsOf asks the API itself, for lists and instances of calls and messages
// under random filters.
func truthsOf(t *testing.T, up string, chance *rand.Rand) (out []truth) {
	t.Helper()
	pick := func(words ...string) string { return words[chance.IntN(len(words))] }
	add := func(path string) []byte {
		r := get(t, account+":"+apiToken, up+path)
		if r.status != 200 {
			t.Fatalf("%s: %d %s", path, r.status, r.body)
		}
		if !slices.ContainsFunc(out, func(k truth) bool { return k.path == path }) {
			out = append(out, truth{path, r.body})
		}
		return r.body
	}
	for len(out) < 240 {
		kind := pick("Calls", "Messages")
		query := fmt.Sprintf("PageSize=%d", 1+chance.IntN(15))
		day := fmt.Sprintf("2026-05-%02d", 1+chance.IntN(31))
		switch {
		case chance.IntN(3) == 0:
		case kind == "Calls":
			query = pick("Status="+pick("completed", "busy", "no-answer", "failed"), "StartTime%3C="+day, "StartTime%3E="+day) + "&" + query
		default:
			query = pick("DateSent%3C="+day, "DateSent%3E="+day) + "&" + query
		}
		var page struct {
			Calls, Messages []struct{ Sid string }
			Next            *string `json:"next_page_uri"`
		}
		if err := json.Unmarshal(add(base+"/"+kind+".json?"+query), &page); err != nil {
			t.Fatal(err)
		}
		for _, r := range append(page.Calls, page.Messages...)[:min(1, len(page.Calls)+len(page.Messages))] {
			add(base + "/" + kind + "/" + r.Sid + ".json")
		}
		if page.Next != nil {
			add(*page.Next)
		}
	}
	return out
}

// nobodyNumber is a phone number without records. The numbers derived from it have the same length.
const nobodyNumber = 15550000000

func nobodysPath(n int) string {
	return fmt.Sprintf("%s/Calls.json?From=%%2B%d&PageSize=5", base, n)
}

// unasked returns the expected response of a path that was not requested before.
func (s *soak) unasked(n int) *truth {
	was, is := strconv.Itoa(nobodyNumber), strconv.Itoa(nobodyNumber+n)
	return &truth{nobodysPath(nobodyNumber + n), bytes.ReplaceAll(s.nobody.body, []byte(was), []byte(is))}
}

// storm changes the faults every second until ctx ends, and tells how much the
// process held each time. In one second of five all requests fail, so that a
// short run has refusals too.
func (s *soak) storm(ctx context.Context, up string, chance *rand.Rand) (samples []holding) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for second := 0; ; second++ {
		rules := rulesOf(chance)
		switch second % 5 {
		case 0: // all is well, or a short run may fetch nothing
			rules = `{"rules":[]}`
		case 2:
			rules = `{"rules":[{"status":502}]}`
		}
		control(s.t, up, "/-/faults", rules)
		samples = append(samples, s.held())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return samples
		}
	}
}

// rulesOf are the faults of one second; in every third all is well. What is no
// fault but a lie, a whole document that says something else, is not among
// them: it is passed on as upstream's word.
func rulesOf(chance *rand.Rand) string {
	n := chance.IntN(3)
	rules := make([]string, 0, n)
	for range n {
		match := []string{"", "", "/Calls", "/Messages", "PageSize=1", "Status="}[chance.IntN(6)]
		faults := []string{
			`"status":500`, `"status":502`, `"status":503,"retry_after":1`, `"status":504`, `"status":429,"retry_after":1`, `"status":401,"times":3`, `"status":403,"times":3`,
			`"reset":true`, `"delay_ms":300`, `"delay_ms":3000`, fmt.Sprintf(`"stall_after":%d`, chance.IntN(3000)),
			fmt.Sprintf(`"truncate":%d`, chance.IntN(2000)), fmt.Sprintf(`"truncate":%d,"reset":true`, chance.IntN(2000)),
			fmt.Sprintf(`"gzip_cut":%d`, 1+chance.IntN(300)), `"length":7`, `"length":-7`,
			`"body":""`, `"body":"{\"calls\":[{]}"`, `"body":"<html>oops</html>","content_type":"text/html"`,
			`"status":502,"body":"<html>bad gateway</html>","content_type":"text/html"`,
			`"redirect":"loop"`, `"redirect":"http://127.0.0.1:1/"`, `"pad_mb":2`,
		}
		times := ""
		if fault := faults[chance.IntN(len(faults))]; chance.IntN(3) == 0 && !strings.Contains(fault, "times") {
			times = fmt.Sprintf(`,"times":%d`, 1+chance.IntN(20))
			rules = append(rules, fmt.Sprintf(`{"match":%q,%s%s}`, match, fault, times))
		} else {
			rules = append(rules, fmt.Sprintf(`{"match":%q,%s}`, match, fault))
		}
	}
	return `{"rules":[` + strings.Join(rules, ",") + `]}`
}

// client asks one request after the other over connections of its own.
func (s *soak) client(ctx context.Context, stop context.CancelFunc, chance *rand.Rand) {
	host := strings.TrimPrefix(s.server.URL("twilio"), "http://")
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(account+":"+demoToken))
	request := func(path string) []byte {
		return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\n", path, host, basic)
	}
	requests := make([][]byte, len(s.truths))
	for i, k := range s.truths {
		requests[i] = request(k.path)
	}
	l := &line{host: host}
	defer l.close()
	for ctx.Err() == nil && s.wrong.Load() < 10 {
		i := chance.IntN(len(s.truths))
		if chance.IntN(5) > 0 {
			i %= 40 // most ask for what most ask for
		}
		k, head, end := &s.truths[i], requests[i], "\r\n"
		switch n := chance.IntN(200); {
		case n == 0:
			end = "Cache-Control: no-cache\r\n\r\n"
		case n == 1:
			end = "Prefer: wait=1\r\n\r\n"
		case n < 8: // some in every second, so that a second of faults refuses some
			k = s.unasked(1 + chance.IntN(1e7))
			head, end = request(k.path), "Prefer: wait=1\r\n\r\n"
		}
		if err := l.ask(head, end); err != nil {
			s.bad("%s: %v", k.path, err)
			continue
		}
		s.judge(k, l)
		if s.answers.Add(1) >= s.want {
			stop()
		}
	}
	stop()
}

func (s *soak) bad(format string, args ...any) {
	if s.wrong.Add(1) <= 10 {
		s.t.Errorf(format, args...)
	}
}

// judge compares one answer with the truth.
func (s *soak) judge(k *truth, l *line) {
	if l.status == 200 {
		if !bytes.Equal(l.body, k.body) {
			s.bad("%s: a wrong answer (%s): %s", k.path, l.how, firstDifference(k.body, l.body))
			return
		}
		s.right.Add(1)
		switch {
		case strings.Contains(l.how, "fwd="):
			s.cold.Add(1)
		case strings.Contains(l.how, "ttl=-") || strings.Contains(l.how, "stale"):
			s.stale.Add(1)
		case l.age > soakFresh:
			s.bad("%s: %d s old and not said to be stale: %s", k.path, l.age, l.how)
		}
		return
	}
	var shape struct {
		Code, Status int
		Message      string
	}
	err := json.Unmarshal(l.body, &shape)
	right := err == nil && shape.Code != 0 && shape.Message != "" && shape.Status == l.status
	known := l.status == 429 || l.status == 500 || l.status == 502 || l.status == 503 || l.status == 504
	if !right || !known || l.status == 503 && !l.retry {
		s.bad("%s: %d %.300s (Retry-After: %v, %v)", k.path, l.status, l.body, l.retry, err)
		return
	}
	s.refused.Add(1)
}

// line is a connection that is kept, and the last answer that came over it.
type line struct {
	host string
	conn net.Conn
	in   *bufio.Reader

	status int
	age    int
	how    string // Cache-Status
	retry  bool
	body   []byte
}

func (l *line) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// ask sends one request, head in two parts, and reads its answer.
func (l *line) ask(head []byte, end string) (err error) {
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.conn == nil {
		if l.conn, err = net.Dial("tcp", l.host); err != nil {
			return err
		}
		l.in = bufio.NewReaderSize(l.conn, 64<<10)
	}
	if err := l.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := l.conn.Write(append(head[:len(head):len(head)], end...)); err != nil {
		return err
	}
	return l.read()
}

func (l *line) read() error {
	first, err := l.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if l.status, err = strconv.Atoi(string(first[9:12])); err != nil {
		return err
	}
	l.age, l.how, l.retry = 0, "", false
	length := -1
	for {
		h, err := l.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		h = bytes.TrimRight(h, "\r\n")
		if len(h) == 0 {
			break
		}
		name, value, _ := bytes.Cut(h, []byte(": "))
		switch string(name) {
		case "Content-Length":
			length, _ = strconv.Atoi(string(value))
		case "Age":
			l.age, _ = strconv.Atoi(string(value))
		case "Cache-Status":
			l.how = string(value)
		case "Retry-After":
			l.retry = true
		}
	}
	if length < 0 {
		return errors.New("an answer without a length")
	}
	if cap(l.body) < length {
		l.body = make([]byte, 2*length)
	}
	l.body = l.body[:length]
	_, err = io.ReadFull(l.in, l.body)
	return err
}

// holding is what the process holds.
type holding struct {
	Goroutines int   `json:"goroutines"`
	FDs        int   `json:"fds"`
	RSS        int64 `json:"rss"`
}

func (s *soak) held() holding {
	s.t.Helper()
	var stats struct{ Process holding }
	r := get(s.t, account+":"+demoToken, s.server.URL("viewer")+"/-/stats")
	if err := json.Unmarshal(r.body, &stats); err != nil || stats.Process.Goroutines == 0 || stats.Process.FDs == 0 || stats.Process.RSS == 0 {
		s.t.Fatalf("stats: %d %.300s %v", r.status, r.body, err)
	}
	return stats.Process
}

// flat compares the resident memory of the last third with the second.
func (s *soak) flat(samples []holding) {
	middle := func(part []holding) int64 {
		part = slices.Clone(part)
		slices.SortFunc(part, func(a, b holding) int { return int(a.RSS - b.RSS) })
		return part[len(part)/2].RSS
	}
	if len(samples) < 9 {
		s.t.Logf("only %d samples of memory", len(samples))
		return
	}
	third := len(samples) / 3
	second, last := middle(samples[third:2*third]), middle(samples[2*third:])
	s.t.Logf("resident memory: %d MiB in the second third, %d MiB in the last, %d samples", second>>20, last>>20, len(samples))
	if last > second+second/5+(16<<20) {
		s.t.Errorf("resident memory rose from %d to %d bytes", second, last)
	}
}

// rest waits until the process holds what it held before. Connections to
// upstream are kept idle for half a minute; a short run does not wait for that.
func (s *soak) rest(before holding) {
	more, patience := 50, 20*time.Second // as many may be kept
	if os.Getenv("PROVE_ANSWERS") != "" {
		more, patience = 1, time.Minute
	}
	deadline := time.After(patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		now := s.held()
		if now.Goroutines <= before.Goroutines+2*more+2 && now.FDs <= before.FDs+more+2 {
			s.t.Logf("before %+v, after %+v", before, now)
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Errorf("%v after the last answer %+v is held, before the first it was %+v", patience, now, before)
			return
		}
	}
}
