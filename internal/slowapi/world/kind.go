// What a kind is here: its name, its filters, its rows, its writes.
package world

import (
	"net/url"

	"understudy/internal/slowapi/format"
)

// Kind is one sort of record. A new one is a file of package kinds, a line in
// kinds.All and its paths in the table of routes.
type Kind struct {
	Name    string       // the list's key, unless key says another
	Key     string       // the list's key where that is not the name
	Prefix  string       // of its SIDs
	Second  SecondPrefix // of some of its SIDs
	Tag     uint64       // keeps its SIDs and its draws apart from those of others
	Filters []Filter
	Blank   func() Row

	// Seed is what the main account begins with; nil when that is nothing. Those
	// of the kinds before it are there already, in w.Below[0].
	Seed func(w *World, k *Kind) *Sequence
	// Derive makes a new sequence follow from others of its account; nil for most.
	Derive func(w *World, s *Sequence)
	// Life is what a record goes through; nil when nothing happens to it by itself.
	Life func(s *Sequence, i int64) Lifecycle
	// Create reads what a new record is made of from a form; nil when POST to
	// the list is not allowed.
	Create func(w *World, s *Sequence, form url.Values) (map[string]string, *format.Refusal)
	// Update reads from a form which fields change, and which states follow the
	// one reached when the life is cut; nil when POST to a record is not allowed.
	Update func(w *World, s *Sequence, i int64, form url.Values) (fields map[string]string, cut []string, r *format.Refusal)
	// Remove allows DELETE. Buries keeps what was deleted in sight of those who
	// ask for it.
	Remove, Buries bool
	// Keeps tells why a record cannot be deleted now; nil means that it always can.
	Keeps func(w *World, s *Sequence, i int64) *format.Refusal
	// Arrives allows /-/advance to create some.
	Arrives bool
	Edits   Edits // what /-/edit may change
	// Found finds a record by what stands for it in a path where that is not its
	// SID; the parent is the record the path names before it.
	Found func(w *World, s *Sequence, parent int64, name string) (int64, bool)
	// Made is the status of the answer to a creation; 0 means 201.
	Made int
	// Retained kinds are kept for 400 days only, when the quirk retention is on.
	Retained bool
}

// SecondPrefix is another prefix of the SIDs of a kind; the zero value is none.
type SecondPrefix struct {
	Text string
	Of   func(w *World, s *Sequence, i int64) bool // which records have it
}

// Edits say how an edit may change a record of a kind.
type Edits struct {
	// Finals are the final states an edit may put a record into; nil when an edit
	// cannot change one.
	Finals []string
	// Body is what an edit of a record's body sets; nil when it has none.
	Body func(w *World, s *Sequence, i int64, body string) map[string]string
}

// Row is one record as read from the seed and its mark. Load is cheap and may
// be called for many records in turn; Append does the costly part.
type Row interface {
	Load(w *World, s *Sequence, i int64)
	Append(dst []byte, w *World) []byte
}

// Maker is a row that looks different in the answer to its creation.
type Maker interface{ Made() }

// ListKey is the list's key.
func (k *Kind) ListKey() string {
	if k.Key != "" {
		return k.Key
	}
	return k.Name
}

const (
	OwnNumbers = 8
)
