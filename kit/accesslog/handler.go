// Handler: logs the requests of any http.Handler, and generates request ids.

package accesslog

import (
	"bufio"
	"cmp"
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

// IDGenerator generates request ids that are unique across processes: a random prefix and a counter. Create it
// with NewIDGenerator. It is safe for concurrent use.
type IDGenerator struct {
	prefix  string
	last    atomic.Uint64
	batches sync.Pool // a pool of batches of ids (*idBatch)
}

// idBatch is a batch of ids that share one string.
type idBatch struct {
	ids  [64]string
	used int
}

// NewIDGenerator returns a generator with a new random prefix.
func NewIDGenerator() *IDGenerator {
	g := &IDGenerator{prefix: rand.Text()[:10] + "-"}
	g.batches.New = func() any { return g.newBatch() }
	return g
}

func (g *IDGenerator) newBatch() *idBatch {
	m := &idBatch{}
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

// Next returns a new id as the value of a header field. The slice has no spare capacity and must not be changed.
func (g *IDGenerator) Next() []string {
	m := g.batches.Get().(*idBatch)
	id := m.ids[m.used : m.used+1 : m.used+1]
	if m.used++; m.used < len(m.ids) {
		g.batches.Put(m)
	}
	return id
}

// MaxID is the maximum length in bytes of an id that a client may choose.
const MaxID = 64

// IsValidID reports whether an id from a client may be used unchanged. Such an id has 1 to MaxID characters:
// ASCII letters, digits and -._~+/=@:
func IsValidID(id string) bool {
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

// plainID matches ids whose digits are clearly not a phone number: a UUID, 16 or 32 hex digits, a ULID, or an
// id of IDGenerator.
var plainID = regexp.MustCompile(`^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|([0-9a-fA-F]{16}){1,2}|` +
	`[0-7][0-9A-HJKMNP-TV-Z]{25}|[2-7A-Z]{10}-[0-9a-z]{1,13})$`)

// CanContainPhoneNumber reports whether an id from a client may contain a phone number, whatever separates its
// digits. That is the case for ten digits or more, or for seven digits after a plus or 00 with no letter
// between them. An id in a format that machines generate, with at least two letters, contains no phone number.
func CanContainPhoneNumber(id string) bool {
	if digitsIn(id) < numberDigits {
		return false
	}
	digits, letters, behind, found := 0, 0, -1, false // behind is the number of digits after a plus or 00, or -1 before the first plus or 00
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

// Handler returns a handler that logs every request of next. It sets X-Request-Id to the client's own id if
// that is valid, else to a new id. The next handler adds the caller and other details to the line that LineOf
// returns.
func (l *Log) Handler(next http.Handler, now func() time.Time) http.Handler {
	ids := NewIDGenerator()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := &Line{At: now(), ID: r.Header.Get("X-Request-Id"), Method: r.Method, Target: r.RequestURI, Peer: PeerOf(r), Client: ClientOf(r)}
		if !IsValidID(line.ID) {
			line.ID = ids.Next()[0]
		}
		w.Header().Set("X-Request-Id", line.ID)
		rec := &recorder{ResponseWriter: w, line: line}
		defer func() {
			line.Status = cmp.Or(line.Status, http.StatusOK)
			line.Took = now().Sub(line.At)
			l.Add(line)
		}()
		next.ServeHTTP(rec, r.WithContext(context.WithValue(r.Context(), lineKey{}, line)))
	})
}

// PeerOf returns the IP address that a request was sent from, without its port.
func PeerOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

type lineKey struct{}

// LineOf returns the log line of a request that passed Handler. The handler adds the caller, the outcome and
// the time of the upstream. For a request that did not pass Handler the returned line is written nowhere. Only
// one goroutine may write to the line, and only until the handler returns.
func LineOf(ctx context.Context) *Line {
	if line, ok := ctx.Value(lineKey{}).(*Line); ok {
		return line
	}
	return &Line{}
}

// recorder records the status and the size of a response.
type recorder struct {
	http.ResponseWriter
	line *Line
}

// Unwrap returns the wrapped writer. http.ResponseController needs it.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader records the first final status.
func (r *recorder) WriteHeader(status int) {
	if r.line.Status == 0 && status >= 200 {
		r.line.Status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Hijack hands over the connection to a handler that writes the response itself: the status is 101, or 200 of a tunnel by CONNECT.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err == nil && r.line.Method != http.MethodConnect {
		r.line.Status = http.StatusSwitchingProtocols
	}
	return conn, buffer, err
}

// Write counts the bytes that are sent.
func (r *recorder) Write(p []byte) (int, error) {
	r.line.Status = cmp.Or(r.line.Status, http.StatusOK)
	n, err := r.ResponseWriter.Write(p)
	r.line.Bytes += int64(n)
	return n, err
}
