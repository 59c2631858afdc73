// This file handles rows that are not written yet. Searches already find them.

package wordrows

import (
	"cmp"
	"slices"
)

// Pending contains writes in the order of their postings. A posting has one row to delete, or one row to write, or a row
// to delete followed by a row to write.
type Pending []Write

// Sort sorts the writes of one save in the order of a Pending.
func Sort(writes []Write) {
	slices.SortFunc(writes, func(a, b Write) int {
		if c := cmp.Compare(a.Posting, b.Posting); c != 0 || a.Delete == b.Delete {
			return c
		}
		if a.Delete {
			return -1
		}
		return 1
	})
}

// NewPending combines the writes of several saves. The writes of each save are sorted, and the first save comes
// first. It reuses their memory.
func NewPending(writes []Write) Pending {
	slices.SortStableFunc(writes, func(a, b Write) int { return cmp.Compare(a.Posting, b.Posting) })
	all := writes[:0]
	for len(writes) > 0 {
		n := 1
		for n < len(writes) && writes[n].Posting == writes[0].Posting {
			n++
		}
		first, last := writes[0], writes[n-1]
		writes = writes[n:]
		if first.Delete && !last.Delete && first.Row == last.Row {
			continue // the new row equals the stored row, so there is nothing to write
		}
		if first.Delete {
			all = append(all, first)
		}
		if !last.Delete {
			all = append(all, last)
		}
	}
	return Pending(all)
}
