// Log: one line a request, gathered and written in pieces.

// Package accesslog writes one line a request, as logfmt or as JSON, without making
// requests wait for the disk.
package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"
)

// Line is the log line of one request. Empty strings and zero durations are left out.
type Line struct {
	At       time.Time // when it came
	ID       string
	Method   string
	Target   string // as requested; written with its values taken out, see AppendTarget
	Written  string // what AppendTarget made of Target, where that is known already
	Status   int
	Bytes    int64 // of body sent
	Caller   string
	Peer     string // the address of a sender that gave no right credential
	How      string
	Took     time.Duration
	Upstream time.Duration
}

// Log gathers lines in memory. Run writes them at least every Interval; what
// is gathered meanwhile is bounded by Limit, past which lines are dropped and
// counted. It is safe for concurrent use; a nil Log takes lines and drops them.
type Log struct {
	w io.Writer
	// Known reports whether a text is an id, whose digits are no phone number. nil: no text
	// is. It is set before the first line.
	Known func(text string) bool
	// JSON writes each line as a JSON object. It is set before the first line.
	JSON bool

	mu      sync.Mutex
	pending []byte
	dropped int64

	writing sync.Mutex // held while w is written to; spare is its
	spare   []byte
	full    chan struct{}
}

// Interval is how long a line may wait to be written.
const Interval = 200 * time.Millisecond

// Limit bounds the lines not yet written, in bytes.
const Limit = 1 << 20

// enough is how many bytes make writing begin before the interval is over.
const enough = 64 << 10

// New makes a log that writes to w.
func New(w io.Writer) *Log { return &Log{w: w, full: make(chan struct{}, 1)} }

// Add takes a line. It never waits for the writer.
func (l *Log) Add(line *Line) {
	if l == nil {
		return
	}
	l.mu.Lock()
	if len(l.pending) >= Limit {
		l.dropped++
		l.mu.Unlock()
		return
	}
	if l.JSON {
		l.pending = line.appendJSON(l.pending, l.Known)
	} else {
		l.pending = line.appendTo(l.pending, l.Known)
	}
	n := len(l.pending)
	l.mu.Unlock()
	if n >= enough {
		select {
		case l.full <- struct{}{}:
		default:
		}
	}
}

// Run writes the gathered lines until ctx ends, then the rest. An error of the writer
// loses lines, which are counted. Run goes on and returns the first error at its end.
// os.ErrDeadlineExceeded says that no process reads the log, and is no error.
func (l *Log) Run(ctx context.Context) error {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	var first error
	for {
		select {
		case <-ctx.Done():
			if err := l.Flush(); first == nil {
				first = err
			}
			return first
		case <-tick.C:
		case <-l.full:
		}
		if err := l.Flush(); first == nil {
			first = err
		}
	}
}

// Flush writes what is gathered now.
func (l *Log) Flush() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	out, dropped := l.pending, l.dropped
	l.pending, l.dropped = l.spare[:0], 0
	l.mu.Unlock()
	switch {
	case dropped > 0 && l.JSON:
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

// AppendTarget appends a request target as this log writes it.
func (l *Log) AppendTarget(dst []byte, target string) []byte {
	if l == nil {
		return dst
	}
	return AppendTarget(dst, target, l.Known)
}

// appendTo appends the line in logfmt, its line feed included.
func (line *Line) appendTo(dst []byte, known func(string) bool) []byte {
	dst = appendTime(append(dst, "time="...), line.At)
	dst = appendPair(dst, " id=", unlessNumber(line.ID))
	dst = appendPair(dst, " method=", line.method())
	dst = line.appendPath(append(dst, ` path="`...), known)
	dst = append(dst, `" status=`...)
	dst = strconv.AppendInt(dst, int64(line.Status), 10)
	dst = append(dst, " bytes="...)
	dst = strconv.AppendInt(dst, line.Bytes, 10)
	dst = appendPair(dst, " caller=", line.Caller)
	dst = appendPair(dst, " peer=", line.Peer)
	dst = appendPair(dst, " how=", line.How)
	dst = append(dst, " dur="...)
	dst = appendMillis(dst, line.Took)
	if line.Upstream > 0 {
		dst = append(dst, " upstream="...)
		dst = appendMillis(dst, line.Upstream)
	}
	return append(dst, '\n')
}

// unlessNumber returns a value that the client chose as it may be logged.
func unlessNumber(value string) string {
	if MayHoldNumber(value) {
		return redacted
	}
	return value
}

// method returns the method as it may be logged. It is no id: as many digits as a number has are one.
func (line *Line) method() string {
	if line.Method == "GET" || line.Method == "HEAD" || line.Method == "POST" {
		return line.Method
	}
	if unexplained(line.Method, nil) >= numberDigits {
		return redacted
	}
	return unlessNumber(line.Method)
}

// appendPath appends the target as it may be logged.
func (line *Line) appendPath(dst []byte, known func(string) bool) []byte {
	if line.Written != "" {
		return append(dst, line.Written...)
	}
	return AppendTarget(dst, line.Target, known)
}

// appendJSON appends the line as a JSON object (RFC 8259), its line feed included.
// Durations are in milliseconds.
func (line *Line) appendJSON(dst []byte, known func(string) bool) []byte {
	dst = append(appendTime(append(dst, `{"time":"`...), line.At), '"')
	dst = appendMember(appendMember(dst, "id", unlessNumber(line.ID)), "method", line.method())
	dst = append(dst, `,"path":"`...)
	// logfmt escapes a byte as \x0a, JSON as \u000a.
	dst = append(dst, bytes.ReplaceAll(line.appendPath(nil, known), []byte(`\x`), []byte(`\u00`))...)
	dst = fmt.Appendf(dst, `","status":%d,"bytes":%d`, line.Status, line.Bytes)
	dst = appendMember(dst, "caller", line.Caller)
	dst = appendMember(dst, "peer", line.Peer)
	dst = appendMember(dst, "how", line.How)
	dst = fmt.Appendf(dst, `,"dur_ms":%.3f`, milliseconds(line.Took))
	if line.Upstream > 0 {
		dst = fmt.Appendf(dst, `,"upstream_ms":%.3f`, milliseconds(line.Upstream))
	}
	return append(dst, "}\n"...)
}

func milliseconds(d time.Duration) float64 { return float64(max(d.Microseconds(), 0)) / 1000 }

// appendMember appends a member of a JSON object unless its value is empty.
func appendMember(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	text, _ := json.Marshal(value) // a string has no error
	return append(fmt.Appendf(dst, `,%q:`, name), text...)
}

// appendTime appends a time as RFC 3339 in UTC with milliseconds, at a third of
// the cost of AppendFormat.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = append(appendTwo(appendTwo(dst, year/100), year%100), '-')
	dst = append(appendTwo(dst, int(month)), '-')
	dst = append(appendTwo(dst, day), 'T')
	dst = append(appendTwo(dst, hour), ':')
	dst = append(appendTwo(dst, minute), ':')
	dst = append(appendTwo(dst, second), '.')
	ms := t.Nanosecond() / 1e6
	return append(appendTwo(dst, ms/10), byte('0'+ms%10), 'Z')
}

func appendTwo(dst []byte, n int) []byte { return append(dst, byte('0'+n/10%10), byte('0'+n%10)) }

// appendMillis appends a duration as milliseconds with three decimals.
func appendMillis(dst []byte, d time.Duration) []byte {
	us := max(d.Microseconds(), 0)
	dst = strconv.AppendInt(dst, us/1000, 10)
	return append(dst, '.', byte('0'+us/100%10), byte('0'+us/10%10), byte('0'+us%10), 'm', 's')
}

func appendPair(dst []byte, name, value string) []byte {
	if value == redacted {
		return append(append(dst, name...), redacted...)
	}
	if value == "" {
		return dst
	}
	dst = append(dst, name...)
	for i := range len(value) {
		if c := value[i]; escaped[c] || c == ' ' || c == '=' {
			return append(appendSafe(append(dst, '"'), value), '"')
		}
	}
	return append(dst, value...)
}

// escaped marks bytes that need an escape between quotes.
var escaped = func() (marks [256]bool) {
	for c := range marks {
		marks[c] = c < ' ' || c >= 0x7f || c == '"' || c == '\\'
	}
	return marks
}()

// appendSafe appends text for between quotes: a request cannot end its line,
// its quotes or the terminal it is read on.
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
