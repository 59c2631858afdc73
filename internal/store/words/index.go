// This file converts changes of records to writes of the index, and searches the index.

package words

import (
	"understudy/internal/query"
	"understudy/internal/store/postings"
	"understudy/internal/store/wordrows"
)

// Kind is what the index knows about a kind of records. It is safe for concurrent use.
type Kind struct {
	Number int64 // the number of the kind in the index, less than 1 << postings.ShapeBits
	Name   string
	Rule   Rule    // the rule that says which fields are text
	known  []known // the words of each field, by the field's number
}

// NewKind returns a kind without any known words.
func NewKind(number int64, name string, rule Rule) *Kind {
	k := &Kind{Number: number, Name: name, Rule: rule}
	if rule != nil {
		k.known = make([]known, 1+min(len(rule), query.MaxTextFields))
	}
	return k
}

// Edit is the change of a record in one shape.
type Edit = postings.Edit[*Kind]

// Writes returns the writes that edits cause, for wordrows.NewPending. It leaves out rows that do not change. From now on
// queries search for the words of the new rows.
func (x *Cutter) Writes(edits []Edit) []wordrows.Write {
	writes := make([]wordrows.Write, 0, len(edits))
	for i := range edits {
		e := &edits[i]
		var old, new wordrows.Row
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
		if !old.IsEmpty() {
			writes = append(writes, wordrows.Write{Posting: e.Was, Delete: true, Row: old})
		}
		if !new.IsEmpty() {
			e.Kind.add(&new)
			writes = append(writes, wordrows.Write{Posting: e.Is, Row: new})
		}
	}
	wordrows.Sort(writes)
	return writes
}

// Find returns the postings that a plan finds in some kinds, in ascending order if up is set.
func Find(s *wordrows.Snapshot, p *Plan, kinds []*Kind, up bool) (postings.Iterator, error) {
	if p == nil {
		return &postings.Slice{Up: up}, nil
	}
	q, err := p.bind(s, kinds)
	if err != nil {
		return nil, err
	}
	return s.Find(&q, up)
}
