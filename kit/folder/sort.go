// Sort: sorts entries by their keys.

package folder

import (
	"bytes"
	"cmp"
	"slices"
)

// Sort sorts the entries and drops duplicates of a key. Reading calls it when needed. Sort moves only offsets
// and allocates nothing. It is a radix sort by byte from the left, because the ids of a listing often share a
// long prefix, which a comparison would read again each time.
func (f *Folder) Sort() {
	if !f.unsorted {
		return
	}
	f.unsorted = false
	if f.sortByRadix(f.entries, 0, 0) {
		f.compact()
	}
}

const (
	maxCompared = 24 // the maximum number of entries that are sorted by comparing them
	maxLevels   = 64 // the maximum depth of recursion; each level takes 4 KiB of stack
)

// sortByRadix sorts entries whose keys agree in the first depth bytes. It reports whether a key occurs twice.
func (f *Folder) sortByRadix(run []entry, depth uint32, level int) (twice bool) {
	for {
		if len(run) <= maxCompared || level > maxLevels {
			return f.sortByComparing(run, depth)
		}
		var ends [257]int // the end of each bucket: bucket 0 for keys that end at depth, then one bucket for each byte
		for _, e := range run {
			ends[f.bucket(e, depth)]++
		}
		if first := f.bucket(run[0], depth); first != 0 && ends[first] == len(run) {
			depth++ // all keys have the same byte at this depth
			continue
		}
		var next [257]int
		sum := 0
		for b, n := range ends {
			next[b] = sum
			sum += n
			ends[b] = sum
		}
		f.moveToBuckets(run, depth, &next, &ends)
		twice = f.sortByComparing(run[:ends[0]], depth) // among equal keys, the order in the blob decides
		start := ends[0]
		for b := 1; b < len(ends); b++ {
			if ends[b]-start > 1 && f.sortByRadix(run[start:ends[b]], depth+1, level+1) {
				twice = true
			}
			start = ends[b]
		}
		return twice
	}
}

// moveToBuckets moves each entry into its bucket in place. An entry that occupies a place of another bucket is
// moved to its own bucket first.
func (f *Folder) moveToBuckets(run []entry, depth uint32, next, ends *[257]int) {
	for b := range ends {
		for next[b] < ends[b] {
			e := run[next[b]]
			for {
				to := f.bucket(e, depth)
				at := next[to]
				next[to]++
				if to == b {
					run[at] = e
					break
				}
				e, run[at] = run[at], e
			}
		}
	}
}

// bucket returns 0 for a key that ends at depth, else 1 plus the byte of the key at depth.
func (f *Folder) bucket(e entry, depth uint32) int {
	if e.keyEnd-e.key <= depth {
		return 0
	}
	return int(f.blob[e.key+depth]) + 1
}

// sortByComparing sorts entries by comparing their keys after the first depth bytes, and equal keys by their
// place in the blob. It reports whether there are equal keys.
func (f *Folder) sortByComparing(run []entry, depth uint32) (twice bool) {
	if len(run) < 2 {
		return false
	}
	order := func(a, b entry) int {
		if c := bytes.Compare(f.blob[min(a.key+depth, a.keyEnd):a.keyEnd], f.blob[min(b.key+depth, b.keyEnd):b.keyEnd]); c != 0 {
			return c
		}
		twice = true
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value))
	}
	if len(run) > maxCompared {
		slices.SortFunc(run, order)
		return twice
	}
	for i := 1; i < len(run); i++ {
		for e, j := run[i], i; j > 0 && order(run[j-1], e) > 0; j-- {
			run[j], run[j-1] = run[j-1], e
		}
	}
	return twice
}

// compact keeps only the last entry of each key.
func (f *Folder) compact() {
	kept := f.entries[:0]
	for i, e := range f.entries {
		if i+1 < len(f.entries) && bytes.Equal(f.key(e), f.key(f.entries[i+1])) {
			continue
		}
		kept = append(kept, e)
	}
	f.entries = kept
}
