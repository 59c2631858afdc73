// Stream: a page sent in pieces, each as soon as it is there.

package page

import (
	"bytes"
	"net/http"

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
	f := layout(q).frame("list", q.expected())
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
