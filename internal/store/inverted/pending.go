// This file handles entries that are not written to the index yet. Searches already find them.

package inverted

import (
	"slices"
	"sort"

	"understudy/internal/store/db"
	"understudy/internal/store/postings"
)

// Pending is the entries that the next Update will remove and add. It is read-only.
type Pending struct {
	out, in []Entry // both lists are sorted, and no entry is in both lists
	// Even makes Find read as much for a token that no record has as for a token that few records have.
	Even bool
}

// NewPending combines several consecutive updates. The lists need not be sorted. NewPending reuses their memory.
func NewPending(out, in []Entry) Pending {
	slices.SortFunc(out, Compare)
	slices.SortFunc(in, Compare)
	out, in = cancel(out, in)
	return Pending{out: slices.Compact(out), in: slices.Compact(in)}
}

// VisitEntries calls do with every entry to remove and every entry to add.
func (p *Pending) VisitEntries(do func(e Entry, out bool)) {
	for _, e := range p.out {
		do(e, true)
	}
	for _, e := range p.in {
		do(e, false)
	}
}

// selectTokens returns the sorted entries of tokens from first to last.
func selectTokens(entries []Entry, first, last int64) []Entry {
	from := sort.Search(len(entries), func(i int) bool { return entries[i].Token >= first })
	to := sort.Search(len(entries), func(i int) bool { return entries[i].Token > last })
	return entries[from:to]
}

// postingsOf returns the postings of a token from sorted entries, in the order of iteration.
func postingsOf(entries []Entry, up bool, token int64) (found []int64) {
	for _, e := range selectTokens(entries, token, token) {
		found = append(found, e.Posting)
	}
	if !up {
		slices.Reverse(found)
	}
	return found
}

// Find returns an iterator over the postings of any of the tokens as if p were written. It reads nothing before
// its first Advance.
func (p *Pending) Find(c db.Conn, up bool, tokens ...int64) postings.Iterator {
	var written []int64 // the tokens without pending entries
	var all []postings.Iterator
	for _, token := range tokens {
		out, in := postingsOf(p.out, up, token), postingsOf(p.in, up, token)
		if len(out)+len(in) == 0 {
			written = append(written, token)
			continue
		}
		if len(in) > 0 {
			all = append(all, &postings.Slice{Up: up, Spots: in})
		}
		all = append(all, postings.Exclude(up, find(c, up, p.Even, token), &postings.Slice{Up: up, Spots: out}))
	}
	if len(written) > 0 || len(all) == 0 {
		all = append(all, find(c, up, p.Even, written...))
	}
	return postings.Unite(up, all...)
}

// FindRange returns an iterator over the postings of the tokens from first to last as if p were written. The first
// Advance reads all of them. It reads as much for tokens that no record has as for tokens that few records have.
func (p *Pending) FindRange(c db.Conn, up bool, first, last int64) postings.Iterator {
	return &rangeFinder{c: c, up: up, first: first, last: last, out: selectTokens(p.out, first, last), in: selectTokens(p.in, first, last)}
}
