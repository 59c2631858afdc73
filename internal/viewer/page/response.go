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
func (r response) above() error {
	buf := r.q.V.pages.buffers.Get().(*bytes.Buffer)
	buf.Reset()
	defer r.q.V.pages.buffers.Put(buf)
	where := "list"
	switch {
	case r.q.R.URL.Path == "/search":
		where = "search" // it has a box of its own
	case r.q.Kind == nil || r.q.R.PathValue("id") != "":
		where = "detail"
	}
	f := layout(r).frame(where, r.expected())
	f.Notices.Asked = "Upstream"
	if r.q.Source != nil {
		f.Notices.Asked = r.q.Source.Spec.Title
	}
	if err := r.q.V.pages.byName["list"].ExecuteTemplate(buf, "above", f); err != nil {
		return err
	}
	return r.flush(buf)
}

// expected is the title of a page before what it shows has been read.
func (r response) expected() string {
	switch id := r.q.R.PathValue("id"); {
	case r.q.Kind == nil:
		return "Search"
	case id != "":
		return plan.UpperFirst(r.q.Kind.Spec.One) + " " + ShortID(id)
	}
	return plan.UpperFirst(r.q.Kind.Spec.Title)
}

// flush sends what the buffer holds, so that a browser has it, and empties it.
func (r response) flush(buf *bytes.Buffer) error {
	if r.q.Reply.out == nil {
		r.begun()
	}
	var err error
	if zip := r.q.Reply.out.zip; zip != nil {
		err = r.packed(func(w *bytes.Buffer) error { return zip.add(r.q, w, buf.Bytes()) })
	} else {
		err = r.writePlain(r.q.Reply.W, buf.Bytes())
	}
	buf.Reset()
	if err == nil {
		err = http.NewResponseController(r.q.Reply.W).Flush()
	}
	return err
}

// packed sends what f writes.
func (r response) packed(f func(*bytes.Buffer) error) error {
	w := r.q.V.pages.buffers.Get().(*bytes.Buffer)
	defer r.q.V.pages.buffers.Put(w)
	w.Reset()
	if err := f(w); err != nil {
		return err
	}
	_, err := r.q.Reply.W.Write(w.Bytes())
	return err
}

// begun sends the headers of a page in pieces.
func (r response) begun() {
	r.q.Reply.out = &stream{}
	r.times(r.q.Clock.Start)
	layout(r).preload()
	if r.q.Kind != nil && r.q.V.Media != nil && r.q.R.PathValue("id") != "" {
		r.q.openSession() // a part may show contents
	}
	h := r.headers(htmlType)
	h.Set("X-Accel-Buffering", "no") // nginx keeps no piece back
	if AcceptsGzip(r.q.R) {
		h.Set("Content-Encoding", "gzip")
		r.q.Reply.out.zip = &packer{Apart: true}
	}
	r.q.Reply.W.WriteHeader(http.StatusOK)
	if r.q.Reply.out.zip != nil {
		_ = r.packed(func(w *bytes.Buffer) error { r.q.Reply.out.zip.begin(w); return nil }) // the next write fails, too
	}
}

// finish sends the end of a page in pieces.
func (r response) finish() error {
	if err := r.flush(r.q.Reply.page); err != nil || r.q.Reply.out.zip == nil {
		return err
	}
	return r.packed(r.q.Reply.out.zip.end)
}

// htmlType is the media type of pages.
const htmlType = "text/html; charset=utf-8"

// send writes data.
func (q *Exchange) send(status int, contentType string, body []byte) {
	response{q}.times(time.Time{})
	response{q}.write(status, contentType, body)
}

// response sends an answer, whole or in pieces.
type response struct{ q *Exchange }

// times sets Server-Timing. A caller that does not see everything is not told how long it
// took here: that tells of what is hidden.
func (r response) times(began time.Time) {
	var b strings.Builder
	add := func(name string, d time.Duration) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + ";dur=" + strconv.FormatFloat(float64(d)/1e6, 'f', 3, 64))
	}
	if r.q.Answer != nil {
		add("upstream", r.q.Answer.Upstream)
	}
	if seesWhole(r.q) {
		if r.q.Answer != nil {
			add("store", r.q.Answer.Store)
		}
		if !began.IsZero() {
			add("render", r.q.since(began))
		}
		add("total", r.q.since(r.q.Clock.Start))
	}
	if how := r.q.How(); how != "" {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(`cache;desc="` + how + `"`)
	}
	if b.Len() > 0 {
		r.q.Reply.W.Header().Set("Server-Timing", b.String())
	}
}

// smallest is the body from which compressing pays.
const smallest = 1 << 10

// headers sets those of every answer's body.
func (r response) headers(contentType string) http.Header {
	h := r.q.Reply.W.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "private, no-store")
	h.Set("Vary", "Accept-Encoding, Authorization, Cookie")
	return h
}

func (r response) write(status int, contentType string, body []byte) {
	h := r.headers(contentType)
	if (len(body) >= smallest || len(r.q.Reply.Fragments) > 0) && AcceptsGzip(r.q.R) {
		packed := r.q.V.pages.buffers.Get().(*bytes.Buffer)
		defer r.q.V.pages.buffers.Put(packed)
		packed.Reset()
		if err := r.pack(packed, body); err == nil {
			h.Set("Content-Encoding", "gzip")
			body = packed.Bytes()
		}
	} else if len(r.q.Reply.Fragments) > 0 {
		var whole bytes.Buffer
		if err := r.writePlain(&whole, body); err == nil { // no write into it fails
			body = whole.Bytes()
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	r.q.Reply.W.WriteHeader(status)
	if r.q.R.Method != http.MethodHead {
		_, _ = r.q.Reply.W.Write(body) // the reader has gone
	}
}

// pack compresses an answer.
func (r response) pack(into *bytes.Buffer, body []byte) error {
	if len(r.q.Reply.Fragments) > 0 {
		return r.writeGzip(into, body)
	}
	zw := r.q.V.pages.packers.Get().(*gzip.Writer)
	defer r.q.V.pages.packers.Put(zw)
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
	q.Reply.W.Header().Set("Cache-Control", "no-store")
	http.Redirect(q.Reply.W, q.R, to, http.StatusSeeOther)
}

// saidCookie keeps what a form has done until the page that follows.
const (
	saidCookie = "__Host-understudy-said"
	saidLasts  = time.Minute
)

// say keeps a word for the caller's next page.
func say(q *Exchange, text string) {
	q.V.Cookies.Set(q.Reply.W, saidCookie, []byte(q.Rights.Caller.Name+"\x00"+text), saidLasts)
}

// TakeSaid takes what was kept for this page, once its caller is known.
func TakeSaid(q *Exchange) {
	if q.R.Method != http.MethodGet || q.Data != "" {
		return
	}
	value, _ := q.V.Cookies.Take(q.Reply.W, q.R, saidCookie)
	if name, text, ok := strings.Cut(string(value), "\x00"); ok && name == q.Rights.Caller.Name {
		q.Reply.said = text
	}
}
