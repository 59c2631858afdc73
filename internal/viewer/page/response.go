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
func (q *Exchange) above() error {
	buf := q.V.pages.buffers.Get().(*bytes.Buffer)
	buf.Reset()
	defer q.V.pages.buffers.Put(buf)
	where, title := "list", "Search"
	if q.Kind != nil {
		title = plan.UpperFirst(q.Kind.Spec.Title)
	}
	switch {
	case q.R.URL.Path == "/search":
		where = "search" // it has a box of its own
	case q.Kind == nil || q.R.PathValue("id") != "":
		where = "detail"
		if q.Kind != nil {
			title = plan.UpperFirst(q.Kind.Spec.One) + " " + ShortID(q.R.PathValue("id"))
		}
	}
	f := q.frame(where, title)
	f.Notices.Asked = "Upstream"
	if q.Source != nil {
		f.Notices.Asked = q.Source.Spec.Title
	}
	if err := q.V.pages.templates.ExecuteTemplate(buf, "above", f); err != nil {
		return err
	}
	q.begin()
	return q.Reply.flush(buf)
}

// flush sends what the buffer holds, so that a browser has it, and empties it.
func (y *Reply) flush(buf *bytes.Buffer) error {
	var err error
	if zip := y.out.zip; zip != nil {
		err = y.packed(func(w *bytes.Buffer) error { return zip.add(y, w, buf.Bytes()) })
	} else {
		err = y.writePlain(y.W, buf.Bytes())
	}
	buf.Reset()
	if err == nil {
		err = http.NewResponseController(y.W).Flush()
	}
	return err
}

// packed sends what f writes.
func (y *Reply) packed(f func(*bytes.Buffer) error) error {
	w := y.v.pages.buffers.Get().(*bytes.Buffer)
	defer y.v.pages.buffers.Put(w)
	w.Reset()
	if err := f(w); err != nil {
		return err
	}
	_, err := y.W.Write(w.Bytes())
	return err
}

// begin sends the headers of a page in pieces.
func (q *Exchange) begin() {
	if q.Reply.out != nil {
		return
	}
	q.Reply.out = &stream{}
	q.times(q.Clock.Start)
	q.Reply.preload()
	if q.Kind != nil && q.V.Options.Media != nil && q.R.PathValue("id") != "" {
		q.Reply.openSession() // a part may show contents
	}
	h := q.Reply.headers(htmlType)
	h.Set("X-Accel-Buffering", "no") // nginx keeps no piece back
	if AcceptsGzip(q.R) {
		h.Set("Content-Encoding", "gzip")
		q.Reply.out.zip = &packer{Apart: true}
	}
	q.Reply.W.WriteHeader(http.StatusOK)
	if q.Reply.out.zip != nil {
		_ = q.Reply.packed(func(w *bytes.Buffer) error { q.Reply.out.zip.begin(w); return nil }) // the next write fails, too
	}
}

// finish sends the end of a page in pieces.
func (y *Reply) finish() error {
	if err := y.flush(y.page); err != nil || y.out.zip == nil {
		return err
	}
	return y.packed(y.out.zip.end)
}

// htmlType is the media type of pages.
const htmlType = "text/html; charset=utf-8"

// send writes data.
func (q *Exchange) send(status int, contentType string, body []byte) {
	q.times(time.Time{})
	q.Reply.write(status, contentType, body)
}

// times sets Server-Timing. A caller that does not see everything is not told how long it
// took here: that tells of what is hidden.
func (q *Exchange) times(began time.Time) {
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
	if q.Rights.seesWhole(q.Source) {
		if q.Answer != nil {
			add("store", q.Answer.Store)
		}
		if !began.IsZero() {
			add("render", q.V.Options.Now().Sub(began))
		}
		add("total", q.V.Options.Now().Sub(q.Clock.Start))
	}
	if how := q.How(); how != "" {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(`cache;desc="` + how + `"`)
	}
	if b.Len() > 0 {
		q.Reply.W.Header().Set("Server-Timing", b.String())
	}
}

// smallest is the body from which compressing pays.
const smallest = 1 << 10

// headers sets those of every answer's body.
func (y *Reply) headers(contentType string) http.Header {
	h := y.W.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "private, no-store")
	h.Set("Vary", "Accept-Encoding, Authorization, Cookie")
	return h
}

func (y *Reply) write(status int, contentType string, body []byte) {
	h := y.headers(contentType)
	if (len(body) >= smallest || len(y.Fragments) > 0) && AcceptsGzip(y.r) {
		packed := y.v.pages.buffers.Get().(*bytes.Buffer)
		defer y.v.pages.buffers.Put(packed)
		packed.Reset()
		if err := y.pack(packed, body); err == nil {
			h.Set("Content-Encoding", "gzip")
			body = packed.Bytes()
		}
	} else if len(y.Fragments) > 0 {
		var whole bytes.Buffer
		if err := y.writePlain(&whole, body); err == nil { // no write into it fails
			body = whole.Bytes()
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	y.W.WriteHeader(status)
	if y.r.Method != http.MethodHead {
		_, _ = y.W.Write(body) // the reader has gone
	}
}

// pack compresses an answer.
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
		q.V.Options.Cookies.Set(q.Reply.W, saidCookie, []byte(q.Rights.Caller.Name+"\x00"+said), saidLasts)
	}
	Redirect(q.Reply.W, q.R, to)
}

// saidCookie keeps what a form has done until the page that follows.
const (
	saidCookie = "__Host-understudy-said"
	saidLasts  = time.Minute
)

// TakeSaid takes what was kept for this page, once its caller is known.
func (y *Reply) TakeSaid(caller string) {
	if y.r.Method != http.MethodGet || formOf(y.r.URL.Path) != "" {
		return
	}
	value, _ := y.v.Options.Cookies.Take(y.W, y.r, saidCookie)
	if name, text, ok := strings.Cut(string(value), "\x00"); ok && name == caller {
		y.said = text
	}
}
