// This file stores the entries of a listing as offsets into one slice of bytes, and compares two listings.

// Package folder compares an old and a new listing of keys and values, without allocating an object for each entry.
package folder

import (
	"bytes"
	"errors"
	"iter"
	"math"
	"sort"
)

// Difference says how the old and the new folder differ at a key.
type Difference uint8

// The three differences between an old and a new folder.
const (
	Removed Difference = iota + 1 // the key is only in the old folder
	Added                         // the key is only in the new folder
	Changed                       // the key is in both folders, with different values
)

// String returns "removed", "added" or "changed".
func (w Difference) String() string {
	if w >= Removed && w <= Changed {
		return [...]string{"removed", "added", "changed"}[w-Removed]
	}
	return "unknown"
}

// Folder is a listing that maps keys to values. Keys and values are bytes of one blob, and an entry is four
// offsets into it, in a slice without pointers. So a folder is two allocations, and the garbage collector has
// nothing to scan. The blob belongs to the folder and grows with Add, or it is a body of the caller that Wrap
// and AddSpan use in place. If a key occurs twice, the entry that comes last in the blob counts. The zero value
// is an empty folder. Folder is not safe for concurrent use, not even for reading, because the first read after
// a change sorts it.
type Folder struct {
	blob     []byte
	entries  []entry
	shared   bool // whether the blob belongs to the caller
	unsorted bool // whether entries may be out of order or may contain a key twice
}

// entry holds the offsets of a key and its value in the blob.
type entry struct{ key, keyEnd, value, valueEnd uint32 }

// ErrFull is the error for a folder whose blob would exceed 4 GiB.
var ErrFull = errors.New("folder: more than 4 GiB")

// New returns an empty folder with space for entries entries and size bytes of keys and values. The folder can
// grow beyond that.
func New(entries, size int) *Folder {
	return &Folder{blob: make([]byte, 0, size), entries: make([]entry, 0, entries)}
}

// Wrap returns an empty folder whose entries will point into body, with space for entries entries. The body is
// neither copied nor changed. If body is larger than 4 GiB, Wrap returns ErrFull.
func Wrap(body []byte, entries int) (*Folder, error) {
	if len(body) > math.MaxUint32 {
		return nil, ErrFull
	}
	return &Folder{blob: body, shared: true, entries: make([]entry, 0, entries)}, nil
}

// Reset empties the folder and keeps its memory for new entries.
func (f *Folder) Reset() {
	if f.shared {
		f.blob, f.shared = nil, false
	}
	f.blob, f.entries, f.unsorted = f.blob[:0], f.entries[:0], false
}

// Add copies one entry into the folder. Adding entries in the order of keys avoids sorting. A folder made by
// Wrap copies its body first. If the blob would exceed 4 GiB, Add returns ErrFull.
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

// AddSpan adds one entry whose key and value are bytes of the blob: blob[key:keyEnd] and blob[value:valueEnd].
// They may overlap. AddSpan panics if they are not within the blob.
func (f *Folder) AddSpan(key, keyEnd, value, valueEnd int) {
	_, _ = f.blob[key:keyEnd], f.blob[value:valueEnd]
	f.add(entry{uint32(key), uint32(keyEnd), uint32(value), uint32(valueEnd)})
}

func (f *Folder) add(e entry) {
	if n := len(f.entries); n > 0 && !f.unsorted {
		f.unsorted = bytes.Compare(f.key(f.entries[n-1]), f.key(e)) >= 0
	}
	f.entries = append(f.entries, e)
}

func (f *Folder) key(e entry) []byte   { return f.blob[e.key:e.keyEnd:e.keyEnd] }
func (f *Folder) value(e entry) []byte { return f.blob[e.value:e.valueEnd:e.valueEnd] }

// Len returns the number of keys.
func (f *Folder) Len() int {
	f.Sort()
	return len(f.entries)
}

// Get returns the value of a key. The caller must not change the returned bytes.
func (f *Folder) Get(key []byte) (value []byte, ok bool) {
	f.Sort()
	i, ok := sort.Find(len(f.entries), func(i int) int { return bytes.Compare(key, f.key(f.entries[i])) })
	if !ok {
		return nil, false
	}
	return f.value(f.entries[i]), true
}

// All returns the entries in the order of their keys.
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

// Merge walks two folders side by side in the order of keys and yields the differences, until yield returns
// false. oldValue is nil for Added, newValue is nil for Removed. The caller must not change the yielded bytes.
// Merge sorts the folders if needed and allocates nothing.
//
//	old  a b   d        a key only on the old side was removed,
//	new  a   c d        a key only on the new side was added
func Merge(old, new *Folder, yield func(what Difference, key, oldValue, newValue []byte) bool) {
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
