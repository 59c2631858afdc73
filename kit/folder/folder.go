// Folder: entries in one blob, found through offsets.

// Package folder compares an old and a new listing without an object an entry.
package folder

import (
	"bytes"
	"errors"
	"iter"
	"math"
	"sort"
)

// What says how two folders differ at a key.
type What uint8

// The three differences, seen from the old folder to the new one.
const (
	Removed What = iota + 1 // in the old one alone
	Added                   // in the new one alone
	Changed                 // in both, with different values
)

// String is "removed", "added" or "changed".
func (w What) String() string {
	if w >= Removed && w <= Changed {
		return [...]string{"removed", "added", "changed"}[w-Removed]
	}
	return "unknown"
}

// Folder is a listing: a value to each key. Keys and values are bytes of one blob. An
// entry is four offsets into it, in one slice without pointers. So a folder is two
// allocations, and the garbage collector walks over nothing. The blob is the folder's
// own and grows with Add, or it is a body of the caller's, which Over and AddSpan leave
// in place. When a key comes twice, the entry that lies last in the blob counts. The
// zero value is an empty folder. It is not safe for concurrent use, not even for
// reading: the first read after a change sorts it.
type Folder struct {
	blob    []byte
	entries []entry
	shared  bool // the blob is the caller's
	unsaid  bool // entries are not known to be in order, each key once
}

// entry is where a key and its value are.
type entry struct{ key, keyEnd, value, valueEnd uint32 }

// ErrFull is the error of a folder whose blob would pass 4 GiB.
var ErrFull = errors.New("folder: more than 4 GiB")

// New is an empty folder with space for that many entries and bytes of keys and values.
// It grows beyond that.
func New(entries, size int) *Folder {
	return &Folder{blob: make([]byte, 0, size), entries: make([]entry, 0, entries)}
}

// Over is an empty folder over body, which is neither copied nor changed, with
// room for that many entries. The error is ErrFull.
func Over(body []byte, entries int) (*Folder, error) {
	if len(body) > math.MaxUint32 {
		return nil, ErrFull
	}
	return &Folder{blob: body, shared: true, entries: make([]entry, 0, entries)}, nil
}

// Reset empties the folder and keeps its memory for what comes next.
func (f *Folder) Reset() {
	if f.shared {
		f.blob, f.shared = nil, false
	}
	f.blob, f.entries, f.unsaid = f.blob[:0], f.entries[:0], false
}

// Add copies one entry into the folder. Adding in the order of keys saves the
// sorting. The error is ErrFull. Of a folder over a body it makes a copy of its
// own first.
func (f *Folder) Add(key, value []byte) error {
	if len(f.blob)+len(key)+len(value) > math.MaxUint32 {
		return ErrFull
	}
	if f.shared {
		f.blob, f.shared = bytes.Clone(f.blob), false
	}
	start := len(f.blob)
	f.blob = append(append(f.blob, key...), value...)
	end := start + len(key)
	f.add(entry{uint32(start), uint32(end), uint32(end), uint32(len(f.blob))})
	return nil
}

// AddSpan adds one entry whose key and value are bytes of the blob: blob[key :
// keyEnd] and blob[value : valueEnd]. They may overlap. It panics when they are
// not within it.
func (f *Folder) AddSpan(key, keyEnd, value, valueEnd int) {
	_, _ = f.blob[key:keyEnd], f.blob[value:valueEnd]
	f.add(entry{uint32(key), uint32(keyEnd), uint32(value), uint32(valueEnd)})
}

func (f *Folder) add(e entry) {
	if n := len(f.entries); n > 0 && !f.unsaid {
		f.unsaid = bytes.Compare(f.key(f.entries[n-1]), f.key(e)) >= 0
	}
	f.entries = append(f.entries, e)
}

func (f *Folder) key(e entry) []byte   { return f.blob[e.key:e.keyEnd:e.keyEnd] }
func (f *Folder) value(e entry) []byte { return f.blob[e.value:e.valueEnd:e.valueEnd] }

// Len is the number of keys.
func (f *Folder) Len() int {
	f.Sort()
	return len(f.entries)
}

// Get is the value of a key; it stays the folder's.
func (f *Folder) Get(key []byte) (value []byte, ok bool) {
	f.Sort()
	i, ok := sort.Find(len(f.entries), func(i int) int { return bytes.Compare(key, f.key(f.entries[i])) })
	if !ok {
		return nil, false
	}
	return f.value(f.entries[i]), true
}

// All are the entries in the order of their keys.
func (f *Folder) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		f.Sort()
		for _, e := range f.entries {
			if !yield(f.key(e), f.value(e)) {
				return
			}
		}
	}
}

// Merge walks two folders side by side in the order of keys and yields what
// differs, until yield returns false: with oldValue nil for Added, newValue nil
// for Removed. What is yielded stays the folders'. It sorts them when they are
// not, and allocates nothing.
//
//	old  a b   d        a key that is behind on the old side is gone,
//	new  a   c d        one that is behind on the new side has come
func Merge(old, new *Folder, yield func(what What, key, oldValue, newValue []byte) bool) {
	old.Sort()
	new.Sort()
	a, b := old.entries, new.entries
	for len(a) > 0 && len(b) > 0 {
		on := true
		switch c := bytes.Compare(old.key(a[0]), new.key(b[0])); {
		case c < 0:
			on = yield(Removed, old.key(a[0]), old.value(a[0]), nil)
			a = a[1:]
		case c > 0:
			on = yield(Added, new.key(b[0]), nil, new.value(b[0]))
			b = b[1:]
		default:
			if before, after := old.value(a[0]), new.value(b[0]); !bytes.Equal(before, after) {
				on = yield(Changed, new.key(b[0]), before, after)
			}
			a, b = a[1:], b[1:]
		}
		if !on {
			return
		}
	}
	for _, e := range a {
		if !yield(Removed, old.key(e), old.value(e), nil) {
			return
		}
	}
	for _, e := range b {
		if !yield(Added, new.key(e), nil, new.value(e)) {
			return
		}
	}
}
