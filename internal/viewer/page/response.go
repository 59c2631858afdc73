// Responses: how a page is sent, as a whole or in pieces.

package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"understudy/internal/viewer/plan"
)

// stream is a response whose first bytes have been sent.
type stream struct {
	zip *packer // compresses the response; nil if it is not compressed
}

// sendHead sends the head of a page before the content is known. So the status is 200 even if the page later shows an error.
func (q *Exchange) sendHead() error {
	buf := q.V.pages.buffers.Get().(*bytes.Buffer)
	buf.Reset()
	defer q.V.pages.buffers.Put(buf)
	where, title := "list", "Search"
	if q.Kind != nil {
		title = plan.UpperFirst(q.Kind.Spec.Title)
	}
	switch {
	case q.R.URL.Path == "/search":
		where = "search" // the head of a search page has another search box
	case q.Kind == nil || q.R.PathValue("id") != "":
		where = "detail"
		if q.Kind != nil {
			title = plan.UpperFirst(q.Kind.Spec.Singular) + " " + ShortID(q.R.PathValue("id"))
		}
	}
	f := q.frame(where, title)
	f.Notices.WaitingFor = "Upstream"
	if q.Source != nil {
		f.Notices.WaitingFor = q.Source.Spec.Title
	}
	if err := q.V.pages.templates.ExecuteTemplate(buf, "above", f); err != nil {
		return err
	}
	q.startStream()
	return q.Reply.flush(buf)
}

// flush sends the content of the buffer to the browser and empties the buffer.
func (y *Reply) flush(buf *bytes.Buffer) error {
	var err error
	if zip := y.stream.zip; zip != nil {
		err = y.sendPacked(func(w *bytes.Buffer) error { return zip.add(y, w, buf.Bytes()) })
	} else {
		err = y.writePlain(y.W, buf.Bytes())
	}
	buf.Reset()
	if err == nil {
		err = http.NewResponseController(y.W).Flush()
	}
	return err
}

func (y *Reply) sendPacked(f func(*bytes.Buffer) error) error {
	w := y.v.pages.buffers.Get().(*bytes.Buffer)
	defer y.v.pages.buffers.Put(w)
	w.Reset()
	if err := f(w); err != nil {
		return err
	}
	_, err := y.W.Write(w.Bytes())
	return err
}

// startStream sends the headers of a page in pieces.
func (q *Exchange) startStream() {
	if q.Reply.stream != nil {
		return
	}
	q.Reply.stream = &stream{}
	q.setTimes(q.Clock.Start)
	q.Reply.W.Header().Set("Link", q.V.preloadLink())
	if q.Kind != nil && q.V.Options.Media != nil && q.R.PathValue("id") != "" {
		q.Reply.openSession() // the session must begin before the headers are sent, because a part may show audio or images
	}
	h := q.Reply.headers(htmlType)
	h.Set("X-Accel-Buffering", "no") // tells nginx to forward each piece without buffering it
	if IsGzipAccepted(q.R) {
		h.Set("Content-Encoding", "gzip")
		q.Reply.stream.zip = &packer{Independent: true}
	}
	q.Reply.W.WriteHeader(http.StatusOK)
	if q.Reply.stream.zip != nil {
		// this error needs no handling, because the next write fails with it too
		_ = q.Reply.sendPacked(func(w *bytes.Buffer) error { q.Reply.stream.zip.begin(w); return nil })
	}
}

// hinter is the response writer of a page that a browser navigates to over HTTP/2. If the page does not begin in time, it
// sends a response 103 that names the style sheet (RFC 8297). Browsers ignore that over HTTP/1.1.
type hinter struct {
	to     http.ResponseWriter
	header http.Header // of the page: a map of its own until the page begins, because 103 is sent beside the page's goroutine
	mu     sync.Mutex  // held while 103 is sent, and while the page begins
	link   string      // "" once 103 has been sent
	begun  bool
}

// sendHint sends 103, unless it has been sent or the page has begun. Any goroutine may call it.
func (h *hinter) sendHint() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.link != "" && !h.begun {
		clear(h.to.Header())
		h.to.Header().Set("Link", h.link)
		h.link = ""
		h.to.WriteHeader(http.StatusEarlyHints)
	}
}

// begin ends the time in which 103 may be sent.
func (h *hinter) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.begun {
		clear(h.to.Header())
		maps.Copy(h.to.Header(), h.header)
		h.begun, h.header = true, h.to.Header()
	}
}

// Header and the methods below are those of a response writer.
func (h *hinter) Header() http.Header { return h.header }

func (h *hinter) Unwrap() http.ResponseWriter { return h.to }

func (h *hinter) WriteHeader(status int) {
	h.begin()
	h.to.WriteHeader(status)
}

func (h *hinter) Write(p []byte) (int, error) {
	h.begin()
	return h.to.Write(p)
}

// htmlType is the media type of pages.
const htmlType = "text/html; charset=utf-8"

func (q *Exchange) send(status int, contentType string, body []byte) {
	q.setTimes(time.Time{})
	q.Reply.write(status, contentType, body)
}

// setTimes sets the header Server-Timing. Only a caller who may see everything gets the time that the server took,
// because that time also depends on hidden records.
func (q *Exchange) setTimes(began time.Time) {
	var b strings.Builder
	add := func(name string, d time.Duration) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + ";dur=" + strconv.FormatFloat(float64(d)/1e6, 'f', 3, 64))
	}
	if q.Answer != nil {
		add("upstream", q.Answer.UpstreamTime)
	}
	if q.Rights.canSeeAll(q.Source) {
		if q.Answer != nil {
			add("store", q.Answer.StoreTime)
		}
		if !began.IsZero() {
			add("render", q.V.Options.Now().Sub(began))
		}
		add("total", q.V.Options.Now().Sub(q.Clock.Start))
	}
	if how := q.AnswerOrigin(); how != "" {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(`cache;desc="` + how + `"`)
	}
	if b.Len() > 0 {
		q.Reply.W.Header().Set("Server-Timing", b.String())
	}
}

// minCompressedBytes is the size in bytes of the smallest body that is compressed.
const minCompressedBytes = 1 << 10

// headers returns the headers of the response, after setting those that all responses with a body have.
func (y *Reply) headers(contentType string) http.Header {
	h := y.W.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "private, no-store")
	h.Set("Vary", "Accept-Encoding, Authorization, Cookie")
	return h
}

// write sends a complete page with its fragments. It compresses the page if that makes the response faster.
func (y *Reply) write(status int, contentType string, body []byte) {
	h := y.headers(contentType)
	if (len(body) >= minCompressedBytes || len(y.Fragments) > 0) && IsGzipAccepted(y.r) {
		packed := y.v.pages.buffers.Get().(*bytes.Buffer)
		defer y.v.pages.buffers.Put(packed)
		packed.Reset()
		if err := y.pack(packed, body); err == nil {
			h.Set("Content-Encoding", "gzip")
			body = packed.Bytes()
		}
	} else if len(y.Fragments) > 0 {
		var whole bytes.Buffer
		if err := y.writePlain(&whole, body); err == nil { // a write to a buffer never fails
			body = whole.Bytes()
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	y.W.WriteHeader(status)
	if y.r.Method != http.MethodHead {
		_, _ = y.W.Write(body) // an error means that the client has closed the connection
	}
}

func (y *Reply) pack(into *bytes.Buffer, body []byte) error {
	if len(y.Fragments) > 0 {
		return y.writeGzip(into, body)
	}
	zw := y.v.pages.packers.Get().(*gzip.Writer)
	defer y.v.pages.packers.Put(zw)
	zw.Reset(into)
	if _, err := zw.Write(body); err != nil {
		return err
	}
	return zw.Close()
}

// SendJSON sends a value as JSON.
func (q *Exchange) SendJSON(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("viewer: %s: %w", q.R.URL.Path, err)
	}
	q.send(http.StatusOK, "application/json", append(body, '\n'))
	return nil
}

// RedirectBack redirects the browser from a form to another page of the viewer, which shows the message said if it is
// not empty.
func (q *Exchange) RedirectBack(to, said string) {
	if said != "" {
		q.V.Options.Cookies.Set(q.Reply.W, messageCookie, []byte(q.Rights.Caller.Name+"\x00"+said), messageLifetime)
	}
	Redirect(q.Reply.W, q.R, to)
}

// messageCookie is the cookie with the message that a form leaves for the next page. The cookie lasts at most messageLifetime.
const (
	messageCookie   = "__Host-understudy-said"
	messageLifetime = time.Minute
)

// TakeMessage moves the message of a form from its cookie to this page, if the form was sent by the same caller.
func (y *Reply) TakeMessage(caller string) {
	if y.r.Method != http.MethodGet || dataFormatOf(y.r.URL.Path) != "" {
		return
	}
	value, _ := y.v.Options.Cookies.Take(y.W, y.r, messageCookie)
	if name, text, ok := strings.Cut(string(value), "\x00"); ok && name == caller {
		y.message = text
	}
}
