// Kinds: the names, filters, statuses and writes of a type of record.
package world

import (
	"net/url"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// Kind describes one type of record. To add a kind, write a file in package kinds, add it to kinds.All, and
// add its paths to the routes of package slowapi.
type Kind struct {
	Name     string                            // the name of the JSON array in lists, unless the route has another
	Prefix   string                            // the prefix of its SIDs
	PrefixOf func(s *Sequence, i int64) string // returns another prefix for the SID of one record, or ""; nil for most kinds
	Tag      uint64                            // a number that separates SIDs and random numbers of this kind from those of other kinds
	Filters  []Filter
	// Generate computes the values of a record, for templates and filters. Value computes only one value for a
	// filter, which is faster. It returns nil if only Generate can compute the value. Value is nil for most kinds.
	Generate func(w *World, s *Sequence, i int64) table.Values
	Value    func(w *World, s *Sequence, i int64, name string) any
	// Shape is the name of the template, unless the route has another. If there are templates new_SHAPE and
	// whole_SHAPE, they are used for a record that was just created and for a single record.
	Shape string

	// Count returns the number of seeded records of the main account. If it is nil, there are none. If Old is true,
	// the seeded records were created in the 300 days before all others.
	Count func(w *World) int64
	Old   bool
	// CreationTime returns when a seeded record was created, in Unix seconds, if that depends on another record. The
	// times must never decrease as the index increases.
	CreationTime func(s *Sequence, i int64) int64
	// Owner is the kind of the records to which records of this kind belong. It is nil if they belong to none. Each
	// owner has SlotsPerOwner consecutive indexes, and IsUsed reports which of them have a record.
	Owner         *Kind
	SlotsPerOwner int64
	IsUsed        func(w *World, s *Sequence, i int64) bool
	// Lifecycle computes the fields Plan, Dwell and Rest of Progress. It is nil if the status of records never
	// changes by itself.
	Lifecycle func(s *Sequence, i int64) Progress
	Writes    Writes
	// Arrives is true if the control path /-/advance can create records of the kind.
	Arrives bool
	Edits   Edits // how the control path /-/edit may change records
	// Find finds a record by its name in a path if that is not its SID. parent is the index of the record that the
	// path names before it. Find is nil for most kinds.
	Find func(w *World, s *Sequence, parent int64, name string) (int64, bool)
	// Retained is true if, with the quirk retention, filters on times older than 400 days are refused.
	Retained bool
}

// Writes say how requests may create, change and delete the records of a kind.
type Writes struct {
	// Create parses the fields of a new record from a form. It is nil if records cannot be created. CreateStatus is
	// the HTTP status of the response if it is not 201.
	Create       func(w *World, s *Sequence, form url.Values) (map[string]string, *format.Answer)
	CreateStatus int
	// Update parses the changed fields from a form. cut has the statuses that the record will have next, in place of
	// those planned before. Update is nil if records cannot be changed.
	Update func(w *World, s *Sequence, i int64, form url.Values) (fields map[string]string, cut []string, r *format.Answer)
	// CanDelete is true if records can be deleted. RefuseDelete may return an error response for a certain record.
	// ShowsDeleted is true if requests can ask for recently deleted records.
	CanDelete, ShowsDeleted bool
	RefuseDelete            func(w *World, s *Sequence, i int64) *format.Answer
}

// Edits say how the control path /-/edit may change a record of a kind.
type Edits struct {
	// Finals are the final statuses that an edit may set. It is nil if records cannot be edited.
	Finals []string
	// Body returns the fields to set for a new body. It is nil if records have no body.
	Body func(w *World, s *Sequence, i int64, body string) map[string]string
}

// Row is a record that filters test.
type Row struct {
	World    *World
	Sequence *Sequence
	Index    int64
	Values   table.Values // the values of the record; nil until they are generated
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

// Show appends the JSON of a record. shape is the name of the template, and baseURL is the URL of the server as the
// client sees it. The caller holds Mu.
func (w *World) Show(dst []byte, s *Sequence, i int64, shape, baseURL string) []byte {
	v := s.Kind.Generate(w, s, i)
	v["account"], v["sid"] = w.AccountSID(s.Account), w.SID(s, i)
	return w.Shapes[shape].Append(dst, v, baseURL)
}

// OwnNumbers is the number of phone numbers that the main account owns at first.
const OwnNumbers = 8
