// Content: bytes that are no JSON, with ranges and conditions.
package slowapi

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// content is something to hear or see.
type content struct {
	io.ReadSeeker
	sort     string // Content-Type
	tag      string // ETag, quoted
	modified time.Time
}

// serve writes the content, or the part of it that is asked for.
func (c content) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", c.sort)
	w.Header().Set("ETag", c.tag)
	http.ServeContent(w, r, "", c.modified, c)
}

// answer is what serve would write, held whole, for faults to work on. To HEAD
// it holds the body too, whose length is told.
func (c content) answer(r *http.Request) answer {
	held := heldAnswer{header: http.Header{}}
	get := r.Clone(r.Context())
	if r.Method == http.MethodHead {
		get.Method = http.MethodGet
	}
	c.serve(&held, get)
	a := answer{status: held.status, body: held.body.Bytes(), header: map[string]string{}, plain: true}
	for name := range held.header {
		if name != "Content-Length" {
			a.header[name] = held.header.Get(name)
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

func (h *heldAnswer) Header() http.Header { return h.header }

func (h *heldAnswer) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

func (h *heldAnswer) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return h.body.Write(p)
}
