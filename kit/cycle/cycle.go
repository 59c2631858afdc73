// Finder: detects that a sequence repeats, and that the pages of a list have no end.

// Package cycle detects in constant memory that a sequence repeats itself, or that a list has no end.
package cycle

import (
	"fmt"
	"hash/fnv"
)

// Finder detects cycles in a sequence by Brent's algorithm (R. P. Brent, An improved Monte Carlo factorization
// algorithm, BIT 20, 1980). It remembers one value and replaces it by the current value after 1, 2, 4 … steps.
// The number of steps to detect a cycle is at most about three times the steps before the cycle plus its
// length. The zero Finder is ready to use, and its state can be stored as JSON. It is not safe for concurrent
// use.
type Finder struct {
	Value   uint64 `json:"value,omitempty"` // the remembered value of the sequence
	Steps   int64  `json:"steps,omitempty"` // the number of steps since Value was remembered or last repeated
	Limit   int64  `json:"limit,omitempty"` // the number of steps after which Value is replaced
	Repeats int    `json:"met,omitempty"`   // how many times the sequence has repeated the remembered value
}

// Next takes the next value of the sequence and returns how many times the remembered value was repeated. It
// returns 0 while no cycle is known.
func (f *Finder) Next(value uint64) int {
	switch {
	case f.Limit > 0 && value == f.Value:
		f.Steps = 0
		f.Repeats++
	case f.Steps == f.Limit:
		*f = Finder{Value: value, Limit: max(1, 2*f.Limit)}
	default:
		f.Steps++
	}
	return f.Repeats
}

// Pages detects that the pages of a list have no end. The zero Pages is ready to use.
type Pages struct {
	Links Finder `json:"links,omitzero"`
	Rows  Finder `json:"rows,omitzero"`
	Count int64  `json:"count,omitempty"` // the number of pages so far
	Empty int    `json:"empty,omitempty"` // the number of consecutive pages without a record, up to the last page
}

// maxEmptyPages is the maximum number of consecutive pages without a record.
const maxEmptyPages = 100

// maxSameRows is how many times the same records may be repeated before the list counts as endless. A list by
// page numbers may show a page twice when records are added meanwhile.
const maxSameRows = 3

// Restart forgets the links and records seen so far, for a walk that reads pages again on purpose. The page
// count is kept.
func (p *Pages) Restart() { p.Links, p.Rows = Finder{}, Finder{} }

// EndlessReason takes the link to the next page and the ids of a page's records. It returns why the list has no
// end, or "" if it may have one. Reasons are a repeated link, the same records under ever new links, and too
// many consecutive pages without records. An empty page does not count as a repetition of the same records.
func (p *Pages) EndlessReason(next string, ids func(yield func(string) bool)) (why string) {
	links, rows, any := fnv.New64a(), fnv.New64a(), false
	_, _ = links.Write([]byte(next))
	for id := range ids {
		_, _ = rows.Write([]byte(id))
		_, _ = rows.Write([]byte{0})
		any = true
	}
	p.Count++
	if p.Empty++; any {
		p.Empty = 0
	}
	switch {
	case next != "" && p.Links.Next(links.Sum64()) > 0, any && p.Rows.Next(rows.Sum64()) >= maxSameRows:
		return "links to the next page form a circle: pages repeat, so the list has no end"
	case next != "" && p.Empty > maxEmptyPages:
		return fmt.Sprintf("links to the next page lead nowhere: %d pages in a row have no records", p.Empty)
	}
	return ""
}
