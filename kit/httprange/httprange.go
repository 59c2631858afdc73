// Content: the bytes of one thing on their way to an HTTP client.

// Package httprange sends audio, images and the like to HTTP clients: whole or
// one range of it, from a file or as it comes, never more or less than was
// said.
package httprange

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Content is one thing to send. Either File or Body is set.
type Content struct {
	// File is all of it: ranges and conditions of the request are met here.
	File io.ReadSeeker

	// Body is a part that another server has cut out: Status is 200 or 206, Size the number
	// of bytes (-1: not known), Range its Content-Range.
	Body   io.Reader
	Status int
	Size   int64
	Range  string

	Type     string // its media type; "" = application/octet-stream
	ETag     string // quoted; "" = none
	Modified time.Time
	// Shown are the types that may be shown in place, whole ("image/png") or
	// their first halves ("audio/"); any other is offered for download.
	Shown []string
	// Deadline is when the client must have taken the next piece; nil: never.
	Deadline func() time.Time
}

// Sent is what went out: Status 0 when nothing did.
type Sent struct {
	Status int
	Bytes  int64
}

var (
	// ErrRange: the range asked for lies outside; nothing was sent, and
	// Content-Range says how much there is.
	ErrRange = errors.New("httprange: the range lies outside")
	// ErrCut: the header went out and not all of what it promised. The
	// connection must be cut, or the client takes a part for the whole.
	ErrCut = errors.New("httprange: cut")
)

// What a browser may do with an answer that it opens as a page: show it or, for a type
// that may not be shown, nothing at all.
const (
	shownPolicy = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'"
	savedPolicy = "default-src 'none'; sandbox"
)

// Send answers a GET or HEAD. Other headers must have been set. Of a Range
// header only one well-formed range counts (see Range). Errors are ErrRange and
// ErrCut, the cause beside it.
func Send(w http.ResponseWriter, r *http.Request, c Content) (Sent, error) {
	out := &sender{ResponseWriter: w, deadline: c.Deadline, control: http.NewResponseController(w)}
	// A server's limit on reading a request also ends an answer that takes
	// longer; not every writer has one to lift.
	_ = out.control.SetReadDeadline(time.Time{})
	head(w.Header(), c)
	if c.File == nil {
		err := out.stream(r, c)
		return out.sent, err
	}
	one := Range(r.Header)
	if size, err := c.File.Seek(0, io.SeekEnd); err == nil && size == 0 {
		one = "" // nothing has no last bytes
	}
	if one != r.Header.Get("Range") || r.Method == http.MethodHead {
		r = r.Clone(r.Context())
		r.Header.Del("Range")
		if one != "" && r.Method != http.MethodHead {
			r.Header.Set("Range", one) // as it is read here, and no other way
		}
	}
	http.ServeContent(out, r, "", c.Modified, c.File)
	switch {
	case out.outside:
		return out.sent, ErrRange
	case out.missing(r):
		return out.sent, fmt.Errorf("%w: after %d bytes", ErrCut, out.sent.Bytes)
	}
	return out.sent, nil
}

// head sets the headers that do not depend on the request.
func head(h http.Header, c Content) {
	kind := mediaType(c.Type)
	switch {
	case kind == "":
		h.Set("Content-Type", "application/octet-stream")
	default:
		h.Set("Content-Type", c.Type)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", shownPolicy)
	if !slices.ContainsFunc(c.Shown, func(s string) bool { return s == kind || strings.HasSuffix(s, "/") && strings.HasPrefix(kind, s) }) {
		h.Set("Content-Security-Policy", savedPolicy)
		h.Set("Content-Disposition", "attachment")
	}
	if c.ETag != "" {
		h.Set("Etag", c.ETag)
	}
	if !c.Modified.IsZero() {
		h.Set("Last-Modified", c.Modified.UTC().Format(http.TimeFormat))
	}
}

// mediaType is a type less its parameters, "" when it is none.
func mediaType(text string) string {
	kind, _, err := mime.ParseMediaType(text)
	if err != nil || strings.Count(kind, "/") != 1 || strings.HasPrefix(kind, "/") || strings.HasSuffix(kind, "/") {
		return ""
	}
	return kind
}

// Range returns the value of a Range header that asks for one range of bytes, as
// http.ServeContent reads it rightly: the last 0 bytes are a range outside, and a position
// beyond an int64 is the largest one. It returns "" without one, for a malformed one, for
// another unit, when its condition (If-Range) comes twice, or for several ranges. All bytes
// are an answer to those (RFC 9110, 14.2), and several ranges of one file are a way to ask
// for it many times over.
func Range(h http.Header) string {
	lines := h["Range"]
	if len(lines) != 1 || len(h["If-Range"]) > 1 {
		return ""
	}
	rest, ok := strings.CutPrefix(lines[0], "bytes=")
	first, last, dash := strings.Cut(strings.Trim(rest, " \t"), "-")
	first, isFirst := position(first)
	last, isLast := position(last)
	if !ok || !dash || !isFirst || !isLast || first == "" && last == "" {
		return ""
	}
	if first == "" && last == "0" {
		return "bytes=" + largest + "-"
	}
	if first != "" && last != "" && (len(first) > len(last) || len(first) == len(last) && first > last) {
		return ""
	}
	return "bytes=" + first + "-" + last
}

// largest is a position beyond the end of every content.
const largest = "999999999999999999"

// position returns digits without leading zeros, at most largest. ok is false for a text
// with anything else; "" stays "".
func position(text string) (digits string, ok bool) {
	if strings.Trim(text, "0123456789") != "" {
		return "", false
	}
	digits = strings.TrimLeft(text, "0")
	switch {
	case digits == "" && text != "":
		digits = "0"
	case len(digits) > len(largest):
		digits = largest
	}
	return digits, true
}
