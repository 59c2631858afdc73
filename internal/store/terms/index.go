// This file converts changes of records to entries of the index, and extends the known ranges of times.

package terms

import (
	"slices"

	"understudy/internal/store/db"
	"understudy/internal/store/inverted"
	"understudy/internal/store/postings"
)

// Edit is the change of one record in one shape. Its facts include the parent.
type Edit = postings.Edit[*Kind]

// usualTokens is about how many tokens a record has.
const usualTokens = 16

// BuildEntries returns the entries that edits remove from the index and add to it. It extends the ranges in the
// transaction of c and reports whether any of them grew.
func BuildEntries(c db.Conn, r *Ranges, edits []Edit) (out, in []inverted.Entry, grew bool, err error) {
	in = make([]inverted.Entry, 0, usualTokens*len(edits))
	grown := growing{c: c, read: map[int64]bool{}, of: map[rangeName]timeRange{}, changed: map[rangeName]bool{}}
	var buf []int64
	for i := range edits {
		e := &edits[i]
		buf = buf[:0]
		if e.Old != nil {
			buf = e.Kind.appendTokens(buf, e.Was, e.Old, nil)
		}
		out = appendEntries(out, buf, e.Was)
		buf = buf[:0]
		if e.New != nil {
			buf = e.Kind.appendTokens(buf, e.Is, e.New, func(field string, unix int64) {
				grown.note(rangeName{postings.Shape(e.Is), field}, unix)
			})
		}
		in = appendEntries(in, buf, e.Is)
	}
	if err := grown.put(); err != nil {
		return nil, nil, false, err
	}
	r.add(grown.of)
	return out, in, len(grown.changed) > 0, nil
}

// appendEntries appends one entry for each distinct token of a record.
func appendEntries(dst []inverted.Entry, tokens []int64, spot int64) []inverted.Entry {
	slices.Sort(tokens)
	for _, token := range slices.Compact(tokens) {
		dst = append(dst, inverted.Entry{Token: token, Posting: spot})
	}
	return dst
}
