// This file decides which rows a query matches. It finds them among the written rows and the pending rows.

package wordrows

import (
	"slices"
	"strings"

	"understudy/internal/store/postings"
)

// Op says how a Query combines its parts.
type Op int

const (
	AnyPhrase          Op = iota // the row has one of the phrases in Phrases; the query has no parts
	AllParts                     // every part matches; there is at least one part
	AnyPart                      // one of the parts matches; there is at least one part
	FirstWithoutSecond           // the first of two parts matches and the second does not
)

// Query describes rows. Its zero value matches no row.
type Query struct {
	Op      Op
	Phrases []string // phrases; each has words separated by single spaces
	Prefix  bool     // the last word of each phrase matches all words that begin with it
	Parts   []Query
}

// Find returns the postings of the rows that match a query, as if the pending rows were already written. If up is set, the
// postings are in ascending order.
func (s *Snapshot) Find(q *Query, up bool) (postings.Iterator, error) {
	written, err := s.Table.Search(s.C, q, up)
	if err != nil || len(s.Pending) == 0 {
		return written, err
	}
	touched, found := &postings.Slice{Up: up}, &postings.Slice{Up: up}
	for i := range s.Pending {
		w := &s.Pending[i]
		touched.Spots = append(touched.Spots, w.Posting)
		if !w.Delete && q.Match(&w.Row) {
			found.Spots = append(found.Spots, w.Posting)
		}
	}
	if !up {
		slices.Reverse(touched.Spots)
		slices.Reverse(found.Spots)
	}
	return postings.Unite(up, postings.Exclude(up, written, touched), found), nil
}

// Match reports whether Find would return the posting of a row.
func (q *Query) Match(row *Row) bool { return q.match(row.Line()) }

func (q *Query) match(line string) bool {
	switch q.Op {
	case AllParts:
		return !slices.ContainsFunc(q.Parts, func(part Query) bool { return !part.match(line) })
	case AnyPart:
		return slices.ContainsFunc(q.Parts, func(part Query) bool { return part.match(line) })
	case FirstWithoutSecond:
		return q.Parts[0].match(line) && !q.Parts[1].match(line)
	}
	end := " "
	if q.Prefix {
		end = ""
	}
	return slices.ContainsFunc(q.Phrases, func(phrase string) bool { return strings.Contains(line, " "+phrase+end) })
}
