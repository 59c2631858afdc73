// Codecs of the hot tier: zstd with a dictionary for each form of page.

package cache

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"understudy"
)

const (
	maxDictionaries = 8         // forms with a dictionary of their own, the first that come
	dictionarySize  = 32 << 10  // more gains nothing
	minLearn        = 12 << 10  // a text shorter than this teaches too little
	window          = 128 << 10 // covers a bench page
	codecCost       = 1300 << 10
)

// Group is the pages of one kind of a source.
type Group struct {
	kind   string
	others atomic.Int64 // entries that are put and are no lists of records
	mu     sync.Mutex
	forms  map[string]*form
}

// NewGroup is the group of a kind; it has no pages yet.
func NewGroup(kind string) *Group { return &Group{kind: kind, forms: map[string]*form{}} }

// listOfRecords reports a list whose records have their numbers: it cannot show
// a record that came after it.
func (e *Entry) listOfRecords() bool { return e.List && (e.Stored || e.Composed) }

// ListsOnly reports that no entry of a group can show a record that just came: all
// are lists of records that were there before.
func (h *Tier) ListsOnly(g *Group) bool { return g.others.Load() == 0 }

// form is one shape of a kind: its pages look alike, so they share a codec.
type form struct {
	group *Group
	shape string
	codec atomic.Pointer[codec]
}

// form finds the form of a shape; there are at most twice as many as the spec has
// shapes (understudy.ForeignShape).
func (g *Group) form(shape string) *form {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.forms[shape]
	if f == nil {
		f = &form{group: g, shape: shape}
		g.forms[shape] = f
	}
	return f
}

// codec packs and unpacks frames. Its methods are safe for concurrent use.
type codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// codecs makes them and counts what they take.
type codecs struct {
	mu     sync.Mutex
	most   int // dictionaries that may be made
	plain  *codec
	made   atomic.Int64
	frames sync.Pool // of *scratch
	gzips  sync.Pool // of *gzip.Writer
}

// scratch is the memory of one packing or unpacking.
type scratch struct{ text, frame []byte }

func (c *codecs) cost() int64 { return c.made.Load() * codecCost }

func (c *codecs) scratch() *scratch {
	if s, ok := c.frames.Get().(*scratch); ok {
		return s
	}
	return &scratch{}
}

// give takes scratch memory back unless it grew out of bounds.
func (c *codecs) give(s *scratch) {
	if cap(s.text)+cap(s.frame) <= 1<<20 {
		c.frames.Put(s)
	}
}

// of is the form's codec. The first page long enough becomes its dictionary;
// until then, and for forms beyond the limit, a plain one serves. A page keeps
// the codec it was packed with.
func (c *codecs) of(f *form, text []byte) (*codec, error) {
	if have := f.codec.Load(); have != nil {
		return have, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := f.codec.Load(); have != nil {
		return have, nil
	}
	if len(text) >= minLearn && c.most > 0 {
		made, err := newCodec(bytes.Clone(text[:min(len(text), dictionarySize)]))
		if err != nil {
			return nil, err
		}
		c.most--
		c.made.Add(1)
		f.codec.Store(made)
		return made, nil
	}
	if c.plain == nil {
		made, err := newCodec(nil)
		if err != nil {
			return nil, err
		}
		c.made.Add(1)
		c.plain = made
	}
	return c.plain, nil
}

func newCodec(dictionary []byte) (*codec, error) {
	const id = 1 // a decoder knows one dictionary only
	encode := []zstd.EOption{
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true),
	}
	decode := []zstd.DOption{
		zstd.WithDecoderConcurrency(min(4, runtime.GOMAXPROCS(0))), zstd.WithDecoderLowmem(true),
	}
	if dictionary != nil {
		encode = append(encode, zstd.WithEncoderDictRaw(id, dictionary))
		decode = append(decode, zstd.WithDecoderDictRaw(id, dictionary))
	}
	enc, err := zstd.NewWriter(nil, encode...)
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, decode...)
	if err != nil {
		return nil, err
	}
	return &codec{enc: enc, dec: dec}, nil
}

// Pack makes an entry of a page; nil when the page cannot be packed.
func (h *Tier) Pack(g *Group, p *understudy.Page) *Entry {
	if !packable(p) {
		return nil
	}
	s := h.codecs.scratch()
	defer h.codecs.give(s)
	head, ids := appendHead(s.text[:0], p)
	s.text = appendMarked(head, p.Body, p.Rows)
	f := g.form(p.Shape)
	c, err := h.codecs.of(f, s.text)
	if err != nil {
		return nil
	}
	s.frame = append(binary.AppendUvarint(s.frame[:0], uint64(len(ids))), ids...)
	s.frame = c.enc.EncodeAll(s.text, s.frame)
	e := &Entry{
		Hash: h.Hash(p.Key), form: f, At: p.At, Generation: p.Generation,
		packed: packed{codec: c, blob: makeBlob(s.frame), records: recordNumbers(p.Rows)}, List: p.List,
	}
	if p.ID != "" {
		e.Ident = h.Ident(p.ID)
	}
	return e
}

// Unpack is the entry's page again. Took is 0.
func (h *Tier) Unpack(e *Entry) (*understudy.Page, error) {
	s := h.codecs.scratch()
	defer h.codecs.give(s)
	s.frame = e.packed.blob.appendTo(s.frame[:0])
	n, skip := binary.Uvarint(s.frame)
	if skip <= 0 || n > uint64(len(s.frame)-skip) {
		return nil, errNotPacked
	}
	ids, frame := s.frame[skip:skip+int(n)], s.frame[skip+int(n):]
	var err error
	if s.text, err = e.packed.codec.dec.DecodeAll(frame, s.text[:0]); err != nil {
		return nil, err
	}
	p, text, size, err := readHead(s.text, ids)
	if err != nil {
		return nil, err
	}
	if p.Body, err = unmark(text, p.Rows, size); err != nil {
		return nil, err
	}
	p.Kind, p.Shape, p.At = e.form.group.kind, e.form.shape, e.At
	return p, nil
}

// recordNumbers are the rows' record numbers as differences; nil when the page
// was not saved.
func recordNumbers(rows []understudy.Row) []byte {
	if len(rows) == 0 || rows[0].Record == 0 {
		return nil
	}
	b := make([]byte, 0, 2*len(rows))
	var last int64
	for i := range rows {
		b = binary.AppendVarint(b, rows[i].Record-last)
		last = rows[i].Record
	}
	return exact(b)
}

// gzipped is b as Content-Encoding: gzip sends it. The level is that of the form the proxy
// makes where there is none yet: both have one strong ETag, which names bytes.
func (c *codecs) gzipped(b []byte) []byte {
	w, ok := c.gzips.Get().(*gzip.Writer)
	if !ok {
		w, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	}
	defer c.gzips.Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	_, _ = w.Write(b) // into memory
	_ = w.Close()
	return bytes.Clone(out.Bytes())
}
