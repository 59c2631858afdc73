// Content: bytes that are no JSON, with ranges and conditions.
package slowapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
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

// loop is a head and then a sample over and over, to a size.
type loop struct {
	head, sample []byte
	shift        int64 // where in the sample it begins
	size, at     int64
}

// Read copies the next bytes.
func (c *loop) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && c.at < c.size {
		next := c.head[min(c.at, int64(len(c.head))):]
		if len(next) == 0 {
			next = c.sample[(c.at-int64(len(c.head))+c.shift)%int64(len(c.sample)):]
		}
		step := copy(p[n:], next[:min(int64(len(next)), c.size-c.at)])
		n, c.at = n+step, c.at+int64(step)
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Seek goes to another place.
func (c *loop) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.size
	}
	if offset < 0 {
		return 0, errors.New("slowapi: seek before the beginning")
	}
	c.at = offset
	return offset, nil
}

// splitEnding takes the last dot and what stands behind it off a path's last part.
func splitEnding(path string) (name, ending string) {
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 || dot < strings.LastIndexByte(path, '/') {
		return path, ""
	}
	return path[:dot], path[dot:]
}
