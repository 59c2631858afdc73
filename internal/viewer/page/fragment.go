// Fragment: a piece of a page that stays the same from view to view. It is drawn
// and compressed once; between two of them stands what is of this view alone.

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
	FragmentBytes = 16 << 20 // of all fragments, compressed and not
	packLevel     = 9        // of what is compressed once
	stored        = 64       // of what is drawn for a view: up to so many bytes are not compressed
	mostPackings  = 2        // of one fragment, behind different texts
	markByte      = 0        // stands around a fragment's number in a page; templates write none
)

// Fragment is a piece of a page.
type Fragment struct {
	Plain  []byte
	mu     sync.Mutex
	packed []packing
}

// packing is a fragment as a run of DEFLATE blocks that refers to the fragments
// before it. It fits where they are as far away, whatever stands between them.
type packing struct {
	behind []stretch
	bytes  []byte
}

// stretch is a fragment in a page, behind so many bytes that were drawn for the view.
type stretch struct {
	drawn int
	f     *Fragment
}

var packers = sync.Pool{New: func() any {
	w, _ := flate.NewWriterDict(nil, packLevel, nil) // the level is in range
	return w
}}

// deflated is the fragment compressed, to be written behind these stretches and
// so many bytes (RFC 1951; it ends with a sync flush).
func (f *Fragment) deflated(behind []stretch, drawn int) []byte {
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
	_, _ = w.Write(f.Plain) // no write into b fails
	_ = w.Flush()
	if len(f.packed) == mostPackings {
		f.packed = f.packed[1:]
	}
	f.packed = append(slices.Clip(f.packed), packing{slices.Clone(behind), bytes.Clone(b.Bytes())})
	return f.packed[len(f.packed)-1].bytes
}

// window is what a fragment can refer to. Bytes that were drawn are NUL there,
// which no fragment holds, so that nothing refers to them.
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

// Identity says of what a fragment is made: two of the same are the same bytes. A
// fragment lives in one viewer, so it dies with its policy.
type Identity struct {
	what string // which fragment: its page and the address
	who  string // role and source of the caller; its name where it is shown
	when string // zone, day and whatever else of the time it shows
	of   uint64 // of the view and everything beside it
}

// Identity begins one for the page at hand.
func (q *Exchange) Identity(what string) Identity {
	c, notes := &q.Rights.Caller, int64(0) // rises with every note that the caller may see
	if q.Rights.SeesAnyNotes(q.Clock.AsOf) {
		notes = q.V.Options.Annotations.AnnotationsVersion()
	}
	return Identity{
		what: what + " " + q.R.URL.RequestURI(), who: c.Role() + " " + c.Source + " " +
			strconv.FormatBool(c.Grant != nil && c.Grant.Live(q.Clock.Start)) + strconv.FormatInt(notes, 36),
		when: q.Clock.Zone.String() + q.Clock.Start.In(q.Clock.Zone).Format(" 2006-01-02"),
	}
}

// With adds what a fragment is made of, whatever it is: a value that differs in
// anything makes another identity.
func (i Identity) With(s maphash.Seed, parts ...any) Identity {
	for _, p := range parts {
		var h maphash.Hash
		h.SetSeed(s)
		hash(&h, reflect.ValueOf(p))
		i.of = i.of*31 + h.Sum64()
	}
	return i
}

// hash adds a value and all it holds; maps in any order, of times the moment.
func hash(h *maphash.Hash, v reflect.Value) {
	_ = h.WriteByte(byte(v.Kind()))
	switch v.Kind() {
	case reflect.Invalid:
	case reflect.Pointer, reflect.Interface:
		maphash.WriteComparable(h, v.IsNil())
		if !v.IsNil() {
			hash(h, v.Elem())
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
			hash(h, v.Index(i))
		}
	case reflect.Map:
		sum := uint64(v.Len())
		for all := v.MapRange(); all.Next(); {
			var one maphash.Hash
			one.SetSeed(h.Seed())
			hash(&one, all.Key())
			hash(&one, all.Value())
			sum += one.Sum64()
		}
		maphash.WriteComparable(h, sum)
	case reflect.Struct:
		if t, ok := v.Interface().(time.Time); ok {
			maphash.WriteComparable(h, [2]int64{t.Unix(), int64(t.Nanosecond())})
			return
		}
		for i := range v.NumField() {
			hash(h, v.Field(i))
		}
	default: // a number or a bool
		maphash.WriteComparable(h, v.Interface())
	}
}

// Keep gives the named templates of a page as they were drawn for the same
// identity before, or draws them with what data makes. What it gives stands in a
// page until that is sent.
func (y *Reply) Keep(of Identity, data func() any, names ...string) ([]template.HTML, error) {
	return y.fragmentsOf(of, func() ([]string, any) { return names, data() })
}

// fragmentsOf is keep for templates of which draw gives the names, too. Of a
// template that draws nothing it gives "".
func (y *Reply) fragmentsOf(of Identity, draw func() (names []string, data any)) ([]template.HTML, error) {
	all, ok := y.v.Kept.Get(of)
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
		y.v.Kept.Put(of, all, size+512)
	}
	marks := make([]template.HTML, len(all))
	for i, f := range all {
		if len(f.Plain) == 0 {
			continue
		}
		y.Fragments = append(y.Fragments, f)
		marks[i] = template.HTML("\x00" + strconv.Itoa(len(y.Fragments)-1) + "\x00") // ours: a template writes no NUL of a value
	}
	return marks, nil
}

// pieces hands out a page as it is to be sent: what was drawn for this view, and
// the fragments (nil: none) behind each stretch of it.
func (y *Reply) pieces(page []byte, yield func(drawn []byte, f *Fragment) error) error {
	for {
		i := bytes.IndexByte(page, markByte)
		if i < 0 {
			return yield(page, nil)
		}
		n := bytes.IndexByte(page[i+1:], markByte)
		at, err := strconv.ParseUint(string(page[i+1:max(i+1+n, i+1)]), 10, 32)
		if err != nil || at >= uint64(len(y.Fragments)) {
			return yield(bytes.ReplaceAll(page, []byte{markByte}, nil), nil) // no mark of ours
		}
		if err := yield(page[:i], y.Fragments[at]); err != nil {
			return err
		}
		page = page[i+n+2:]
	}
}

// writePlain writes a page with its fragments.
func (y *Reply) writePlain(w io.Writer, page []byte) error {
	return y.pieces(page, func(drawn []byte, f *Fragment) error {
		_, err := w.Write(drawn)
		if err == nil && f != nil {
			_, err = w.Write(f.Plain)
		}
		return err
	})
}

// packer writes a page with its fragments as one gzip member (RFC 1952): what was
// drawn for this view is compressed now, the fragments were before. What has been
// added can be unpacked at once.
type packer struct {
	Apart     bool // fragments refer to none before them: in which order they come is not known
	sum, size uint32
	before    []byte // a window for what comes next
	behind    []stretch
	between   int
}

// begin writes what is in front of the first piece.
func (p *packer) begin(w *bytes.Buffer) { w.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}) }

// add writes a piece of a page.
func (p *packer) add(y *Reply, w *bytes.Buffer, page []byte) error {
	defer func() { p.before = nil }() // the page's buffer is for others then
	return y.pieces(page, func(drawn []byte, f *Fragment) error {
		if len(drawn) > 0 {
			if err := deflate(w, drawn, p.before); err != nil {
				return err
			}
			p.count(drawn)
			p.between += len(drawn)
		}
		if f == nil {
			return nil
		}
		if p.Apart {
			p.behind, p.between = nil, 0
		}
		w.Write(f.deflated(p.behind, p.between))
		p.count(f.Plain)
		p.behind, p.between = append(p.behind, stretch{p.between, f}), 0
		return nil
	})
}

// deflate writes bytes as whole blocks, behind a window. Of a few bytes it makes a
// stored block (RFC 1951, 3.2.4): looking for what repeats in them costs more.
func deflate(w *bytes.Buffer, b, window []byte) error {
	if n := uint16(len(b)); len(b) <= stored {
		w.Write([]byte{0, byte(n), byte(n >> 8), byte(^n), byte(^n >> 8)})
		w.Write(b)
		return nil
	}
	return flate.StatelessDeflate(w, b, false, window)
}

func (p *packer) count(b []byte) {
	p.sum, p.size, p.before = crc32.Update(p.sum, crc32.IEEETable, b), p.size+uint32(len(b)), b
}

// end writes what is behind the last piece.
func (p *packer) end(w *bytes.Buffer) error {
	err := flate.StatelessDeflate(w, nil, true, nil)
	w.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, p.sum), p.size))
	return err
}

// writeGzip writes a whole page with its fragments.
func (y *Reply) writeGzip(w *bytes.Buffer, page []byte) error {
	var p packer
	p.begin(w)
	return cmp.Or(p.add(y, w, page), p.end(w))
}
