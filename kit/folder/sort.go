// Sort: entries into the order of the keys they point to.

package folder

import (
	"bytes"
	"cmp"
	"slices"
)

// Sort puts the entries in order and drops those whose key comes again; reading
// does it when needed. It moves offsets only and allocates nothing. Keys are
// sorted byte by byte from the left, as long as many share what comes before:
// listings are full of ids that begin alike, and comparing two of them would
// begin anew each time.
func (f *Folder) Sort() {
	if !f.unsaid {
		return
	}
	f.unsaid = false
	if f.radix(f.entries, 0, 0) {
		f.compact()
	}
}

const (
	few  = 24 // entries that are sorted by comparing them
	deep = 64 // levels of radix in each other, each with 4 KiB of stack
)

// radix sorts a run of entries whose keys agree before depth, and says whether
// it has found a key twice.
func (f *Folder) radix(run []entry, depth uint32, level int) (twice bool) {
	for {
		if len(run) <= few || level > deep {
			return f.compared(run, depth)
		}
		var ends [257]int // of each bucket: 0 for keys that end here, then one for each byte
		for _, e := range run {
			ends[f.bucket(e, depth)]++
		}
		if first := f.bucket(run[0], depth); first != 0 && ends[first] == len(run) {
			depth++ // all go on alike
			continue
		}
		var next [257]int
		sum := 0
		for b, n := range ends {
			next[b] = sum
			sum += n
			ends[b] = sum
		}
		f.scatter(run, depth, &next, &ends)
		twice = f.compared(run[:ends[0]], depth) // equal keys: by their place
		start := ends[0]
		for b := 1; b < len(ends); b++ {
			if ends[b]-start > 1 && f.radix(run[start:ends[b]], depth+1, level+1) {
				twice = true
			}
			start = ends[b]
		}
		return twice
	}
}

// scatter moves each entry into its bucket, in place: an entry that is in the way moves
// on to its own.
func (f *Folder) scatter(run []entry, depth uint32, next, ends *[257]int) {
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

// bucket is 0 for a key that ends at depth, else 1 and its byte there.
func (f *Folder) bucket(e entry, depth uint32) int {
	if e.keyEnd-e.key <= depth {
		return 0
	}
	return int(f.blob[e.key+depth]) + 1
}

// compared sorts by comparing what comes behind depth; equal keys by their
// place in the blob. It says whether there are any.
func (f *Folder) compared(run []entry, depth uint32) (twice bool) {
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
	if len(run) > few {
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

// compact keeps the last entry of each key.
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
