// This file keeps the header values of a body, and its compressed forms.

package proxy

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"understudy/internal/access"
	"understudy/request"
)

// representation has the header values and compressed forms of a body. All responses with the same bytes share it,
// for every caller. Roles that see different data get different bytes.
type representation struct {
	tag         string // the value of the ETag without its quotes
	etags       [forms][]string
	length      []string
	contentType []string

	packs [forms]atomic.Pointer[pack]
}

// pack is a compressed body and the header value with its length. For a body that the mirror compressed, only the
// length is kept.
type pack struct {
	body   []byte
	size   int
	length []string
}

// representationKey identifies a cached representation.
type representationKey struct {
	sum         [16]byte
	contentType string
}

// representationWeight is the memory of a representation without its compressed bodies, in bytes.
const representationWeight = 512

// representation returns the representation of a view's body and creates it if needed. The ETag is half the SHA-256
// of the view's own bytes, so it changes only if what the role sees changes.
func (p *Proxy) representation(view *access.View) *representation {
	key := representationKey{view.Sum, view.ContentType}
	if l, ok := p.representations.Get(key); ok {
		return l
	}
	tag := base64.RawURLEncoding.EncodeToString(view.Sum[:])
	l := &representation{tag: tag, length: []string{strconv.Itoa(len(view.Body))}, contentType: []string{view.ContentType}}
	for in := range l.etags {
		l.etags[in] = []string{`"` + tag + etagEndings[in] + `"`}
	}
	p.representations.Put(key, l, representationWeight)
	return l
}

// minPacked is the minimum size for compression, in bytes.
const minPacked = 1 << 10

// chooseForm returns the body in the compression in which it is sent, and its length. A page that was just fetched
// is sent plain if nothing in it was hidden, because its caller has already waited. The mirror compresses pages
// that are requested again.
func (v *exchange) chooseForm(a *request.Response, view *access.View, l *representation) (body []byte, length []string, in form) {
	in, must := negotiate(v.r.Header["Accept-Encoding"])
	if in == plainForm || !must && len(view.Body) < minPacked {
		return view.Body, l.length, plainForm
	}
	if p := l.packs[in].Load(); p != nil && p.body != nil {
		return p.body, p.length, in
	}
	switch mirrors := view.Unredacted && a.Gzip != nil; {
	case mirrors && in == gzipForm:
		return a.Gzip, l.lengthOf(in, a.Gzip), in
	case !must && !mirrors && view.Unredacted && a.Outcome == request.Cold:
		return view.Body, l.length, plainForm
	}
	p, err := v.proxy.pack(view, l, in)
	if err != nil {
		v.proxy.o.Logger.Error("cannot compress", "id", v.id(), "err", err)
		return view.Body, l.length, plainForm
	}
	return p.body, p.length, in
}

// pack compresses a body and keeps the result in the representation.
func (p *Proxy) pack(view *access.View, l *representation, in form) (*pack, error) {
	body, err := p.compress(view.Body, in)
	if err != nil {
		return nil, err
	}
	made := &pack{body, len(body), []string{strconv.Itoa(len(body))}}
	l.packs[in].Store(made)
	weight := int64(representationWeight)
	for i := range l.packs {
		if form := l.packs[i].Load(); form != nil {
			weight += int64(len(form.body))
		}
	}
	p.representations.Put(representationKey{view.Sum, view.ContentType}, l, weight)
	return made, nil
}

// lengthOf returns the Content-Length of a body that the mirror compressed.
func (l *representation) lengthOf(in form, body []byte) []string {
	p := l.packs[in].Load()
	if p == nil || p.size != len(body) {
		p = &pack{size: len(body), length: []string{strconv.Itoa(len(body))}}
		l.packs[in].CompareAndSwap(nil, p)
	}
	return p.length
}

// compress returns a compressed form of a body.
func (p *Proxy) compress(body []byte, in form) ([]byte, error) {
	if in == zstdForm {
		z, err := p.zstd()
		if err != nil {
			return nil, fmt.Errorf("proxy: zstd: %w", err)
		}
		return bytes.Clone(z.EncodeAll(body, make([]byte, 0, len(body)/8))), nil
	}
	var out bytes.Buffer
	out.Grow(len(body) / 8)
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&out)
	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("proxy: gzip: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("proxy: gzip: %w", err)
	}
	return bytes.Clone(out.Bytes()), nil
}

// gzipWriters is a pool of gzip encoders, of 0.7 MB each. They use the same level as the mirror's compressed bodies.
var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // cannot fail, because the level is valid
	return w
}}

// newZstd creates the zstd encoder that all responses share. It compresses one block at a time, which limits its
// memory (RFC 9659 wants windows of at most 8 MiB on the web).
func newZstd() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
}
