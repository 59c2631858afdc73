// Responses: how a page is sent, complete or in pieces.

package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"understudy/internal/viewer/plan"
)

// stream is a response whose beginning has been sent.
type stream struct {
	zip *packer // compresses the response; nil if it is not compressed
}

// sendHead sends the head of a page before its content is known. The status is 200, whatever the content turns out
// to be.
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
		where = "search" // the search page has a search box of its own
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

// sendPacked sends the bytes that f writes.
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
	q.Reply.setPreloadHeader()
	if q.Kind != nil && q.V.Options.Media != nil && q.R.PathValue("id") != "" {
		q.Reply.openSession() // a part may show contents, which need a session
	}
	h := q.Reply.headers(htmlType)
	h.Set("X-Accel-Buffering", "no") // nginx must not buffer the pieces
	if IsGzipAccepted(q.R) {
		h.Set("Content-Encoding", "gzip")
		q.Reply.stream.zip = &packer{Independent: true}
	}
	q.Reply.W.WriteHeader(http.StatusOK)
	if q.Reply.stream.zip != nil {
		// if this write fails, the next one fails too
		_ = q.Reply.sendPacked(func(w *bytes.Buffer) error { q.Reply.stream.zip.begin(w); return nil })
	}
}

// finish sends the end of a page in pieces.
func (y *Reply) finish() error {
	if err := y.flush(y.page); err != nil || y.stream.zip == nil {
		return err
	}
	return y.sendPacked(y.stream.zip.end)
}

// htmlType is the media type of pages.
const htmlType = "text/html; charset=utf-8"

// send sends a response in a data format.
func (q *Exchange) send(status int, contentType string, body []byte) {
	q.setTimes(time.Time{})
	q.Reply.write(status, contentType, body)
}

// setTimes sets the header Server-Timing. Only a caller that sees everything learns how long the answer took here,
// because the time depends on hidden records too.
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

// minCompressed is the smallest body that is compressed, in bytes.
const minCompressed = 1 << 10

// headers sets the headers that every body needs, and returns them.
func (y *Reply) headers(contentType string) http.Header {
	h := y.W.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "private, no-store")
	h.Set("Vary", "Accept-Encoding, Authorization, Cookie")
	return h
}

// write sends a complete response with its fragments, compressed if that pays.
func (y *Reply) write(status int, contentType string, body []byte) {
	h := y.headers(contentType)
	if (len(body) >= minCompressed || len(y.Fragments) > 0) && IsGzipAccepted(y.r) {
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
		_, _ = y.W.Write(body) // the client may have closed the connection
	}
}

// pack compresses a response.
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

// RedirectBack redirects the reader of a form to a page of the viewer. That page shows the message said, unless it is
// empty.
func (q *Exchange) RedirectBack(to, said string) {
	if said != "" {
		q.V.Options.Cookies.Set(q.Reply.W, messageCookie, []byte(q.Rights.Caller.Name+"\x00"+said), messageLifetime)
	}
	Redirect(q.Reply.W, q.R, to)
}

// messageCookie keeps the message of a form for the next page, for at most messageLifetime.
const (
	messageCookie   = "__Host-understudy-said"
	messageLifetime = time.Minute
)

// TakeMessage takes the message of a form for this page. The caller must be known.
func (y *Reply) TakeMessage(caller string) {
	if y.r.Method != http.MethodGet || formOf(y.r.URL.Path) != "" {
		return
	}
	value, _ := y.v.Options.Cookies.Take(y.W, y.r, messageCookie)
	if name, text, ok := strings.Cut(string(value), "\x00"); ok && name == caller {
		y.message = text
	}
}
