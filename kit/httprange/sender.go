// Sender: a response writer that counts bytes, extends the write deadline and suppresses a 416 response.

package httprange

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// pieceSize is the number of bytes that are written with one deadline.
const pieceSize = 64 << 10

type sender struct {
	http.ResponseWriter
	control  *http.ResponseController
	deadline func() time.Time
	sent     Sent
	outside  bool // whether the status was 416, range not satisfiable; then nothing is sent
}

// Unwrap returns the wrapped writer. http.ResponseController needs it.
func (s *sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader sends every status except 416.
func (s *sender) WriteHeader(status int) {
	if status == http.StatusRequestedRangeNotSatisfiable {
		s.outside = true
		return
	}
	s.sent.Status = status
	s.ResponseWriter.WriteHeader(status)
}

// Write writes in pieces of pieceSize, each with a new deadline.
func (s *sender) Write(p []byte) (n int, err error) {
	if s.outside {
		return len(p), nil
	}
	for len(p) > 0 && err == nil {
		s.extend()
		var wrote int
		wrote, err = s.ResponseWriter.Write(p[:min(len(p), pieceSize)])
		n += wrote
		s.sent.Bytes += int64(wrote)
		p = p[wrote:]
	}
	return n, err
}

func (s *sender) extend() {
	if s.deadline != nil {
		_ = s.control.SetWriteDeadline(s.deadline()) // not every writer has a deadline
	}
}

// isIncomplete reports whether a GET request got fewer bytes than its Content-Length.
func (s *sender) isIncomplete(r *http.Request) bool {
	if r.Method == http.MethodHead || s.sent.Status != http.StatusOK && s.sent.Status != http.StatusPartialContent {
		return false
	}
	want, err := strconv.ParseInt(s.Header().Get("Content-Length"), 10, 64)
	return err == nil && s.sent.Bytes != want
}

// stream copies the body to the client as it is received.
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
	buf := make([]byte, pieceSize)
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
		_ = s.control.Flush() // bytes are sent to the client as soon as they are received
	}
}
