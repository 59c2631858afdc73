// Representation: header values of a body, made once; and its compressed forms.

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

// representation holds what a response says about its body. All responses with the
// same bytes share it, for every caller. What differs between roles differs in the
// bytes.
type representation struct {
	tag         string // the ETag less its quotes
	etags       [forms][]string
	length      []string
	contentType []string

	packs [forms]atomic.Pointer[pack]
}

// pack is a compressed body and the header value of its length. Of one the
// mirror brought only the length is kept.
type pack struct {
	body   []byte
	size   int
	length []string
}

type representationKey struct {
	sum         [16]byte
	contentType string
}

// representationWeight is what a representation costs in memory beside a compressed body.
const representationWeight = 512

// representation finds or makes the representation of a view's body. The tag is half the SHA-256
// of the view's own bytes, so it changes only with what the role sees.
func (p *Proxy) representation(view *access.View) *representation {
	key := representationKey{view.Sum, view.ContentType}
	if l, ok := p.representations.Get(key); ok {
		return l
	}
	tag := base64.RawURLEncoding.EncodeToString(view.Sum[:])
	l := &representation{tag: tag, length: []string{strconv.Itoa(len(view.Body))}, contentType: []string{view.ContentType}}
	for in := range l.etags {
		l.etags[in] = []string{`"` + tag + endings[in] + `"`}
	}
	p.representations.Put(key, l, representationWeight)
	return l
}

// minPacked is the size from which compressing is worth it.
const minPacked = 1 << 10

// formed is the body in the form it goes out in, with its length. A page that
// was just fetched whole goes out plain; its reader has waited long enough, and
// the mirror compresses what is asked for again.
func (v *exchange) formed(a *request.Response, view *access.View, l *representation) (body []byte, length []string, in form) {
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

// pack makes a compressed form and keeps it with the representation.
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

// lengthOf is the Content-Length of a compressed body the mirror brought.
func (l *representation) lengthOf(in form, body []byte) []string {
	p := l.packs[in].Load()
	if p == nil || p.size != len(body) {
		p = &pack{size: len(body), length: []string{strconv.Itoa(len(body))}}
		l.packs[in].CompareAndSwap(nil, p)
	}
	return p.length
}

// compress makes a compressed form of a body.
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
	w := gzips.Get().(*gzip.Writer)
	defer gzips.Put(w)
	w.Reset(&out)
	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("proxy: gzip: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("proxy: gzip: %w", err)
	}
	return bytes.Clone(out.Bytes()), nil
}

// gzips are encoders, of 0.7 MB each. Their level is that of the mirror's form.
var gzips = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return w
}}

// newZstd makes the encoder all answers share. One block at a time bounds its
// memory (RFC 9659 wants windows of at most 8 MiB on the web).
func newZstd() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
}
