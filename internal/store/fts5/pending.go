// Pending: rows that wait to be written, and are found all the same.

package fts5

import (
	"cmp"
	"slices"
)

// Pending is writes in the order of their postings; of each posting one row out, one in, or
// one out and then one in.
type Pending []Write

// Sort brings the writes of one save into the order of a Pending.
func Sort(writes []Write) {
	slices.SortFunc(writes, func(a, b Write) int {
		if c := cmp.Compare(a.Posting, b.Posting); c != 0 || a.Out == b.Out {
			return c
		}
		if a.Out {
			return -1
		}
		return 1
	})
}

// NewPending is what the writes of several saves come to, each sorted, the first save's
// first. It uses them up.
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
		if first.Out && !last.Out && first.Row == last.Row {
			continue // it stays
		}
		if first.Out {
			all = append(all, first)
		}
		if !last.Out {
			all = append(all, last)
		}
	}
	return Pending(all)
}
