// Fragments: pieces of HTML that are the same in many responses. Each fragment is rendered and compressed once. The
// HTML between two fragments is rendered for each response.

package page

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"hash/maphash"
	"html/template"
	"io"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/flate"

	"understudy/kit/lockwatch"
)

const (
	FragmentBytes  = 16 << 20 // the maximum size in bytes of all fragments in memory, plain and compressed together
	fragmentLevel  = 9        // the compression level of fragments, which is high because each is compressed only once
	maxStoredBlock = 64       // HTML outside of fragments is not compressed if it has at most this many bytes
	maxPackings    = 2        // the number of compressed forms kept for each fragment, for different HTML before it
	markByte       = 0        // the byte before and after a fragment's number in the buffer of a page; templates never write it
)

// Fragment is a piece of HTML that is the same in many responses.
type Fragment struct {
	Plain  []byte
	mu     lockwatch.Mutex
	packed []packing
}

// packing is a fragment compressed to DEFLATE blocks that refer to the fragments before it. The blocks can be reused
// in every response that has the same fragments before it at the same distances, whatever stands between them.
type packing struct {
	stretchesBefore []stretch
	bytes           []byte
}

// stretch is a number of bytes of HTML outside of fragments, followed by a fragment.
type stretch struct {
	plainBytes int
	fragment   *Fragment
}

var packers = sync.Pool{New: func() any {
	w, _ := flate.NewWriterDict(nil, fragmentLevel, nil) // an error would mean that the level is not valid
	return w
}}

// compress returns the fragment compressed (RFC 1951) for its place after the stretches in behind and drawn more
// bytes. The result ends with a sync flush.
func (f *Fragment) compress(behind []stretch, drawn int) []byte {
	behind = append(behind, stretch{drawn, nil})
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.packed {
		if slices.Equal(p.stretchesBefore, behind) {
			return p.bytes
		}
	}
	var b bytes.Buffer
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	w.ResetDict(&b, window(behind, f))
	_, _ = w.Write(f.Plain) // a write to a buffer never fails
	_ = w.Flush()
	if len(f.packed) == maxPackings {
		f.packed = f.packed[1:]
	}
	f.packed = append(slices.Clip(f.packed), packing{slices.Clone(behind), bytes.Clone(b.Bytes())})
	return f.packed[len(f.packed)-1].bytes
}

// window returns the bytes that the compressed fragment may refer to. HTML outside of fragments is replaced by NUL
// bytes. Fragments contain no NUL, so no reference can point there.
func window(behind []stretch, f *Fragment) []byte {
	if bytes.IndexByte(f.Plain, markByte) >= 0 {
		return nil
	}
	var w []byte
	for _, s := range behind {
		w = append(w, make([]byte, s.plainBytes)...)
		if s.fragment != nil {
			w = append(w, s.fragment.Plain...)
		}
	}
	return w
}

// Identity identifies the content of a fragment: fragments with the same identity have the same bytes. The cache
// belongs to one viewer. A new policy makes a new viewer, and so an empty cache.
type Identity struct {
	name   string // the name of the fragment, followed by the page's address
	caller string // the role and the source of the caller, or the caller's name if the fragment depends on it
	time   string // the time zone, the day, and other times on which the fragment depends
	hash   uint64 // a hash of the caller's view of the data and of all other values
}

// Identity returns the identity of a fragment of the current page, before the values that With adds.
func (q *Exchange) Identity(what string) Identity {
	c, notes := &q.Rights.Caller, int64(0) // the number of changes to the notes that the caller may see
	if q.Rights.CanSeeAnyNotes(q.Clock.AsOf) {
		notes = q.V.Options.Annotations.AnnotationsVersion()
	}
	return Identity{
		name: what + " " + q.R.URL.RequestURI(), caller: c.Role() + " " + c.Source + " " +
			strconv.FormatBool(c.Grant != nil && c.Grant.IsActive(q.Clock.Start)) + strconv.FormatInt(notes, 36),
		time: q.Clock.Zone.String() + q.Clock.Start.In(q.Clock.Zone).Format(" 2006-01-02"),
	}
}

// With returns the identity with a hash of more values on which the content of the fragment depends.
func (i Identity) With(s maphash.Seed, parts ...any) Identity {
	for _, p := range parts {
		var h maphash.Hash
		h.SetSeed(s)
		hashValue(&h, reflect.ValueOf(p))
		i.hash = i.hash*31 + h.Sum64()
	}
	return i
}

// hashValue adds a value, and everything it refers to, to the hash. It ignores the order of maps and the time zones of times.
func hashValue(h *maphash.Hash, v reflect.Value) {
	_ = h.WriteByte(byte(v.Kind()))
	switch v.Kind() {
	case reflect.Invalid:
	case reflect.Pointer, reflect.Interface:
		maphash.WriteComparable(h, v.IsNil())
		if !v.IsNil() {
			hashValue(h, v.Elem())
		}
	case reflect.String:
		maphash.WriteComparable(h, v.String())
	case reflect.Slice:
		maphash.WriteComparable(h, v.Len())
		if b, ok := v.Interface().([]byte); ok {
			_, _ = h.Write(b)
			return
		}
		for i := range v.Len() {
			hashValue(h, v.Index(i))
		}
	case reflect.Map:
		sum := uint64(v.Len())
		for all := v.MapRange(); all.Next(); {
			var one maphash.Hash
			one.SetSeed(h.Seed())
			hashValue(&one, all.Key())
			hashValue(&one, all.Value())
			sum += one.Sum64()
		}
		maphash.WriteComparable(h, sum)
	case reflect.Struct:
		if t, ok := v.Interface().(time.Time); ok {
			maphash.WriteComparable(h, [2]int64{t.Unix(), int64(t.Nanosecond())})
			return
		}
		for i := range v.NumField() {
			hashValue(h, v.Field(i))
		}
	default: // numbers and bools are hashed as they are
		maphash.WriteComparable(h, v.Interface())
	}
}

// RenderCached renders the named templates of a page as fragments, with the data that data returns. If the fragments are cached under
// the identity, it does not render them. Its results stand for the fragments and are valid only in the current page.
func (y *Reply) RenderCached(of Identity, data func() any, names ...string) ([]template.HTML, error) {
	return y.renderFragments(of, func() ([]string, any) { return names, data() })
}

// renderFragments is like Keep, but draw returns the names of the templates too. The result for a template that writes
// nothing is "".
func (y *Reply) renderFragments(of Identity, draw func() (names []string, data any)) ([]template.HTML, error) {
	all, ok := y.v.FragmentCache.Get(of)
	if !ok {
		names, d := draw()
		size := int64(0)
		for _, name := range names {
			var b bytes.Buffer
			if err := y.v.pages.templates.ExecuteTemplate(&b, name, d); err != nil {
				return nil, err
			}
			all = append(all, &Fragment{Plain: bytes.Clone(b.Bytes())})
			size += int64(b.Len()) + int64(b.Len())/4 + 512
		}
		y.v.FragmentCache.Put(of, all, size+512)
	}
	marks := make([]template.HTML, len(all))
	for i, f := range all {
		if len(f.Plain) == 0 {
			continue
		}
		y.Fragments = append(y.Fragments, f)
		// this mark is safe, because templates write no NUL bytes
		marks[i] = template.HTML("\x00" + strconv.Itoa(len(y.Fragments)-1) + "\x00")
	}
	return marks, nil
}

// splitAtMarks splits a page at the marks of its fragments. It calls yield for each piece of HTML with the fragment
// that follows it, and at the end with a nil fragment.
func (y *Reply) splitAtMarks(page []byte, yield func(drawn []byte, f *Fragment) error) error {
	for {
		i := bytes.IndexByte(page, markByte)
		if i < 0 {
			return yield(page, nil)
		}
		n := bytes.IndexByte(page[i+1:], markByte)
		at, err := strconv.ParseUint(string(page[i+1:max(i+1+n, i+1)]), 10, 32)
		if err != nil || at >= uint64(len(y.Fragments)) {
			// the bytes between two NUL bytes are not one of our marks
			return yield(bytes.ReplaceAll(page, []byte{markByte}, nil), nil)
		}
		if err := yield(page[:i], y.Fragments[at]); err != nil {
			return err
		}
		page = page[i+n+2:]
	}
}

// writePlain writes a page with its fragments, uncompressed.
func (y *Reply) writePlain(w io.Writer, page []byte) error {
	return y.splitAtMarks(page, func(drawn []byte, f *Fragment) error {
		_, err := w.Write(drawn)
		if err == nil && f != nil {
			_, err = w.Write(f.Plain)
		}
		return err
	})
}

// packer writes pages as one gzip stream (RFC 1952). It compresses the HTML outside of fragments and copies the
// compressed fragments. The client can decompress everything that has been added, before the end of the stream.
type packer struct {
	Independent bool // whether fragments must not refer to earlier fragments, because their order is not known in advance
	sum, size   uint32
	before      []byte // the bytes that the next compressed HTML may refer to
	stretches   []stretch
	bytesSince  int
}

func (p *packer) begin(w *bytes.Buffer) { w.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}) }

// add writes a piece of a page.
func (p *packer) add(y *Reply, w *bytes.Buffer, page []byte) error {
	defer func() { p.before = nil }() // the buffer of the page is reused after add returns, so nothing may refer to it
	return y.splitAtMarks(page, func(drawn []byte, f *Fragment) error {
		if len(drawn) > 0 {
			if err := writeCompressed(w, drawn, p.before); err != nil {
				return err
			}
			p.count(drawn)
			p.bytesSince += len(drawn)
		}
		if f == nil {
			return nil
		}
		if p.Independent {
			p.stretches, p.bytesSince = nil, 0
		}
		w.Write(f.compress(p.stretches, p.bytesSince))
		p.count(f.Plain)
		p.stretches, p.bytesSince = append(p.stretches, stretch{p.bytesSince, f}), 0
		return nil
	})
}

// writeCompressed writes bytes as complete DEFLATE blocks, which may refer to the window. It writes a few bytes as a
// stored block (RFC 1951, 3.2.4), because compressing them costs more than it saves.
func writeCompressed(w *bytes.Buffer, b, window []byte) error {
	if n := uint16(len(b)); len(b) <= maxStoredBlock {
		w.Write([]byte{0, byte(n), byte(n >> 8), byte(^n), byte(^n >> 8)})
		w.Write(b)
		return nil
	}
	return flate.StatelessDeflate(w, b, false, window)
}

func (p *packer) count(b []byte) {
	p.sum, p.size, p.before = crc32.Update(p.sum, crc32.IEEETable, b), p.size+uint32(len(b)), b
}

// end writes the last block, the checksum and the size, which end the gzip stream.
func (p *packer) end(w *bytes.Buffer) error {
	err := flate.StatelessDeflate(w, nil, true, nil)
	w.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, p.sum), p.size))
	return err
}

// writeGzip compresses a complete page with its fragments.
func (y *Reply) writeGzip(w *bytes.Buffer, page []byte) error {
	var p packer
	p.begin(w)
	return cmp.Or(p.add(y, w, page), p.end(w))
}
