// Pending: entries that wait to be written, and are found all the same.

package inverted

import (
	"slices"
	"sort"

	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

// Pending is what the next Update is to do. It is only read.
type Pending struct {
	out, in []Entry // in order, none in both
	// Even has Find read as much for a token that no record has as for one that few have.
	Even bool
}

// NewPending is what several updates, one after the other, come to. It uses up both lists,
// whose order does not matter.
func NewPending(out, in []Entry) Pending {
	slices.SortFunc(out, Compare)
	slices.SortFunc(in, Compare)
	out, in = cancel(out, in)
	return Pending{out: slices.Compact(out), in: slices.Compact(in)}
}

// Each calls do with every entry that is to go out, and to come in.
func (p *Pending) Each(do func(e Entry, out bool)) {
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

// of are the postings of a token in sorted entries, in the order of an iterator.
func of(entries []Entry, up bool, token int64) (found []int64) {
	for _, e := range selectTokens(entries, token, token) {
		found = append(found, e.Posting)
	}
	if !up {
		slices.Reverse(found)
	}
	return found
}

// Find gives the postings that have one of the tokens once p is written. It reads when it is first advanced.
func (p *Pending) Find(c *sqlite.Conn, up bool, tokens ...int64) postings.Iterator {
	var written []int64 // tokens of which nothing is pending
	var all []postings.Iterator
	for _, token := range tokens {
		out, in := of(p.out, up, token), of(p.in, up, token)
		if len(out)+len(in) == 0 {
			written = append(written, token)
			continue
		}
		if len(in) > 0 {
			all = append(all, &postings.Slice{Up: up, Spots: in})
		}
		all = append(all, postings.Without(up, find(c, up, p.Even, token), &postings.Slice{Up: up, Spots: out}))
	}
	if len(written) > 0 || len(all) == 0 {
		all = append(all, find(c, up, p.Even, written...))
	}
	return postings.Or(up, all...)
}

// Between gives the postings that have a token from first to last once p is written. It reads them all when it is first
// advanced, and as much for tokens that no record has as for those that few have.
func (p *Pending) Between(c *sqlite.Conn, up bool, first, last int64) postings.Iterator {
	return &between{c: c, up: up, first: first, last: last, out: selectTokens(p.out, first, last), in: selectTokens(p.in, first, last)}
}
