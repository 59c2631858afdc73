// Answers: status and body, the errors, the envelopes of pages, and JSON as Twilio writes it.
package slowapi

import (
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"
)

// answer is what a request gets, before faults and compression.
type answer struct {
	status int
	body   []byte
	header map[string]string
	// content, when not nil, stands in place of the body.
	content *content
	plain   bool // never compressed
}

// refusal is an error in Twilio's shape.
type refusal struct {
	status, code int
	message      string
	header       map[string]string
}

func refuse(status, code int, message string) *refusal {
	return &refusal{status: status, code: code, message: message}
}

// invalid refuses a parameter.
func invalid(message string) *refusal { return refuse(http.StatusBadRequest, 20001, message) }

// notFound names the path nobody found.
func notFound(path string) *refusal {
	return refuse(http.StatusNotFound, 20404, "The requested resource "+path+" was not found")
}

// refusalFor is the error Twilio gives with a status.
func refusalFor(status int) *refusal {
	message, known := map[int]string{
		http.StatusUnauthorized:        "Authenticate",
		http.StatusTooManyRequests:     "Too Many Requests",
		http.StatusInternalServerError: "An internal server error has occurred",
	}[status]
	if !known {
		message = http.StatusText(status)
	}
	code := 20000 + status
	if status == http.StatusUnauthorized {
		code = 20003
	}
	return refuse(status, code, message)
}

// answer renders the refusal.
func (r *refusal) answer() answer {
	var o object
	o.open()
	o.number("code", int64(r.code))
	o.text("message", r.message)
	o.text("more_info", "https://www.twilio.com/docs/errors/"+strconv.Itoa(r.code))
	o.number("status", int64(r.status))
	o.close()
	return answer{status: r.status, body: o.b, header: r.header}
}

// envelope is what a page says about itself.
type envelope struct {
	base     string // path and filters, up to and with the ? or the last &
	key      string
	size     int64
	page     int64
	rows     int
	token    string // the request's
	next     string // token of the next page, empty when this is the last
	previous string // token of the previous page, empty when this is the first
}

// uri is where a page of this list stands.
func (e *envelope) uri(page int64, token string) string {
	if token != "" {
		token = "&PageToken=" + encode(token)
	}
	return e.base + "PageSize=" + strconv.FormatInt(e.size, 10) + "&Page=" + strconv.FormatInt(page, 10) + token
}

// own is where this page stands: with the request's token from page 1 on.
func (e *envelope) own() string {
	if e.page == 0 {
		return e.uri(0, "")
	}
	return e.uri(e.page, e.token)
}

// neighbour writes where the page before or after this one stands, or null.
func (e *envelope) neighbour(o *object, name string, page int64, token string) {
	if token == "" {
		o.null(name)
		return
	}
	o.text(name, e.uri(page, token))
}

// list puts rows into the envelope of the 2010 API.
func (e *envelope) list(rows []byte) []byte {
	start, end := int64(0), int64(0)
	if e.rows > 0 {
		start = e.page * e.size
		end = start + int64(e.rows) - 1
	}
	o := object{b: make([]byte, 0, 1024+len(rows))}
	o.open()
	o.number("end", end)
	o.text("first_page_uri", e.uri(0, ""))
	e.neighbour(&o, "next_page_uri", e.page+1, e.next)
	o.number("page", e.page)
	o.number("page_size", e.size)
	e.neighbour(&o, "previous_page_uri", e.page-1, e.previous)
	o.number("start", start)
	o.text("uri", e.own())
	o.array(e.key, rows)
	o.close()
	return o.b
}

// monitor puts rows into the envelope of the Monitor API, whose base is absolute.
func (e *envelope) monitor(rows []byte) []byte {
	o := object{b: make([]byte, 0, 1024+len(rows))}
	o.open()
	o.array(e.key, rows)
	o.name("meta")
	o.open()
	o.text("first_page_url", e.uri(0, ""))
	o.text("key", e.key)
	e.neighbour(&o, "next_page_url", e.page+1, e.next)
	o.number("page", e.page)
	o.number("page_size", e.size)
	e.neighbour(&o, "previous_page_url", e.page-1, e.previous)
	o.text("url", e.own())
	o.close()
	o.close()
	return o.b
}

// array writes a list whose members, with commas between, are written already.
func (o *object) array(name string, members []byte) {
	o.name(name)
	o.b = append(o.b, '[')
	o.b = append(o.b, members...)
	o.b = append(o.b, ']')
}

// object appends the fields of one JSON object, in the order they are given.
type object struct {
	b    []byte
	more bool
}

func (o *object) open()  { o.b = append(o.b, '{'); o.more = false }
func (o *object) close() { o.b = append(o.b, '}'); o.more = true }

// name begins a field.
func (o *object) name(name string) {
	if o.more {
		o.b = append(o.b, ',')
	}
	o.more = true
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

// text writes a string.
func (o *object) text(name, value string) {
	o.name(name)
	o.b = appendText(o.b, value)
}

// textOrNull writes a string, or null when it is empty.
func (o *object) textOrNull(name, value string) {
	if value == "" {
		o.null(name)
		return
	}
	o.text(name, value)
}

func (o *object) null(name string) {
	o.name(name)
	o.b = append(o.b, "null"...)
}

func (o *object) number(name string, value int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, value, 10)
}

func (o *object) truth(name string, value bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, value)
}

// date writes seconds since 1970 in RFC 2822, or null for 0.
func (o *object) date(name string, unix int64) {
	if unix == 0 {
		o.null(name)
		return
	}
	o.name(name)
	o.b = append(o.b, '"')
	o.b = time.Unix(unix, 0).UTC().AppendFormat(o.b, "Mon, 02 Jan 2006 15:04:05 +0000")
	o.b = append(o.b, '"')
}

// appendText appends s as a JSON string. Bytes that are no UTF-8 become U+FFFD.
func appendText[T string | []byte](dst []byte, s T) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			dst = utf8.AppendRune(dst, r)
			i += size
			continue
		}
		i++
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < 0x20 || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
