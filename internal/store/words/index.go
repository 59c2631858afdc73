// The index: brought in line with what becomes of records, and asked.

package words

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"understudy/internal/store/fts5"
	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

// Kind is what the index knows of a kind of records. Many goroutines may use it at
// once.
type Kind struct {
	Number int64 // below 1 << postings.ShapeBits
	Rule   Rule  // which fields are text
	said   said
}

// Edit is what becomes of a record in one shape.
type Edit = postings.Edit[*Kind]

// Writes are what edits come to in the index, as fts5.NewPending takes them. What stays as
// it is is not written. It is asked for from now on.
func (x *Cutter) Writes(edits []Edit) []fts5.Write {
	writes := make([]fts5.Write, 0, len(edits))
	for i := range edits {
		e := &edits[i]
		var old, new fts5.Row
		if e.Old != nil {
			old = x.row(e.Kind, e.Old)
		}
		if e.New == e.Old {
			new = old
		} else if e.New != nil {
			new = x.row(e.Kind, e.New)
		}
		if old == new && e.Was == e.Is {
			continue
		}
		if !old.Empty() {
			writes = append(writes, fts5.Write{Posting: e.Was, Out: true, Row: old})
		}
		if !new.Empty() {
			e.Kind.said.add(&new)
			writes = append(writes, fts5.Write{Posting: e.Is, Row: new})
		}
	}
	fts5.Sort(writes)
	return writes
}

// said is the classes of which a kind has words in the index, or had some since
// the store was opened: a question looks for no others. A bit is set before the
// words are committed.
type said struct{ bits atomic.Uint32 }

func (s *said) has(c column) bool { return s.bits.Load()>>c&1 != 0 }

// add adds the classes of a row.
func (s *said) add(row *fts5.Row) {
	for _, c := range classColumns {
		if row[c] != "" {
			s.bits.Or(1 << c)
		}
	}
}

// Load looks of which classes a kind has words in the index, or is to have, when a file is
// opened. Where the index or what is pending cannot be read it may have each: the reader
// gets the error.
func (k *Kind) Load(c *sqlite.Conn, pending fts5.Pending, broken error) {
	for _, class := range classColumns {
		tag := wordTag(k.Number, class)
		has := func(w fts5.Write) bool { return !w.Out && strings.HasPrefix(w.Row[class], tag) }
		if word, err := fts5.Next(c, tag); errors.Join(err, broken) != nil || strings.HasPrefix(word, tag) || slices.ContainsFunc(pending, has) {
			k.said.bits.Or(1 << class)
		}
	}
}

// Find is the postings of what a plan finds in some kinds, once what is pending is written;
// up from the least.
func Find(c *sqlite.Conn, pending fts5.Pending, p *Plan, kinds []*Kind, up bool) (postings.Iterator, error) {
	if p == nil {
		return &postings.Slice{Up: up}, nil
	}
	match, err := p.match(kinds, func(prefix string) ([]string, error) { return fts5.Beginning(c, prefix) })
	if err != nil {
		return nil, err
	}
	written := fts5.Find(c, match, up)
	if len(pending) == 0 {
		return written, nil
	}
	touched, found := &postings.Slice{Up: up}, &postings.Slice{Up: up}
	for i := range pending {
		w := &pending[i]
		touched.Spots = append(touched.Spots, w.Posting)
		if !w.Out && p.finds(&w.Row, kinds, classColumns) {
			found.Spots = append(found.Spots, w.Posting)
		}
	}
	if !up {
		slices.Reverse(touched.Spots)
		slices.Reverse(found.Spots)
	}
	return postings.Or(up, postings.Without(up, written, touched), found), nil
}
