// Answer: responses with a status and a body, errors, and content that can be requested in ranges.

// Package format writes responses and parses queries in Twilio's formats.
package format

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Answer is the response to a request, before faults and compression are applied.
type Answer struct {
	Status int
	Body   []byte
	Header map[string]string
	// Content replaces Body if it is not nil.
	Content *Content
	Plain   bool // whether the response must not be compressed
}

// Refuse returns an error response in Twilio's format. code is Twilio's error code.
func Refuse(status, code int, message string) *Answer {
	body := fmt.Appendf(nil, `{"code":%d,"message":%s,"more_info":"https://www.twilio.com/docs/errors/%[1]d","status":%[3]d}`, code,
		AppendText(nil, message), status)
	return &Answer{Status: status, Body: body}
}

// NewInvalid returns the error response for an invalid parameter.
func NewInvalid(message string) *Answer { return Refuse(http.StatusBadRequest, 20001, message) }

// NewNotFound returns the error response for a path that does not exist.
func NewNotFound(path string) *Answer {
	return Refuse(http.StatusNotFound, 20404, "The requested resource "+path+" was not found")
}

// RefusalFor returns Twilio's error response for a status.
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

// The beginnings of the paths of Twilio's API.
const (
	ApiVersion = "2010-04-01"
	Version    = "/" + ApiVersion
)

// MonitorVersion begins the paths of Twilio's Monitor API.
const MonitorVersion = "/v1"

// Content is an audio or a picture.
type Content struct {
	io.ReadSeeker
	Sort     string // the media type, for the header Content-Type
	Tag      string // the ETag including its quotes
	Modified time.Time
}

// Serve sends the content, or the range of it that the client has requested.
func (c Content) Serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", c.Sort)
	w.Header().Set("ETag", c.Tag)
	http.ServeContent(w, r, "", c.Modified, c)
}

// Answer returns the response that Serve would send, so that faults can change it. For a HEAD request it also
// contains the body, whose length is needed.
func (c Content) Answer(r *http.Request) Answer {
	held := recordedAnswer{header: http.Header{}}
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

// recordedAnswer is an http.ResponseWriter that keeps the response in memory.
type recordedAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the header of the response.
func (h *recordedAnswer) Header() http.Header { return h.header }

// WriteHeader records the first status.
func (h *recordedAnswer) WriteHeader(status int) {
	h.status = cmp.Or(h.status, status)
}

// Write records the bytes.
func (h *recordedAnswer) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return h.body.Write(p)
}
