// Kinds: name, filters, lifecycle and writes of one type of record.
package world

import (
	"net/url"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// Kind describes one type of record. To add a kind, write a file in package kinds, add it to kinds.All, and
// add its paths to the routes of package slowapi.
type Kind struct {
	Name     string                            // the name of the JSON array in lists, unless the route has its own
	Prefix   string                            // the prefix of its SIDs
	PrefixOf func(s *Sequence, i int64) string // another SID prefix for one record, or ""; nil for most kinds
	Tag      uint64                            // distinguishes its SIDs and random numbers from those of other kinds
	Filters  []Filter
	// Generate computes the values of a record for templates and filters. Value computes a single value
	// for a filter faster, or returns nil if only Generate can compute it. Value is nil for most kinds.
	Generate func(w *World, s *Sequence, i int64) table.Values
	Value    func(w *World, s *Sequence, i int64, name string) any
	// Shape is the name of its template, unless the route has its own. If the templates new_SHAPE and whole_SHAPE
	// exist, they show a record that was just created and a single record.
	Shape string

	// Count returns the number of seeded records of the main account; nil means none. Seeded records of an Old kind
	// were created in the 300 days before all others.
	Count func(w *World) int64
	Old   bool
	// CreationTime returns when a seeded record was created, in Unix seconds, if another record decides that.
	// It never decreases as the index increases.
	CreationTime func(s *Sequence, i int64) int64
	// Owner is the kind whose records own the records of this kind, or nil if the records are independent. Each owner
	// has SlotsPerOwner consecutive indexes, and IsUsed reports which of them have a record.
	Owner         *Kind
	SlotsPerOwner int64
	IsUsed        func(w *World, s *Sequence, i int64) bool
	// Lifecycle computes the Plan, Dwell and Rest of a record; nil if its records have no status that changes by itself.
	Lifecycle func(s *Sequence, i int64) Progress
	Writes    Writes
	// Arrives allows /-/advance to create records.
	Arrives bool
	Edits   Edits // what /-/edit may change
	// Find finds a record by its name in a path if that is not its SID. The parent is the index of the
	// record that the path names before it. It is nil for most kinds.
	Find func(w *World, s *Sequence, parent int64, name string) (int64, bool)
	// Retained kinds refuse filters on times older than 400 days if the quirk retention is on.
	Retained bool
}

// Writes say how requests may create, change and delete the records of a kind.
type Writes struct {
	// Create reads the fields of a new record from a form; nil if POST to the list is not allowed. CreateStatus is the
	// HTTP status of the answer if it is not 201.
	Create       func(w *World, s *Sequence, form url.Values) (map[string]string, *format.Answer)
	CreateStatus int
	// Update reads the changed fields from a form, and the statuses that replace the rest of the record's plan, if any.
	// It is nil if POST to a record is not allowed.
	Update func(w *World, s *Sequence, i int64, form url.Values) (fields map[string]string, cut []string, r *format.Answer)
	// Remove allows DELETE, unless RefuseDelete returns an error answer for the record. ShowsDeleted means that requests
	// can ask for recently deleted records.
	CanDelete, ShowsDeleted bool
	RefuseDelete            func(w *World, s *Sequence, i int64) *format.Answer
}

// Edits say how /-/edit may change a record of a kind.
type Edits struct {
	// Finals are the final statuses that an edit may set; nil if edits are not allowed.
	Finals []string
	// Body returns the fields to set for a new body; nil if the records have no body.
	Body func(w *World, s *Sequence, i int64, body string) map[string]string
}

// Row is one record for filters to test.
type Row struct {
	World    *World
	Sequence *Sequence
	Index    int64
	Values   table.Values // nil until the record was generated
}

// Value returns one value of the record.
func (r *Row) Value(name string) any {
	if r.Values == nil && r.Sequence.Kind.Value != nil {
		if value := r.Sequence.Kind.Value(r.World, r.Sequence, r.Index, name); value != nil {
			return value
		}
	}
	if r.Values == nil {
		r.Values = r.Sequence.Kind.Generate(r.World, r.Sequence, r.Index)
	}
	return r.Values[name]
}

// Show appends the JSON of a record. shape is the name of the template, and baseURL is the server's URL
// as the client sees it. The caller holds Mu.
func (w *World) Show(dst []byte, s *Sequence, i int64, shape, baseURL string) []byte {
	v := s.Kind.Generate(w, s, i)
	v["account"], v["sid"] = w.AccountSID(s.Account), w.SID(s, i)
	return w.Shapes[shape].Append(dst, v, baseURL)
}

// OwnNumbers is the number of phone numbers that the main account owns at the beginning.
const OwnNumbers = 8
