// Fragments: pieces of pages that are the same in many views. A fragment is rendered and compressed once. Between
// two fragments stands the text that is only for the current view.

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
)

const (
	FragmentBytes  = 16 << 20 // the most memory for all fragments, compressed and not
	fragmentLevel  = 9        // the compression level of fragments, which are compressed once
	maxStoredBlock = 64       // text of the current view is not compressed if it has at most this many bytes
	maxPackings    = 2        // how many compressed forms one fragment keeps, for different texts before it
	markByte       = 0        // stands before and after a fragment's number in a page; templates never write it
)

// Fragment is a piece of a page.
type Fragment struct {
	Plain  []byte
	mu     sync.Mutex
	packed []packing
}

// packing is a fragment compressed to DEFLATE blocks that refer to the fragments before it. It can be reused
// wherever these fragments are at the same distance, with any text between them.
type packing struct {
	behind []stretch
	bytes  []byte
}

// stretch is a number of bytes for the current view, followed by a fragment.
type stretch struct {
	drawn int
	f     *Fragment
}

var packers = sync.Pool{New: func() any {
	w, _ := flate.NewWriterDict(nil, fragmentLevel, nil) // the level is valid, so there is no error
	return w
}}

// compress returns the fragment compressed (RFC 1951) for its place behind the given stretches and drawn more
// bytes. It ends with a sync flush.
func (f *Fragment) compress(behind []stretch, drawn int) []byte {
	behind = append(behind, stretch{drawn, nil})
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.packed {
		if slices.Equal(p.behind, behind) {
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

// window returns the bytes that a fragment may refer to. Bytes of the current view are NUL there. No fragment
// contains NUL, so no reference can point to them.
func window(behind []stretch, f *Fragment) []byte {
	if bytes.IndexByte(f.Plain, markByte) >= 0 {
		return nil
	}
	var w []byte
	for _, s := range behind {
		w = append(w, make([]byte, s.drawn)...)
		if s.f != nil {
			w = append(w, s.f.Plain...)
		}
	}
	return w
}

// Identity identifies the content of a fragment: equal identities mean the same bytes. Fragments are cached by the
// viewer, so they are lost when a new policy makes a new viewer.
type Identity struct {
	name   string // the name of the fragment, with the page's address
	caller string // the role and the source of the caller; its name if the fragment shows it
	time   string // the zone, the day, and whatever else the fragment shows of the time
	hash   uint64 // a hash of the view and all other values
}

// Identity returns an identity for the current page.
func (q *Exchange) Identity(what string) Identity {
	c, notes := &q.Rights.Caller, int64(0) // increases with every note that the caller may see
	if q.Rights.CanSeeAnyNotes(q.Clock.AsOf) {
		notes = q.V.Options.Annotations.AnnotationsVersion()
	}
	return Identity{
		name: what + " " + q.R.URL.RequestURI(), caller: c.Role() + " " + c.Source + " " +
			strconv.FormatBool(c.Grant != nil && c.Grant.IsActive(q.Clock.Start)) + strconv.FormatInt(notes, 36),
		time: q.Clock.Zone.String() + q.Clock.Start.In(q.Clock.Zone).Format(" 2006-01-02"),
	}
}

// With adds values that determine the content of a fragment. A difference in any part of a value makes another
// identity.
func (i Identity) With(s maphash.Seed, parts ...any) Identity {
	for _, p := range parts {
		var h maphash.Hash
		h.SetSeed(s)
		hashValue(&h, reflect.ValueOf(p))
		i.hash = i.hash*31 + h.Sum64()
	}
	return i
}

// hashValue adds a value and everything it refers to. The order of maps does not matter, and of a time only the
// moment counts.
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
	default: // a number or a bool
		maphash.WriteComparable(h, v.Interface())
	}
}

// Keep returns the named templates of a page as fragments. It renders them with the result of data unless they are
// cached under the identity. The results are marks, valid until the page is sent.
func (y *Reply) Keep(of Identity, data func() any, names ...string) ([]template.HTML, error) {
	return y.keepFragments(of, func() ([]string, any) { return names, data() })
}

// keepFragments is like Keep, but draw also returns the template names. The result of a template that writes nothing
// is "".
func (y *Reply) keepFragments(of Identity, draw func() (names []string, data any)) ([]template.HTML, error) {
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
		// our own mark: a template never writes a NUL of a value
		marks[i] = template.HTML("\x00" + strconv.Itoa(len(y.Fragments)-1) + "\x00")
	}
	return marks, nil
}

// splitAtMarks splits a page at its marks. It calls yield for each text of the current view and the fragment behind
// it, which is nil at the end.
func (y *Reply) splitAtMarks(page []byte, yield func(drawn []byte, f *Fragment) error) error {
	for {
		i := bytes.IndexByte(page, markByte)
		if i < 0 {
			return yield(page, nil)
		}
		n := bytes.IndexByte(page[i+1:], markByte)
		at, err := strconv.ParseUint(string(page[i+1:max(i+1+n, i+1)]), 10, 32)
		if err != nil || at >= uint64(len(y.Fragments)) {
			// the text between the NUL bytes is not one of our marks
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

// packer writes a page with its fragments as one gzip member (RFC 1952). It compresses the text of the current view
// and copies the compressed fragments. A client can decompress all that has been added so far.
type packer struct {
	Independent bool // fragments refer to no fragment before them, because their order is not known
	sum, size   uint32
	before      []byte // the window for compressing the next text
	behind      []stretch
	between     int
}

// begin writes the gzip header.
func (p *packer) begin(w *bytes.Buffer) { w.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}) }

// add writes a piece of a page.
func (p *packer) add(y *Reply, w *bytes.Buffer, page []byte) error {
	defer func() { p.before = nil }() // the page's buffer is reused afterwards
	return y.splitAtMarks(page, func(drawn []byte, f *Fragment) error {
		if len(drawn) > 0 {
			if err := writeCompressed(w, drawn, p.before); err != nil {
				return err
			}
			p.count(drawn)
			p.between += len(drawn)
		}
		if f == nil {
			return nil
		}
		if p.Independent {
			p.behind, p.between = nil, 0
		}
		w.Write(f.compress(p.behind, p.between))
		p.count(f.Plain)
		p.behind, p.between = append(p.behind, stretch{p.between, f}), 0
		return nil
	})
}

// writeCompressed writes bytes as complete blocks that may refer to the window. A few bytes become a stored block (RFC
// 1951, 3.2.4), because compressing them costs more than it saves.
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

// end writes the last block, the checksum and the size.
func (p *packer) end(w *bytes.Buffer) error {
	err := flate.StatelessDeflate(w, nil, true, nil)
	w.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, p.sum), p.size))
	return err
}

// writeGzip writes a complete page with its fragments.
func (y *Reply) writeGzip(w *bytes.Buffer, page []byte) error {
	var p packer
	p.begin(w)
	return cmp.Or(p.add(y, w, page), p.end(w))
}
