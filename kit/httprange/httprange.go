// Content: sends the bytes of one file or body to an HTTP client.

// Package httprange sends audio, images and other files to HTTP clients. It sends a whole file or one range of
// it, from a file or from a stream, and exactly as many bytes as the header promised.
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

// Content is the file or body to send. Either File or Body is set.
type Content struct {
	// File has all bytes. Ranges and conditions of the request are evaluated on it.
	File io.ReadSeeker

	// Body is the part that another server has selected. Status is 200 or 206, Size the number of bytes or -1
	// if it is unknown, and Range the Content-Range.
	Body   io.Reader
	Status int
	Size   int64
	Range  string

	Type     string // the media type; "" means application/octet-stream
	ETag     string // the entity tag with its quotes, or ""
	Modified time.Time
	// Shown are the media types that a browser may display: complete types ("image/png") or first halves ("audio/").
	// Content of any other type is sent as a download.
	Shown []string
	// Deadline returns the time by which the client must have received the next 64 KiB. If Deadline is nil, there is no
	// limit.
	Deadline func() time.Time
}

// Sent says what was sent. Status is 0 if nothing was sent.
type Sent struct {
	Status int
	Bytes  int64
}

var (
	// ErrRange means that the requested range lies outside the content. Nothing was sent, and Content-Range
	// gives the size.
	ErrRange = errors.New("httprange: the range lies outside")
	// ErrCut means that the header was sent but not the whole body. The caller must close the connection, because
	// otherwise the client takes the part for the whole body.
	ErrCut = errors.New("httprange: cut")
)

// Content-Security-Policy values for a response that a browser opens as a page. Content of a type in Shown may be
// displayed. Content of any other type may do nothing.
const (
	shownPolicy = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'"
	savedPolicy = "default-src 'none'; sandbox"
)

// Send sends a response to a GET or HEAD request. The caller sets other headers before. Only a single
// well-formed range of a Range header counts (see Range). Send returns ErrRange or ErrCut, joined with the
// cause.
func Send(w http.ResponseWriter, r *http.Request, c Content) (Sent, error) {
	out := &sender{ResponseWriter: w, deadline: c.Deadline, control: http.NewResponseController(w)}
	// A server's read timeout would also end a response that takes longer. Not every writer has this timeout.
	_ = out.control.SetReadDeadline(time.Time{})
	setHeaders(w.Header(), c)
	if c.File == nil {
		err := out.stream(r, c)
		return out.sent, err
	}
	one := Range(r.Header)
	if size, err := c.File.Seek(0, io.SeekEnd); err == nil && size == 0 { // an empty file has no last bytes, so the range is ignored
		one = ""
	}
	if one != r.Header.Get("Range") || r.Method == http.MethodHead {
		r = r.Clone(r.Context())
		r.Header.Del("Range")
		if one != "" && r.Method != http.MethodHead {
			r.Header.Set("Range", one) // http.ServeContent reads this value in the same way as the function Range
		}
	}
	http.ServeContent(out, r, "", c.Modified, c.File)
	switch {
	case out.outside:
		return out.sent, ErrRange
	case out.isIncomplete(r):
		return out.sent, fmt.Errorf("%w: after %d bytes", ErrCut, out.sent.Bytes)
	}
	return out.sent, nil
}

// setHeaders sets the headers that do not depend on the request.
func setHeaders(h http.Header, c Content) {
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

// mediaType returns a media type without its parameters, or "" if text is not a media type.
func mediaType(text string) string {
	kind, _, err := mime.ParseMediaType(text)
	if err != nil || strings.Count(kind, "/") != 1 || strings.HasPrefix(kind, "/") || strings.HasSuffix(kind, "/") {
		return ""
	}
	return kind
}

// Range returns the value of a Range header that requests a single range of bytes, in a form that http.ServeContent
// reads correctly. A request for the last 0 bytes becomes a range outside the content. A position beyond an int64
// becomes the largest position. Range returns "" if the header is missing or malformed, has another unit or several
// ranges, or if If-Range occurs twice. For these the response with all bytes is valid (RFC 9110, 14.2). Several ranges
// are refused because they would let a client request the same bytes many times.
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
		return "bytes=" + largestPosition + "-"
	}
	if first != "" && last != "" && (len(first) > len(last) || len(first) == len(last) && first > last) {
		return ""
	}
	return "bytes=" + first + "-" + last
}

// largestPosition is a position beyond the end of every content.
const largestPosition = "999999999999999999"

// position returns the digits without leading zeros, at most largestPosition. It returns "" for "". ok is false
// if the text contains anything but digits.
func position(text string) (digits string, ok bool) {
	if strings.Trim(text, "0123456789") != "" {
		return "", false
	}
	digits = strings.TrimLeft(text, "0")
	switch {
	case digits == "" && text != "":
		digits = "0"
	case len(digits) > len(largestPosition):
		digits = largestPosition
	}
	return digits, true
}
