// Finder: a value that a sequence had, and how often it came again.

// Package cycle finds out that a sequence repeats itself, or has no end, in constant memory.
package cycle

import (
	"fmt"
	"hash/fnv"
)

// Finder follows a sequence by Brent's algorithm (R. P. Brent, An improved Monte
// Carlo factorization algorithm, BIT 20, 1980): it remembers one value, and after
// 1, 2, 4 … steps the one it has come to then. A cycle is found within about three
// times as many steps as it takes to go once around it and to come to it. The zero
// Finder is ready; as JSON it outlives a process. It is for one goroutine.
type Finder struct {
	Value uint64 `json:"value,omitempty"` // the one remembered
	Steps int64  `json:"steps,omitempty"` // since then, or since it last came again
	Limit int64  `json:"limit,omitempty"` // of steps
	Met   int    `json:"met,omitempty"`   // how often it came again
}

// Next takes the next value of the sequence and returns how often the value that
// is remembered has come again: 0 while no cycle is known.
func (f *Finder) Next(value uint64) int {
	switch {
	case f.Limit > 0 && value == f.Value:
		f.Steps = 0
		f.Met++
	case f.Steps == f.Limit:
		*f = Finder{Value: value, Limit: max(1, 2*f.Limit)}
	default:
		f.Steps++
	}
	return f.Met
}

// Pages follows the pages of a list. The zero Pages is ready.
type Pages struct {
	Links Finder `json:"links,omitzero"`
	Rows  Finder `json:"rows,omitzero"`
	Count int64  `json:"count,omitempty"` // of pages
	Empty int    `json:"empty,omitempty"` // of those, how many of the last had no record
}

// maxEmpty is how many pages without a record may follow each other.
const maxEmpty = 100

// maxSame is how often the same records come again before that is a circle: a list
// by page numbers may show a page twice when records come meanwhile.
const maxSame = 3

// Back begins to look for circles anew, for a walk that reads pages again on purpose.
// Their number goes on.
func (p *Pages) Back() { p.Links, p.Rows = Finder{}, Finder{} }

// Endless takes the link to the next page and the ids of a page's records, and says why
// the list has no end, "" while it may have one: a link comes again, the same records
// come under ever new links, or nothing but pages without records does. A page without
// records says nothing of them.
func (p *Pages) Endless(next string, ids func(yield func(string) bool)) (why string) {
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
	case next != "" && p.Links.Next(links.Sum64()) > 0, any && p.Rows.Next(rows.Sum64()) >= maxSame:
		return "next links go in a circle: pages come again, and the list has no end"
	case next != "" && p.Empty > maxEmpty:
		return fmt.Sprintf("next links lead nowhere: %d pages in a row have no record", p.Empty)
	}
	return ""
}
