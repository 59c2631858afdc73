package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// elsewhere is an HTTP collector. The first of its answers are those of a list; 1 is one
// that is taken and then broken off.
type elsewhere struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int
	taken   bytes.Buffer
	batches chan int // the bytes that are taken
	bad     []string
}

func newElsewhere(t *testing.T, answers ...int) *elsewhere {
	r := &elsewhere{answers: answers, batches: make(chan int, 1000)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *elsewhere) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := q.Method + " " + q.Header.Get("Content-Type") + " " + q.Header.Get("Authorization"); err != nil ||
		got != "POST application/x-ndjson Bearer collector-token" || len(body) > maxBytes || bytes.Count(body, []byte("\n")) > maxLines {
		r.bad = append(r.bad, got+" "+strconv.Itoa(len(body)))
	}
	if len(r.answers) > 0 {
		status := r.answers[0]
		r.answers = r.answers[1:]
		if status != 1 {
			w.WriteHeader(status)
			return
		}
		r.taken.Write(body)
		panic(http.ErrAbortHandler)
	}
	r.taken.Write(body)
	r.batches <- len(body)
}

func (r *elsewhere) lines() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Split(bytes.TrimSuffix(r.taken.Bytes(), []byte("\n")), []byte("\n"))
}

func notes(t *testing.T) *store.DB { return storetest.Open(t, store.Options{}) }

// sending is a log of the folder that sends until the test, or end, ends it.
func (f *folder) sending(o SendOptions, logger *slog.Logger) (l *Log, end func()) {
	f.t.Helper()
	all := f.options()
	all.Send, all.Logger, all.Now, all.SegmentSize = o, logger, time.Now, 128<<10
	l = New(all)
	l.sender.every = time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := l.Send(ctx); err != nil {
			f.t.Error(err)
		}
	})
	end = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		if err := l.Close(); err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(end)
	return l, end
}

// until waits for the figures of sending that are wanted.
func until(t *testing.T, l *Log, wanted func(SendStatus) bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !wanted(*l.Stats().Sending) {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%+v", *l.Stats().Sending)
		}
	}
}

func allSent(s SendStatus) bool { return s.Behind == 0 && s.Sent > 0 && s.Trouble == "" }

// Every line goes to a collector that fails at first and breaks off an answer, also those
// of other chains and of a second start; what it has verifies.
func TestTheLogIsSentOnAndVerifies(t *testing.T) {
	f := newFolder(t)
	db := notes(t)
	r := newElsewhere(t, 503, 1, 401)
	o := SendOptions{URL: r.URL + "/audit?key=hidden", Secret: understudy.NewSecret("collector-token"), KV: db.KV}
	for range 2 { // chains of processes that have ended, of which this one goes on with one
		before := f.options()
		c, err := before.begin()
		if err != nil || c.close() != nil {
			t.Fatal(err)
		}
	}
	l, end := f.sending(o, slog.New(slog.DiscardHandler))
	for range 700 {
		list(t, l, record("CA1", "+14155550100"))
	}
	l.writeCountsAndSign(t.Context())
	until(t, l, allSent)
	end()
	l, end = f.sending(o, slog.New(slog.DiscardHandler))
	list(t, l, record("CA2"))
	l.writeCountsAndSign(t.Context())
	until(t, l, allSent)
	end()
	if l.Stats().Sending.Sent > 20 {
		t.Errorf("after the second start %d lines were sent", l.Stats().Sending.Sent)
	}
	var held [][]byte
	ids, err := ListChains(f.options().Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		for e, err := range f.reader().Lines(id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, bytes.Clone(e.Data))
		}
	}
	lines := r.lines()
	for _, line := range held[:len(held)-1] { // the last is the checkpoint of Close, which the next start sends
		if !slices.ContainsFunc(lines, func(sent []byte) bool { return bytes.Equal(sent, line) }) {
			t.Errorf("not sent: %s", line)
		}
	}
	if len(lines) <= len(held) || len(r.bad) > 0 {
		t.Errorf("%d lines for %d, one batch of them twice; wrong requests: %q", len(lines), len(held), r.bad)
	}
	v := Verifier{Keys: []string{f.key.PublicKey()}}
	reports, err := v.VerifyLines(bytes.NewReader(bytes.Join(lines, []byte("\n"))))
	if err != nil || len(reports) != len(ids) {
		t.Fatal(reports, err)
	}
	for _, one := range reports {
		if len(one.Faults) > 0 || one.Signed == 0 {
			t.Errorf("%+v", one)
		}
	}
	// A line that was changed on its way is told.
	forged := bytes.Replace(bytes.Join(lines, []byte("\n")), []byte(`"CA1"`), []byte(`"CA9"`), 1)
	if reports, err = v.VerifyLines(bytes.NewReader(forged)); err != nil || !slices.ContainsFunc(reports, func(r Report) bool {
		return len(r.Faults) > 0
	}) {
		t.Error("a changed line verifies")
	}
	// Another receiver gets the whole log.
	other := newElsewhere(t)
	o.URL = other.URL
	l, end = f.sending(o, slog.New(slog.DiscardHandler))
	until(t, l, allSent)
	end()
	if n := len(other.lines()); n < len(held) {
		t.Errorf("another receiver has %d lines of %d", n, len(held))
	}
}

// A receiver that is down, or takes a batch and says nothing, holds up no entry.
func TestAReceiverThatIsDownHoldsUpNothing(t *testing.T) {
	db := notes(t)
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer refusing.Close() // nothing accepts: a batch waits for the end of its connection
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil || gone.Close() != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"http://" + gone.Addr().String(), "syslog+tcp://" + gone.Addr().String(),
		"syslog+tcp://" + refusing.Addr().String(), "http://" + refusing.Addr().String()} {
		f := newFolder(t)
		l, end := f.sending(SendOptions{URL: url, KV: db.KV}, slog.New(slog.DiscardHandler))
		for range 100 {
			list(t, l, record("CA1"))
		}
		until(t, l, func(s SendStatus) bool {
			return s.Behind >= 100 && (s.Trouble != "" || strings.Contains(url, refusing.Addr().String()))
		})
		{
			s := l.Stats()
			checktest.Equal(t, s.Refused, 0, "%s: s.Refused", url)
			checktest.Equal(t, s.Trouble, "", "%s: s.Trouble", url)
			checktest.Equal(t, s.Sending.Sent, 0, "%s: s.Sending.Sent", url)
		}
		end()
	}
}

// Entries that are too old go although they were not sent; the log says so once, and what
// is left is sent.
func TestUnsentEntriesThatAreTooOld(t *testing.T) {
	f := newFolder(t)
	var said bytes.Buffer
	l := f.log()
	for range 100 {
		list(t, l, record("CA1"))
	}
	if err := l.cut(t.Context(), f.now); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := newElsewhere(t, 503, 503)
	l, end := f.sending(SendOptions{URL: r.URL, Secret: understudy.NewSecret("collector-token"), KV: notes(t).KV},
		slog.New(slog.NewTextHandler(&said, nil)))
	list(t, l, record("CA2"))
	until(t, l, allSent)
	end()
	var first Entry
	if err := json.Unmarshal(r.lines()[0], &first); err != nil || first.Number < 2 {
		t.Fatal(first, err)
	}
	want := "entries were removed because of their age before they were sent"
	if strings.Count(said.String(), want) != 1 || !strings.Contains(said.String(), "entries="+strconv.FormatUint(first.Number-1, 10)) {
		t.Errorf("the log says:\n%s", said.String())
	}
	if strings.Count(said.String(), "is not sent on") != 1 || strings.Count(said.String(), "is sent on again") != 1 {
		t.Errorf("the log says:\n%s", said.String())
	}
}

// frame is a message of RFC 5424 as a receiver reads it.
var frame = regexp.MustCompile(`^<110>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) (\S+) understudy (\S+) (\S+) - (\{.*\})$`)

// checkFrame gives the line in a message, and what it is.
func checkFrame(t *testing.T, m string) (line, id string) {
	t.Helper()
	parts := frame.FindStringSubmatch(m)
	if parts == nil {
		t.Fatalf("no message of RFC 5424: %q", m)
	}
	var e Entry
	at, err := time.Parse(time.RFC3339Nano, parts[1])
	checktest.MustTrue(t, json.Unmarshal([]byte(parts[5]), &e) == nil, "json.Unmarshal([]byte(parts[5]), &e) is %v",
		json.Unmarshal([]byte(parts[5]), &e))
	checktest.MustNoError(t, err, "")
	checktest.MustEqual(t, e.Chain, parts[3], "e.Chain")
	checktest.MustEqual(t, parts[2], "host-1", "parts[2]")
	checktest.MustTrue(t, e.At.Sub(at).Abs() <= time.Microsecond, "e.At.Sub(at).Abs() > time.Microsecond")
	return parts[5], parts[4]
}

// A TLS receiver gets frames with their lengths when its certificate is one we trust, and
// nothing otherwise: not when nobody we trust vouches for it, nor when it has another name.
func TestSyslogOverTLS(t *testing.T) {
	https := httptest.NewTLSServer(nil) // for its certificate, of 127.0.0.1
	defer https.Close()
	roots := x509.NewCertPool()
	roots.AddCert(https.Certificate())
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: https.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	messages := make(chan string, 1000)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if conn.(*tls.Conn).Handshake() == nil {
				readFrames(t, conn, messages)
			}
			_ = conn.Close()
		}
	})
	address := listener.Addr().String()
	for _, refused := range []SendOptions{
		{URL: "syslog+tls://" + address},
		{URL: "syslog+tls://" + strings.Replace(address, "127.0.0.1", "localhost", 1), Roots: roots},
	} {
		to, err := newReceiver(refused)
		if err != nil {
			t.Fatal(err)
		}
		if err := to.take(t.Context(), [][]byte{[]byte("{}")}); err == nil || !strings.Contains(err.Error(), "x509") {
			t.Errorf("%s: %v", refused.URL, err)
		}
	}
	f := newFolder(t)
	o := SendOptions{URL: "syslog+tls://" + address, Roots: roots, Host: "host-1", KV: notes(t).KV}
	l, end := f.sending(o, slog.New(slog.DiscardHandler))
	list(t, l, record("CA1"), record("CA2"))
	l.writeCountsAndSign(t.Context())
	until(t, l, allSent)
	end()
	_ = listener.Close()
	wg.Wait()
	close(messages)
	ids := map[string]int{}
	for m := range messages {
		_, id := checkFrame(t, m)
		ids[id]++
	}
	checktest.Equal(t, ids["record"], 2, `ids["record"]`)
	checktest.True(t, ids["begin"] != 0, `ids["begin"] is 0`)
	checktest.True(t, ids["checkpoint"] != 0, `ids["checkpoint"] is 0`)
}

// A TCP receiver gets frames with their lengths. It closes the first connection before it
// has read all; that batch comes again.
func TestSyslogOverTCP(t *testing.T) {
	f := newFolder(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	messages := make(chan string, 1000)
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if n == 0 {
				_, _ = conn.Read(make([]byte, 1))
				_ = conn.(*net.TCPConn).SetLinger(0)
			} else {
				readFrames(t, conn, messages)
			}
			_ = conn.Close()
		}
	})
	l, end := f.sending(SendOptions{URL: "syslog+tcp://" + listener.Addr().String(), Host: "host-1 é", KV: notes(t).KV},
		slog.New(slog.DiscardHandler))
	for range 20 {
		list(t, l, record("CA1"))
	}
	l.writeCountsAndSign(t.Context())
	until(t, l, allSent)
	end()
	_ = listener.Close()
	wg.Wait()
	close(messages)
	var lines []string
	ids := map[string]int{}
	for m := range messages {
		line, id := checkFrame(t, m)
		lines = append(lines, line)
		ids[id]++
	}
	checktest.True(t, ids["record"] >= 20, `ids["record"] is %v, want >= 20`, ids["record"])
	checktest.True(t, ids["begin"] != 0, `ids["begin"] is 0`)
	checktest.True(t, ids["checkpoint"] != 0, `ids["checkpoint"] is 0`)
	reports, err := Verifier{Keys: []string{f.key.PublicKey()}}.VerifyLines(strings.NewReader(strings.Join(lines, "\n")))
	checktest.MustNoError(t, err, "")
	checktest.MustEqual(t, len(reports), 1, "len(reports)")
	checktest.True(t, len(reports[0].Faults) <= 0, "len(reports[0].Faults) is %v, want <= 0", len(reports[0].Faults))
}

func readFrames(t *testing.T, from io.Reader, to chan<- string) {
	r := bufio.NewReader(from)
	for {
		length, err := r.ReadString(' ')
		if err == io.EOF && length == "" {
			return
		}
		n, bad := strconv.Atoi(strings.TrimSuffix(length, " "))
		if err != nil || bad != nil {
			t.Errorf("no length: %q %v", length, err)
			return
		}
		m := make([]byte, n)
		if _, err := io.ReadFull(r, m); err != nil {
			t.Error(err)
			return
		}
		to <- string(m)
	}
}

// A UDP receiver gets a message in each datagram; one that is too long is cut, and says so.
func TestSyslogOverUDP(t *testing.T) {
	f := newFolder(t)
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	l, _ := f.sending(SendOptions{URL: "syslog+udp://" + conn.LocalAddr().String(), Host: "host-1", KV: notes(t).KV},
		slog.New(slog.DiscardHandler))
	long := record("CA1")
	for range maxIDs {
		long.IDs = append(long.IDs, strings.Repeat("ü", maxText/2))
	}
	list(t, l, record("CA2"), long)
	until(t, l, allSent)
	buf := make([]byte, 64<<10)
	var ids []string
	for {
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			t.Fatal(err)
		}
		if m := string(buf[:n]); strings.HasSuffix(m, cutMark) {
			checktest.True(t, n <= maxDatagram, "%d bytes: n is %v", n, n)
			checktest.True(t, n >= maxDatagram-4, "%d bytes: n is %v", n, n)
			checktest.Equal(t, m, strings.ToValidUTF8(m, "?"), "%d bytes: m", n)
			break
		}
		_, id := checkFrame(t, string(buf[:n]))
		ids = append(ids, id)
	}
	if !slices.Contains(ids, "begin") || !slices.Contains(ids, "record") {
		t.Errorf("%q", ids)
	}
}

// Addresses that cannot be a receiver's are refused, by what is wrong.
func TestReceiversThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		url    string
		secret bool
		want   string
	}{
		{"https://logs.example.com/in?source=understudy", true, ""},
		{"http://127.0.0.1:8088/in", true, ""},
		{"http://10.1.2.3/in", false, ""},
		{"http://logs.internal/in", false, ""}, // its address is looked at when it is known
		{"syslog+tcp://[::1]:601", false, ""},
		{"syslog+udp://logs:514", false, ""},
		{"syslog+tls://logs.example.com:6514", false, ""},
		{"syslog+tls://logs.example.com", false, "write syslog+tls://HOST:PORT"},
		{"http://8.8.8.8/in", false, "write https://"},
		{"https://169.254.169.254/in", false, "link-local or metadata"},
		{"https://ada:secret@logs.example.com/", false, "without credentials"},
		{"syslog+tcp://logs", false, "write syslog+tcp://HOST:PORT"},
		{"syslog+udp://logs:514/path", false, "write syslog+udp://HOST:PORT"},
		{"syslog+udp://logs:514", true, "syslog has no place for a secret"},
		{"ftp://logs", false, `"ftp"; write https`},
		{"logs.example.com", false, "write https://HOST/PATH"},
	} {
		err := CheckSend(c.url, c.secret)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.url, err)
		}
	}
	// What a name leads to is looked at when it is connected to.
	plain := newCollector("http://198.51.100.7/secret-path", true, understudy.Secret{})
	{
		err := plain.take(t.Context(), [][]byte{[]byte("{}")})
		checktest.MustTrue(t, err != nil, "err is nil")
		checktest.Contains(t, err.Error(), errPublicHTTP.Error(), "err.Error()")
		checktest.Lacks(t, err.Error(), "secret-path", "err.Error()")
	}
}
