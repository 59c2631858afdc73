// What a kind is here: its name, its filters, its rows, its writes.
package world

import (
	"net/url"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// Kind is one sort of record. A new one is a file of package kinds, a line in
// kinds.All and its paths in the table of routes.
type Kind struct {
	Name    string                            // the list's key, unless its route says another
	Prefix  string                            // of its SIDs
	Second  func(s *Sequence, i int64) string // the prefix of one record's SID, "" for the usual one; nil for most kinds
	Tag     uint64                            // keeps its SIDs and its draws apart from those of others
	Filters []Filter
	// Draw draws a record, as its templates show it and its filters ask for it. Where that costs
	// much, Peek returns one value that a filter asks for; nil for a value that only Draw knows.
	Draw func(w *World, s *Sequence, i int64) table.Values
	Peek func(w *World, s *Sequence, i int64, name string) any
	// Shape is the template of its records, unless their route says another. Templates new_SHAPE and whole_SHAPE, if any,
	// show a record that was made just now, and one alone.
	Shape string

	// Count is how many records the main account begins with; nil for none. Old ones are there 300 days before others.
	Count func(w *World) int64
	Old   bool
	// At is when one of those was created, if that follows from another record. It never falls as the index rises.
	At func(s *Sequence, i int64) int64
	// Owner is the kind each record of which has so many Places for those of this kind, and
	// Has tells which of them are taken; nil where records stand for themselves.
	Owner  *Kind
	Places int64
	Has    func(w *World, s *Sequence, i int64) bool
	// Life draws the Plan, Dwell and Rest of a record; nil when nothing happens to it by itself.
	Life   func(s *Sequence, i int64) Progress
	Writes Writes
	// Arrives allows /-/advance to create some.
	Arrives bool
	Edits   Edits // what /-/edit may change
	// Found finds a record by what stands for it in a path where that is not its
	// SID; the parent is the record the path names before it.
	Found func(w *World, s *Sequence, parent int64, name string) (int64, bool)
	// Retained kinds are kept for 400 days only, when the quirk retention is on.
	Retained bool
}

// Writes say how requests may create, change and delete records of a kind.
type Writes struct {
	// Create reads a new record from a form; nil when POST to the list is not allowed. Made is the status in place of 201.
	Create func(w *World, s *Sequence, form url.Values) (map[string]string, *format.Answer)
	Made   int
	// Update reads from a form which fields change, and which states follow the one reached when the life is cut; nil when
	// POST to a record is not allowed.
	Update func(w *World, s *Sequence, i int64, form url.Values) (fields map[string]string, cut []string, r *format.Answer)
	// Remove allows DELETE, unless Keeps returns why a record cannot be deleted now. Buries shows deleted records to
	// requests that ask for them.
	Remove, Buries bool
	Keeps          func(w *World, s *Sequence, i int64) *format.Answer
}

// Edits say how an edit may change a record of a kind.
type Edits struct {
	// Finals are the final states an edit may put a record into; nil when an edit
	// cannot change one.
	Finals []string
	// Body is what an edit of a record's body sets; nil when it has none.
	Body func(w *World, s *Sequence, i int64, body string) map[string]string
}

// Row is one record that filters look at.
type Row struct {
	W *World
	S *Sequence
	I int64
	V table.Values // nil until the record is drawn
}

// Value returns one value of the record.
func (r *Row) Value(name string) any {
	if r.V == nil && r.S.Kind.Peek != nil {
		if value := r.S.Kind.Peek(r.W, r.S, r.I, name); value != nil {
			return value
		}
	}
	if r.V == nil {
		r.V = r.S.Kind.Draw(r.W, r.S, r.I)
	}
	return r.V[name]
}

// Show appends the JSON of a record as a template shows it. here is the address the
// request came to. The caller holds mu.
func (w *World) Show(dst []byte, s *Sequence, i int64, shape, here string) []byte {
	v := s.Kind.Draw(w, s, i)
	v["account"], v["sid"] = w.AccountSID(s.Account), w.SID(s, i)
	return w.Shapes[shape].Append(dst, v, here)
}

// OwnNumbers is how many numbers the main account owns from the beginning.
const OwnNumbers = 8
