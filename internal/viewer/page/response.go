// Response: how a page goes out, whole or in pieces, each as soon as it is there.

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

// stream is an answer of which the beginning is out.
type stream struct {
	zip *packer // nil: not compressed
}

// above sends what stands above a page's own content. The status is out with it:
// 200, whatever is found when that has been read.
func (q response) above() error {
	buf := q.V.pages.buffers.Get().(*bytes.Buffer)
	buf.Reset()
	defer q.V.pages.buffers.Put(buf)
	where := "list"
	switch {
	case q.R.URL.Path == "/search":
		where = "search" // it has a box of its own
	case q.Kind == nil || q.R.PathValue("id") != "":
		where = "detail"
	}
	f := layout(q).frame(where, q.expected())
	f.Notices.Asked = "Upstream"
	if q.Source != nil {
		f.Notices.Asked = q.Source.Spec.Title
	}
	if err := q.V.pages.byName["list"].ExecuteTemplate(buf, "above", f); err != nil {
		return err
	}
	return q.flush(buf)
}

// expected is the title of a page before what it shows has been read.
func (q response) expected() string {
	switch id := q.R.PathValue("id"); {
	case q.Kind == nil:
		return "Search"
	case id != "":
		return plan.UpperFirst(q.Kind.One) + " " + ShortID(id)
	}
	return plan.UpperFirst(q.Kind.Title)
}

// flush sends what the buffer holds, so that a browser has it, and empties it.
func (q response) flush(buf *bytes.Buffer) error {
	if q.out == nil {
		q.begun()
	}
	var err error
	if zip := q.out.zip; zip != nil {
		err = q.packed(func(w *bytes.Buffer) error { return zip.add(q.Exchange, w, buf.Bytes()) })
	} else {
		err = q.writePlain(q.W, buf.Bytes())
	}
	buf.Reset()
	if err == nil {
		err = http.NewResponseController(q.W).Flush()
	}
	return err
}

// packed sends what f writes.
func (q response) packed(f func(*bytes.Buffer) error) error {
	w := q.V.pages.buffers.Get().(*bytes.Buffer)
	defer q.V.pages.buffers.Put(w)
	w.Reset()
	if err := f(w); err != nil {
		return err
	}
	_, err := q.W.Write(w.Bytes())
	return err
}

// begun sends the headers of a page in pieces.
func (q response) begun() {
	q.out = &stream{}
	q.times(q.Start)
	layout(q).preload()
	if q.Kind != nil && q.V.Media != nil && q.R.PathValue("id") != "" {
		q.openSession() // a part may show contents
	}
	h := q.headers(htmlType)
	h.Set("X-Accel-Buffering", "no") // nginx keeps no piece back
	if AcceptsGzip(q.R) {
		h.Set("Content-Encoding", "gzip")
		q.out.zip = &packer{Apart: true}
	}
	q.W.WriteHeader(http.StatusOK)
	if q.out.zip != nil {
		_ = q.packed(func(w *bytes.Buffer) error { q.out.zip.begin(w); return nil }) // the next write fails, too
	}
}

// finish sends the end of a page in pieces.
func (q response) finish() error {
	if err := q.flush(q.page); err != nil || q.out.zip == nil {
		return err
	}
	return q.packed(q.out.zip.end)
}

// htmlType is the media type of pages.
const htmlType = "text/html; charset=utf-8"

// send writes data.
func (q *Exchange) send(status int, contentType string, body []byte) {
	response{q}.times(time.Time{})
	response{q}.write(status, contentType, body)
}

// response sends an answer, whole or in pieces.
type response struct{ *Exchange }

// times sets Server-Timing. A caller that does not see everything is not told how long it
// took here: that tells of what is hidden.
func (q response) times(began time.Time) {
	var b strings.Builder
	add := func(name string, d time.Duration) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + ";dur=" + strconv.FormatFloat(float64(d)/1e6, 'f', 3, 64))
	}
	if q.Answer != nil {
		add("upstream", q.Answer.Upstream)
	}
	if seesWhole(q.Exchange) {
		if q.Answer != nil {
			add("store", q.Answer.Store)
		}
		if !began.IsZero() {
			add("render", q.since(began))
		}
		add("total", q.since(q.Start))
	}
	if how := q.How(); how != "" {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(`cache;desc="` + how + `"`)
	}
	if b.Len() > 0 {
		q.W.Header().Set("Server-Timing", b.String())
	}
}

// smallest is the body from which compressing pays.
const smallest = 1 << 10

// headers sets those of every answer's body.
func (q response) headers(contentType string) http.Header {
	h := q.W.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "private, no-store")
	h.Set("Vary", "Accept-Encoding, Authorization, Cookie")
	return h
}

func (q response) write(status int, contentType string, body []byte) {
	h := q.headers(contentType)
	if (len(body) >= smallest || len(q.Fragments) > 0) && AcceptsGzip(q.R) {
		packed := q.V.pages.buffers.Get().(*bytes.Buffer)
		defer q.V.pages.buffers.Put(packed)
		packed.Reset()
		if err := q.pack(packed, body); err == nil {
			h.Set("Content-Encoding", "gzip")
			body = packed.Bytes()
		}
	} else if len(q.Fragments) > 0 {
		var whole bytes.Buffer
		if err := q.writePlain(&whole, body); err == nil { // no write into it fails
			body = whole.Bytes()
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	q.W.WriteHeader(status)
	if q.R.Method != http.MethodHead {
		_, _ = q.W.Write(body) // the reader has gone
	}
}

// pack compresses an answer.
func (q response) pack(into *bytes.Buffer, body []byte) error {
	if len(q.Fragments) > 0 {
		return q.writeGzip(into, body)
	}
	zw := q.V.pages.packers.Get().(*gzip.Writer)
	defer q.V.pages.packers.Put(zw)
	zw.Reset(into)
	if _, err := zw.Write(body); err != nil {
		return err
	}
	return zw.Close()
}

// SendJSON sends a value as data.
func (q *Exchange) SendJSON(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("viewer: %s: %w", q.R.URL.Path, err)
	}
	q.send(http.StatusOK, "application/json", append(body, '\n'))
	return nil
}

// GoBack leads a form's reader to a page of ours, which says what was done; "": nothing.
func (q *Exchange) GoBack(to, said string) {
	if said != "" {
		say(q, said)
	}
	q.W.Header().Set("Cache-Control", "no-store")
	http.Redirect(q.W, q.R, to, http.StatusSeeOther)
}

// saidCookie keeps what a form has done until the page that follows.
const (
	saidCookie = "__Host-understudy-said"
	saidLasts  = time.Minute
)

// say keeps a word for the caller's next page.
func say(q *Exchange, text string) {
	q.V.Cookies.Set(q.W, saidCookie, []byte(q.Caller.Name+"\x00"+text), saidLasts)
}

// TakeSaid takes what was kept for this page, once its caller is known.
func TakeSaid(q *Exchange) {
	if q.R.Method != http.MethodGet || q.Data != "" {
		return
	}
	value, _ := q.V.Cookies.Take(q.W, q.R, saidCookie)
	if name, text, ok := strings.Cut(string(value), "\x00"); ok && name == q.Caller.Name {
		q.said = text
	}
}
