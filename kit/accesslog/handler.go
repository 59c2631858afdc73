// Handler: the log around any http.Handler; and request ids.

package accesslog

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// IDs makes request ids that no other process makes: a random beginning and a
// counter. The zero value is not usable. It is safe for concurrent use.
type IDs struct {
	prefix string
	last   atomic.Uint64
	made   sync.Pool // of *madeIDs
}

// madeIDs are ids that were made together, in one text.
type madeIDs struct {
	ids  [64]string
	used int
}

// NewIDs makes a source of ids.
func NewIDs() *IDs {
	g := &IDs{prefix: rand.Text()[:10] + "-"}
	g.made.New = func() any { return g.more() }
	return g
}

func (g *IDs) more() *madeIDs {
	m := &madeIDs{}
	last := g.last.Add(uint64(len(m.ids)))
	text, ends := make([]byte, 0, 24*len(m.ids)), [len(m.ids)]int{}
	for i := range m.ids {
		text = strconv.AppendUint(append(text, g.prefix...), last-uint64(len(m.ids)-1-i), 36)
		ends[i] = len(text)
	}
	all, from := string(text), 0
	for i, end := range ends {
		m.ids[i], from = all[from:end], end
	}
	return m
}

// Next is a new id, as the value of a header field: a slice without spare capacity, which
// must not be changed.
func (g *IDs) Next() []string {
	m := g.made.Get().(*madeIDs)
	id := m.ids[m.used : m.used+1 : m.used+1]
	if m.used++; m.used < len(m.ids) {
		g.made.Put(m)
	}
	return id
}

// MaxID is how long an id given by a caller may be.
const MaxID = 64

// ValidID reports whether an id from a caller may be used unchanged: 1 to MaxID
// letters, digits and -._~+/=@: alone.
func ValidID(id string) bool {
	if id == "" || len(id) > MaxID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '.', c == '_', c == '~', c == '+', c == '/', c == '=', c == '@', c == ':':
		default:
			return false
		}
	}
	return true
}

// plainID matches ids whose digits are plainly no phone number: a UUID, 16 or 32 hex digits, a ULID, one of IDs.
var plainID = regexp.MustCompile(`^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|([0-9a-fA-F]{16}){1,2}|` +
	`[0-7][0-9A-HJKMNP-TV-Z]{25}|[2-7A-Z]{10}-[0-9a-z]{1,13})$`)

// MayHoldNumber reports whether an id from a caller may hold a phone number, whatever separates its digits: it has
// ten digits or more, or seven behind a plus or 00 with no letter between them. An id of a form that is made by
// machines, with two letters or more, holds none.
func MayHoldNumber(id string) bool {
	digits, letters, behind, found := 0, 0, -1, false // behind: digits behind a plus or 00; -1: there was none
	for i := range len(id) {
		switch c := id[i]; {
		case c >= '0' && c <= '9':
			digits++
			if behind >= 0 {
				behind++
			} else if c == '0' && i > 0 && id[i-1] == '0' && (i == 1 || id[i-2] < '0' || id[i-2] > '9') {
				behind = 0
			}
		case c == '+':
			behind = 0
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			letters++
			behind = -1
		}
		found = found || behind >= numberDigits || digits >= 10
	}
	return found && (letters < 2 || !plainID.MatchString(id))
}

// Handler logs every request of next and gives it an id in X-Request-Id: the caller's
// own when it is valid. next adds what it alone knows to the line of Of.
func (l *Log) Handler(next http.Handler, now func() time.Time) http.Handler {
	ids := NewIDs()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := &Line{At: now(), ID: r.Header.Get("X-Request-Id"), Method: r.Method, Target: r.RequestURI}
		if !ValidID(line.ID) {
			line.ID = ids.Next()[0]
		}
		w.Header().Set("X-Request-Id", line.ID)
		rec := &recorder{ResponseWriter: w, line: line}
		defer func() {
			if line.Status == 0 {
				line.Status = http.StatusOK
			}
			if line.Status == http.StatusUnauthorized || line.Status == http.StatusTooManyRequests {
				line.Peer = PeerOf(r)
			}
			line.Took = now().Sub(line.At)
			l.Add(line)
		}()
		next.ServeHTTP(rec, r.WithContext(context.WithValue(r.Context(), lineKey{}, line)))
	})
}

// PeerOf is the address a request came from, without its port.
func PeerOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

type lineKey struct{}

// Of is the line of a request that passed Handler, to which its caller, its outcome and
// upstream's time are added. Without Handler the line is not written anywhere. One
// goroutine may write to it, until the handler returns.
func Of(ctx context.Context) *Line {
	if line, ok := ctx.Value(lineKey{}).(*Line); ok {
		return line
	}
	return &Line{}
}

// recorder sees status and size go by.
type recorder struct {
	http.ResponseWriter
	line *Line
}

// Unwrap lets http.ResponseController reach the writer below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader notes the first final status.
func (r *recorder) WriteHeader(status int) {
	if r.line.Status == 0 && status >= 200 {
		r.line.Status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write counts what is sent.
func (r *recorder) Write(p []byte) (int, error) {
	if r.line.Status == 0 {
		r.line.Status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.line.Bytes += int64(n)
	return n, err
}
