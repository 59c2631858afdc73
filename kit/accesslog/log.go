// Log: collects one line for each request and writes the lines in batches.

// Package accesslog writes one line for each request, as logfmt or as JSON. Requests never wait for the disk.
package accesslog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"understudy/kit/logline"
)

// Line is the log line of one request. Empty strings and zero durations are left out.
type Line struct {
	At             time.Time // when the request was received
	ID             string
	Trace          string // the id of the client's trace, in hexadecimal; "" if it sent none
	Method         string
	Target         string // the target as requested; it is logged without its values, see AppendTarget
	RedactedTarget string // the result of AppendTarget for Target, or "" if it was not computed yet
	Status         int
	Bytes          int64 // the number of body bytes sent
	Caller         string
	Outcome        string // how the response was made, such as a cache hit
	Took           time.Duration
	Upstream       time.Duration
	Peer           string // the IP address that the request was sent from
	Client         Client
	Person         string // the caller's name, if the caller is a person who has signed in
	Skip           bool   // the line is not written
}

// Log collects lines in memory. Run writes them at least every FlushInterval. While MaxPending bytes are
// waiting, further lines are dropped and counted. Log is safe for concurrent use. A nil Log drops all lines.
type Log struct {
	w io.Writer
	// IsID reports whether a text is an id, so that its digits are not a phone number. If IsID is nil, no text
	// is an id. Set it before the first line.
	IsID func(text string) bool
	json atomic.Bool // whether a line is a JSON object

	mu      sync.Mutex
	pending []byte
	dropped int64

	writing sync.Mutex // held while writing to w; it also protects spare
	spare   []byte
	full    chan struct{}
}

// FlushInterval is the longest time between two writes of the collected lines.
const FlushInterval = 200 * time.Millisecond

// MaxPending is the maximum size in bytes of the lines that are not yet written.
const MaxPending = 1 << 20

// flushSize is the size in bytes of the collected lines at which a write begins before FlushInterval is over. Each write wakes other
// threads, which cost more than the write if there are many.
const flushSize = 256 << 10

// New returns a log that writes to w.
func New(w io.Writer) *Log { return &Log{w: w, full: make(chan struct{}, 1)} }

// SetJSON sets whether the next lines are JSON objects in place of logfmt.
func (l *Log) SetJSON(on bool) {
	if l != nil {
		l.json.Store(on)
	}
}

// Add adds a line to the log. It never waits for the writer.
func (l *Log) Add(line *Line) {
	if l == nil || line.Skip {
		return
	}
	encoded := line.encode(l.json.Load(), l.IsID)
	l.mu.Lock()
	if len(l.pending) >= MaxPending {
		l.dropped++
	} else {
		l.pending = encoded.AppendTo(l.pending)
	}
	n := len(l.pending)
	l.mu.Unlock()
	if n >= flushSize {
		select {
		case l.full <- struct{}{}:
		default:
		}
	}
}

// Run writes the collected lines until ctx ends, and the remaining lines then. When a write fails, Run counts
// its lines as dropped and goes on. At the end it returns the first error. os.ErrDeadlineExceeded only means
// that no process reads the log, so Run does not return it.
func (l *Log) Run(ctx context.Context) error {
	tick := time.NewTicker(FlushInterval)
	defer tick.Stop()
	var first error
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		case <-l.full:
		}
		if err := l.Flush(); first == nil {
			first = err
		}
	}
	return first
}

// Flush writes the lines collected so far.
func (l *Log) Flush() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	out, dropped, asJSON := l.pending, l.dropped, l.json.Load()
	l.pending, l.dropped = l.spare[:0], 0
	l.mu.Unlock()
	switch {
	case dropped > 0 && asJSON:
		out = fmt.Appendf(out, "{\"dropped\":%d}\n", dropped)
	case dropped > 0:
		out = fmt.Appendf(out, "dropped=%d\n", dropped)
	}
	l.spare = out[:0]
	if len(out) == 0 {
		return nil
	}
	n, err := l.w.Write(out)
	if err == nil {
		return nil
	}
	l.mu.Lock()
	l.dropped += int64(bytes.Count(out[min(n, len(out)):], []byte{'\n'}))
	l.mu.Unlock()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil // no process reads the log; the lost lines are counted
	}
	return fmt.Errorf("accesslog: %w", err)
}

// AppendTarget appends a request target in the form that this log writes.
func (l *Log) AppendTarget(dst []byte, target string) []byte {
	if l == nil {
		return dst
	}
	return AppendTarget(dst, target, l.IsID)
}

// The fields of a line.
var (
	keyID, keyTrace, keyMethod, keyPath = logline.NewKey("id"), logline.NewKey("trace"), logline.NewKey("method"), logline.NewKey("path")
	keyStatus, keyBytes                 = logline.NewKey("status"), logline.NewKey("bytes")
	keyCaller, keyHow                   = logline.NewKey("caller"), logline.NewKey("how")
	keyDur, keyDurMillis                = logline.NewKey("dur"), logline.NewKey("dur_ms")
	keyUpstream, keyUpstreamMillis      = logline.NewKey("upstream"), logline.NewKey("upstream_ms")
	keyPeer, keyHost, keyAgent          = logline.NewKey("peer"), logline.NewKey("host"), logline.NewKey("agent")
	keyPerson                           = logline.NewKey("person")
)

// encode returns the line in logfmt or as a JSON object (RFC 8259) with durations in milliseconds.
func (line *Line) encode(asJSON bool, known func(string) bool) logline.Line {
	format, dur, upstream, unit := logline.Logfmt, keyDur, keyUpstream, "ms"
	if asJSON {
		format, dur, upstream, unit = logline.JSON, keyDurMillis, keyUpstreamMillis, ""
	}
	var buf [256]byte
	path := append(line.appendPath(append(buf[:0], '"'), known), '"')
	if asJSON && bytes.Contains(path, []byte(`\x`)) { // logfmt escapes a byte as \x0a, JSON as \u000a
		path = bytes.ReplaceAll(path, []byte(`\x`), []byte(`\u00`))
	}
	l := logline.NewLine(format, line.At).Text(keyID, RedactNumber(line.ID)).Text(keyTrace, RedactTrace(line.Trace)).
		Text(keyMethod, line.RedactedMethod()).EncodedValue(keyPath, path).Int64(keyStatus, int64(line.Status)).Int64(keyBytes, line.Bytes).
		Text(keyCaller, line.Caller).Text(keyHow, line.Outcome).EncodedValue(dur, appendMillis(buf[:0], line.Took, unit))
	if line.Upstream > 0 {
		l = l.EncodedValue(upstream, appendMillis(buf[:0], line.Upstream, unit))
	}
	return l.Text(keyPeer, line.Peer).Text(keyHost, line.Client.Host).Text(keyAgent, line.Client.Agent).
		Text(keyPerson, line.Person)
}

// RedactNumber returns a value that the client chose, or … if the value may contain a phone number.
func RedactNumber(value string) string {
	if CanContainPhoneNumber(value) {
		return redacted
	}
	return value
}

// RedactTrace returns the id of a trace, or … if it has too few letters to differ from a phone number.
func RedactTrace(id string) string {
	letters := 0
	for i := range len(id) {
		if c := id[i]; 'a' <= c && c <= 'f' {
			letters++
		}
		if letters == 2 {
			return id
		}
	}
	if id == "" {
		return ""
	}
	return redacted
}

// RedactedMethod returns the method, or … if it may contain a phone number. Seven digits are enough here, because a
// method is never an id.
func (line *Line) RedactedMethod() string {
	if line.Method == "GET" || line.Method == "HEAD" || line.Method == "POST" {
		return line.Method
	}
	if countPhoneDigits(line.Method, nil) >= numberDigits {
		return redacted
	}
	return RedactNumber(line.Method)
}

// appendPath appends the redacted target.
func (line *Line) appendPath(dst []byte, known func(string) bool) []byte {
	if line.RedactedTarget != "" {
		return append(dst, line.RedactedTarget...)
	}
	return AppendTarget(dst, line.Target, known)
}

// appendMillis appends a duration in milliseconds, with three decimals.
func appendMillis(dst []byte, d time.Duration, unit string) []byte {
	us := max(d.Microseconds(), 0)
	dst = strconv.AppendInt(dst, us/1000, 10)
	return append(append(dst, '.', byte('0'+us/100%10), byte('0'+us/10%10), byte('0'+us%10)), unit...)
}

// escaped marks the bytes that need an escape inside quotes.
var escaped = func() (marks [256]bool) {
	for c := range marks {
		marks[c] = c < ' ' || c >= 0x7f || c == '"' || c == '\\'
	}
	return marks
}()

// appendSafe appends text that will be inside quotes. It escapes quotes, line ends and control characters, so that a
// request can neither forge a line nor control the terminal that shows the log.
func appendSafe(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	start := 0
	for i := range len(text) {
		c := text[i]
		if !escaped[c] {
			continue
		}
		dst = append(dst, text[start:i]...)
		start = i + 1
		if c == '"' || c == '\\' {
			dst = append(dst, '\\', c)
		} else {
			dst = append(dst, '\\', 'x', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, text[start:]...)
}
