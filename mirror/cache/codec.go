// Codecs of the memory cache: zstd with one dictionary for each shape of records.

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
	"understudy/kit/lockwatch"
)

const (
	maxDictionaries   = 8         // the number of shapes that get a dictionary, which are those used first
	dictionarySize    = 32 << 10  // the size of a dictionary in bytes; a larger dictionary does not compress better
	minDictionaryText = 12 << 10  // the size in bytes below which a page is too short to be a dictionary
	windowSize        = 128 << 10 // the window of the compressor in bytes, which has room for a typical page
	codecCost         = 1300 << 10
)

// Group is the set of pages in memory that belong to one kind of a source.
type Group struct {
	kind     string
	nonLists atomic.Int64 // the number of entries in memory that are not lists of records
	mu       lockwatch.Mutex
	forms    map[string]*form
}

// NewGroup returns the empty group of a kind.
func NewGroup(kind string) *Group { return &Group{kind: kind, forms: map[string]*form{}} }

// isRecordList reports whether the entry is a list whose records are stored. Such a list cannot show a record that is
// newer than the list.
func (e *Entry) isRecordList() bool { return e.List && (e.Stored || e.Composed) }

// HasOnlyLists reports whether all entries of a group are lists of stored records. None of them can then show a new record.
func (h *Tier) HasOnlyLists(g *Group) bool { return g.nonLists.Load() == 0 }

// form is the pages of one shape of a kind. They look similar, so they share a codec.
type form struct {
	group *Group
	shape string
	codec atomic.Pointer[codec]
}

// form returns the form for a shape and creates it if needed. There are at most twice as many forms as the spec has
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

// codec compresses and decompresses pages. Its methods are safe for concurrent use.
type codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// codecs creates codecs and counts the memory they use.
type codecs struct {
	mu               lockwatch.Mutex
	dictionariesLeft int // the number of dictionaries that may still be created
	plain            *codec
	created          atomic.Int64
	frames           sync.Pool // a pool of buffers, of type *scratch
	gzips            sync.Pool // a pool of compressors, of type *gzip.Writer
}

// scratch has the buffers for packing or unpacking one page.
type scratch struct{ text, frame []byte }

func (c *codecs) cost() int64 { return c.created.Load() * codecCost }

func (c *codecs) getScratch() *scratch {
	if s, ok := c.frames.Get().(*scratch); ok {
		return s
	}
	return &scratch{}
}

// putScratch returns buffers to the pool unless they have grown too large.
func (c *codecs) putScratch(s *scratch) {
	if cap(s.text)+cap(s.frame) <= 1<<20 {
		c.frames.Put(s)
	}
}

// getCodec returns the codec of a form. The first page that is long enough becomes the dictionary of its codec. Until then, and
// for forms that get no dictionary, it returns a codec without one. A page stays with the codec that packed it.
func (c *codecs) getCodec(f *form, text []byte) (*codec, error) {
	if have := f.codec.Load(); have != nil {
		return have, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := f.codec.Load(); have != nil {
		return have, nil
	}
	if len(text) >= minDictionaryText && c.dictionariesLeft > 0 {
		made, err := newCodec(bytes.Clone(text[:min(len(text), dictionarySize)]))
		if err != nil {
			return nil, err
		}
		c.dictionariesLeft--
		c.created.Add(1)
		f.codec.Store(made)
		return made, nil
	}
	if c.plain == nil {
		made, err := newCodec(nil)
		if err != nil {
			return nil, err
		}
		c.created.Add(1)
		c.plain = made
	}
	return c.plain, nil
}

// newCodec returns a codec with the given dictionary, or without one if dictionary is nil.
func newCodec(dictionary []byte) (*codec, error) {
	const id = 1 // every decoder has just one dictionary, so all can have the same id
	encode := []zstd.EOption{
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(windowSize), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true),
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

// Pack returns an entry with the compressed page. It returns nil if the page cannot be packed.
func (h *Tier) Pack(g *Group, p *understudy.Page) *Entry {
	if !canPack(p) {
		return nil
	}
	s := h.codecs.getScratch()
	defer h.codecs.putScratch(s)
	head, ids := appendHead(s.text[:0], p)
	s.text = appendMarked(head, p.Body, p.Rows)
	f := g.form(p.Shape)
	c, err := h.codecs.getCodec(f, s.text)
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

// Unpack returns the page of an entry. Its field Took is 0, because the page was not fetched.
func (h *Tier) Unpack(e *Entry) (*understudy.Page, error) {
	s := h.codecs.getScratch()
	defer h.codecs.putScratch(s)
	s.frame = append(append(s.frame[:0], e.packed.blob.head...), e.packed.blob.tail...)
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

// recordNumbers returns the record number of each row as the difference from the row before. It returns nil if the
// page is not stored.
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
	return cloneExact(b)
}

// compressGzip compresses b for Content-Encoding: gzip. The proxy must use the same level, because a body has the
// same strong ETag whoever compresses it.
func (c *codecs) compressGzip(b []byte) []byte {
	w, ok := c.gzips.Get().(*gzip.Writer)
	if !ok {
		w, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // an error would mean that the level is not valid
	}
	defer c.gzips.Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	_, _ = w.Write(b) // a write to memory does not fail
	_ = w.Close()
	return bytes.Clone(out.Bytes())
}
