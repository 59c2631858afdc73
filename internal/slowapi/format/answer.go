// Answers: status and body, the errors, and content that is no JSON, with ranges and conditions.

// Package format writes answers and reads queries as Twilio does.
package format

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Answer is what a request gets, before faults and compression.
type Answer struct {
	Status int
	Body   []byte
	Header map[string]string
	// Content, when not nil, stands in place of the body.
	Content *Content
	Plain   bool // never compressed
}

// Refuse returns an error in Twilio's shape, with a status and Twilio's code.
func Refuse(status, code int, message string) *Answer {
	body := fmt.Appendf(nil, `{"code":%d,"message":%s,"more_info":"https://www.twilio.com/docs/errors/%[1]d","status":%[3]d}`, code,
		AppendText(nil, message), status)
	return &Answer{Status: status, Body: body}
}

// Invalid refuses a parameter.
func Invalid(message string) *Answer { return Refuse(http.StatusBadRequest, 20001, message) }

// NotFound is the error of a path that does not exist.
func NotFound(path string) *Answer {
	return Refuse(http.StatusNotFound, 20404, "The requested resource "+path+" was not found")
}

// RefusalFor is the error Twilio gives with a status.
func RefusalFor(status int) *Answer {
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
	return Refuse(status, code, message)
}

// Where paths of the API begin.
const (
	ApiVersion = "2010-04-01"
	Version    = "/" + ApiVersion
)

// MonitorVersion begins its paths.
const MonitorVersion = "/v1"

// Content is something to hear or see.
type Content struct {
	io.ReadSeeker
	Sort     string // Content-Type
	Tag      string // ETag, quoted
	Modified time.Time
}

// Serve writes the content, or the part of it that is asked for.
func (c Content) Serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", c.Sort)
	w.Header().Set("ETag", c.Tag)
	http.ServeContent(w, r, "", c.Modified, c)
}

// Answer is what serve would write, held whole, for faults to work on. To HEAD
// it holds the body too, for its length.
func (c Content) Answer(r *http.Request) Answer {
	held := heldAnswer{header: http.Header{}}
	get := r.Clone(r.Context())
	if r.Method == http.MethodHead {
		get.Method = http.MethodGet
	}
	c.Serve(&held, get)
	a := Answer{Status: held.status, Body: held.body.Bytes(), Header: map[string]string{}, Plain: true}
	for name := range held.header {
		if name != "Content-Length" {
			a.Header[name] = held.header.Get(name)
		}
	}
	return a
}

// heldAnswer is an http.ResponseWriter that holds what is written.
type heldAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is the header of the answer.
func (h *heldAnswer) Header() http.Header { return h.header }

// WriteHeader keeps the first status.
func (h *heldAnswer) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

// Write keeps the bytes.
func (h *heldAnswer) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return h.body.Write(p)
}
