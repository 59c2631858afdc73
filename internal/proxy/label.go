// Label: header values of a body, made once; and its compressed form.

package proxy

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"

	"understudy"
	"understudy/internal/access"
)

// label holds what an answer says of its body. It is shared by every answer of
// the same bytes, whoever gets them: what differs between roles differs in its
// bytes.
type label struct {
	tag         string // the ETag less its quotes
	etag        []string
	etagGzip    []string
	length      []string
	contentType []string

	packed atomic.Pointer[pack]
}

// pack is a compressed body and the header value of its length. Of one the
// mirror brought only the length is kept.
type pack struct {
	body   []byte
	size   int
	length []string
}

type labelKey struct {
	sum         [16]byte
	contentType string
}

// gzipSuffix tells the ETag of the compressed form from that of the plain one:
// a strong ETag names bytes (RFC 9110, 8.8.3.3 has the same scheme).
const gzipSuffix = "-gzip"

// labelWeight is what a label costs in memory beside a compressed body.
const labelWeight = 512

// label finds or makes the label of a view's body. The tag is half the SHA-256
// of the view's own bytes, so it changes only with what the role sees.
func (v *visit) label(view *access.View) *label {
	key := labelKey{view.Sum, view.ContentType}
	if l, ok := v.labels.Get(key); ok {
		return l
	}
	tag := base64.RawURLEncoding.EncodeToString(view.Sum[:])
	l := &label{
		tag: tag, etag: []string{`"` + tag + `"`}, etagGzip: []string{`"` + tag + gzipSuffix + `"`},
		length: []string{strconv.Itoa(len(view.Body))}, contentType: []string{view.ContentType},
	}
	v.labels.Put(key, l, labelWeight)
	return l
}

// minGzip is the size from which compressing is worth it.
const minGzip = 1 << 10

// packed is the compressed form of a view, nil when it goes out plain: the
// mirror's when nothing is hidden and it has one ready, else one made here. A
// page that was just fetched whole goes out plain; its reader has waited long
// enough, and the mirror compresses what is asked for again.
func (v *visit) packed(a *understudy.Answer, view *access.View, l *label) []byte {
	if p := l.packed.Load(); p != nil && p.body != nil {
		return p.body
	}
	if view.Whole && a.Gzip != nil {
		return a.Gzip
	}
	if view.Whole && a.How == understudy.Cold {
		return nil
	}
	body, err := compress(view.Body)
	if err != nil {
		v.log.Error("cannot compress", "id", v.id(), "err", err)
		return nil
	}
	l.packed.Store(&pack{body, len(body), []string{strconv.Itoa(len(body))}})
	v.labels.Put(labelKey{view.Sum, view.ContentType}, l, labelWeight+int64(len(body)))
	return body
}

// packedLength is the Content-Length of a compressed body.
func (l *label) packedLength(body []byte) []string {
	p := l.packed.Load()
	if p == nil || p.size != len(body) {
		p = &pack{size: len(body), length: []string{strconv.Itoa(len(body))}}
		l.packed.CompareAndSwap(nil, p)
	}
	return p.length
}

// compress makes the gzip form of a body.
func compress(body []byte) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(len(body) / 8)
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("proxy: gzip: %w", err)
	}
	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("proxy: gzip: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("proxy: gzip: %w", err)
	}
	return bytes.Clone(out.Bytes()), nil
}
