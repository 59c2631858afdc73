// Content: bytes that are no JSON, with ranges and conditions.
package format

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

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
