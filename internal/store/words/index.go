// The index: brought in line with what becomes of records, and asked.

package words

import (
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

// writesOf are what edits come to. What stays as it is is not written.
func (x *Cutter) writesOf(edits []Edit) []fts5.Write {
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
	return writes
}

// Update brings the index in line with edits, in the transaction of c.
func Update(c *sqlite.Conn, x *Cutter, edits []Edit) error {
	return fts5.Update(c, x.writesOf(edits))
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

// Load looks of which classes a kind has words in the index, when a file is opened.
// Where the index cannot be read it may have each: the reader gets the error.
func (k *Kind) Load(c *sqlite.Conn) {
	for _, class := range classColumns {
		tag := wordTag(k.Number, class)
		if word, err := fts5.Next(c, tag); err != nil || strings.HasPrefix(word, tag) {
			k.said.bits.Or(1 << class)
		}
	}
}

// Find is the postings of what a plan finds in some kinds; up from the least.
func Find(c *sqlite.Conn, p *Plan, kinds []*Kind, up bool) (postings.Iterator, error) {
	if p == nil {
		return &postings.Slice{Up: up}, nil
	}
	match, err := p.match(kinds, func(prefix string) ([]string, error) { return fts5.Beginning(c, prefix) })
	if err != nil {
		return nil, err
	}
	return fts5.Find(c, match, up), nil
}
