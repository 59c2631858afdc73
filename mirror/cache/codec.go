// Codecs of the hot tier: zstd with one dictionary for each shape of page.

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
	maxDictionaries   = 8         // shapes with their own dictionary; the first ones get it
	dictionarySize    = 32 << 10  // the size of a dictionary in bytes; a larger one compresses no better
	minDictionaryText = 12 << 10  // a shorter text makes a poor dictionary
	windowSize        = 128 << 10 // large enough for a typical page
	codecCost         = 1300 << 10
)

// Group is the pages in memory of one kind of a source.
type Group struct {
	kind     string
	nonLists atomic.Int64 // entries in the tier that are not lists of records
	mu       sync.Mutex
	forms    map[string]*form
}

// NewGroup returns the empty group of a kind.
func NewGroup(kind string) *Group { return &Group{kind: kind, forms: map[string]*form{}} }

// isRecordList reports whether the entry is a list whose records have numbers. Such a list cannot show a
// record that is newer than the list.
func (e *Entry) isRecordList() bool { return e.List && (e.Stored || e.Composed) }

// HasOnlyLists reports whether no entry of a group can show a new record, because all entries are lists of
// older records.
func (h *Tier) HasOnlyLists(g *Group) bool { return g.nonLists.Load() == 0 }

// form is one shape of a kind. Its pages look alike, so they share a codec.
type form struct {
	group *Group
	shape string
	codec atomic.Pointer[codec]
}

// form returns the form of a shape and creates it if needed. There are at most twice as many forms as the
// spec has shapes (understudy.ForeignShape).
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

// codecs creates the codecs and counts their memory.
type codecs struct {
	mu               sync.Mutex
	dictionariesLeft int // number of dictionaries that may still be created
	plain            *codec
	created          atomic.Int64
	frames           sync.Pool // buffers (*scratch)
	gzips            sync.Pool // writers (*gzip.Writer)
}

// scratch is the working memory for packing or unpacking one page.
type scratch struct{ text, frame []byte }

func (c *codecs) cost() int64 { return c.created.Load() * codecCost }

func (c *codecs) getScratch() *scratch {
	if s, ok := c.frames.Get().(*scratch); ok {
		return s
	}
	return &scratch{}
}

// putScratch returns scratch memory to the pool unless it has grown too large.
func (c *codecs) putScratch(s *scratch) {
	if cap(s.text)+cap(s.frame) <= 1<<20 {
		c.frames.Put(s)
	}
}

// getCodec returns the form's codec. The first page that is long enough becomes its dictionary. Until then,
// and for forms beyond the limit, a codec without dictionary is used. A page keeps the codec with which it
// was packed.
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

// newCodec returns a codec with a dictionary, or without one if it is nil.
func newCodec(dictionary []byte) (*codec, error) {
	const id = 1 // a decoder knows only one dictionary
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

// Pack returns an entry with the packed page. It returns nil if the page cannot be packed.
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

// Unpack returns the page of an entry. Its field Took is 0.
func (h *Tier) Unpack(e *Entry) (*understudy.Page, error) {
	s := h.codecs.getScratch()
	defer h.codecs.putScratch(s)
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

// recordNumbers returns the rows' record numbers as differences. It returns nil if the page is not stored.
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

// compressGzip returns b compressed for Content-Encoding: gzip. The level must equal that of the proxy,
// because both results have the same strong ETag.
func (c *codecs) compressGzip(b []byte) []byte {
	w, ok := c.gzips.Get().(*gzip.Writer)
	if !ok {
		w, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	}
	defer c.gzips.Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	_, _ = w.Write(b) // writing to memory does not fail
	_ = w.Close()
	return bytes.Clone(out.Bytes())
}
