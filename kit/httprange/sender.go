// Sender: a response writer that counts, extends the client's deadline and holds back
// an answer that the caller must write.

package httprange

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// piece is how many bytes go out under one deadline.
const piece = 64 << 10

type sender struct {
	http.ResponseWriter
	control  *http.ResponseController
	deadline func() time.Time
	sent     Sent
	outside  bool // 416: held back
}

// Unwrap lets http.ResponseController reach the writer below.
func (s *sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader passes every status on but 416.
func (s *sender) WriteHeader(status int) {
	if status == http.StatusRequestedRangeNotSatisfiable {
		s.outside = true
		return
	}
	s.sent.Status = status
	s.ResponseWriter.WriteHeader(status)
}

// Write writes piece by piece, each under its own deadline.
func (s *sender) Write(p []byte) (n int, err error) {
	if s.outside {
		return len(p), nil
	}
	for len(p) > 0 && err == nil {
		s.extend()
		var wrote int
		wrote, err = s.ResponseWriter.Write(p[:min(len(p), piece)])
		n += wrote
		s.sent.Bytes += int64(wrote)
		p = p[wrote:]
	}
	return n, err
}

func (s *sender) extend() {
	if s.deadline != nil {
		_ = s.control.SetWriteDeadline(s.deadline()) // not every writer has one
	}
}

// missing reports whether a GET got less than its Content-Length.
func (s *sender) missing(r *http.Request) bool {
	if r.Method == http.MethodHead || s.sent.Status != http.StatusOK && s.sent.Status != http.StatusPartialContent {
		return false
	}
	want, err := strconv.ParseInt(s.Header().Get("Content-Length"), 10, 64)
	return err == nil && s.sent.Bytes != want
}

// stream relays a body as it comes.
func (s *sender) stream(r *http.Request, c Content) error {
	h := s.Header()
	if c.Size >= 0 {
		h.Set("Content-Length", strconv.FormatInt(c.Size, 10))
	}
	if c.Range != "" && c.Status == http.StatusPartialContent {
		h.Set("Content-Range", c.Range)
		h.Set("Accept-Ranges", "bytes")
	}
	s.WriteHeader(c.Status)
	if r.Method == http.MethodHead {
		return nil
	}
	buf := make([]byte, piece)
	for {
		n, err := c.Body.Read(buf)
		if c.Size >= 0 && s.sent.Bytes+int64(n) > c.Size {
			return fmt.Errorf("%w: more came than %d bytes", ErrCut, c.Size)
		}
		if _, werr := s.Write(buf[:n]); werr != nil {
			return fmt.Errorf("%w: %w", ErrCut, werr)
		}
		switch {
		case errors.Is(err, io.EOF) && (c.Size < 0 || s.sent.Bytes == c.Size):
			return nil
		case err != nil:
			return fmt.Errorf("%w: after %d bytes: %w", ErrCut, s.sent.Bytes, err)
		}
		_ = s.control.Flush() // what came is passed on at once
	}
}
