// Folder: ids in order, in one piece of memory.

package walk

import (
	"cmp"
	"slices"
	"strings"
)

// entry is one id and the record it lies under.
type entry struct{ id, parent string }

// folder is a set of entries. It is filled, sorted once, and read.
type folder struct {
	text    []byte
	entries []where
}

// where is an entry's place in the text.
type where struct {
	at         int64
	id, parent uint16
}

func (f *folder) add(id, parent string) {
	if len(id) > 1<<15 || len(parent) > 1<<15 {
		return // no id is so long
	}
	f.entries = append(f.entries, where{int64(len(f.text)), uint16(len(id)), uint16(len(parent))})
	f.text = append(append(f.text, id...), parent...)
}

func (f *folder) len() int { return len(f.entries) }

// size is how many bytes it takes.
func (f *folder) size() int64 { return int64(cap(f.text) + 16*cap(f.entries)) }

func (f *folder) id(w where) string { return string(f.text[w.at : w.at+int64(w.id)]) }

func (f *folder) sort() {
	slices.SortFunc(f.entries, func(a, b where) int {
		return strings.Compare(f.id(a), f.id(b))
	})
}

// less are the entries whose id the other does not have, each id once. Both are
// sorted.
func (f *folder) less(other *folder) []entry {
	var out []entry
	j, last := 0, ""
	for i, w := range f.entries {
		id := f.id(w)
		if i > 0 && id == last {
			continue
		}
		last = id
		for j < len(other.entries) && cmp.Compare(other.id(other.entries[j]), id) < 0 {
			j++
		}
		if j == len(other.entries) || other.id(other.entries[j]) != id {
			end := w.at + int64(w.id)
			out = append(out, entry{id, string(f.text[end : end+int64(w.parent)])})
		}
	}
	return out
}
