// What a kind is here: its name, its filters, its rows, its writes.
package slowapi

import (
	"net/url"
	"understudy/internal/slowapi/format"
)

// kind is one sort of record. A new one is a table like calls or messages in a
// file of its own, a line in kinds and its paths in routes.
type kind struct {
	name        string                                    // the list's key, unless key says another
	key         string                                    // the list's key where that is not the name
	prefix      string                                    // of its SIDs
	otherPrefix string                                    // of some of its SIDs, if there is a second
	other       func(w *world, s *sequence, i int64) bool // which SIDs have it
	tag         uint64                                    // keeps its SIDs and its draws apart from those of others
	filters     []filter
	blank       func() row

	// seed is what the main account begins with; nil when that is nothing. Those
	// of the kinds before it are there already, in w.below[0].
	seed func(w *world, k *kind) *sequence
	// derive makes a new sequence follow from others of its account; nil for most.
	derive func(w *world, s *sequence)
	// life is what a record goes through; nil when nothing happens to it by itself.
	life func(s *sequence, i int64) lifecycle
	// create reads what a new record is made of from a form; nil when POST to
	// the list is not allowed.
	create func(w *world, s *sequence, form url.Values) (map[string]string, *format.Refusal)
	// update reads from a form which fields change, and which states follow the
	// one reached when the life is cut; nil when POST to a record is not allowed.
	update func(w *world, s *sequence, i int64, form url.Values) (fields map[string]string, cut []string, r *format.Refusal)
	// remove allows DELETE. buries keeps what was deleted in sight of those who
	// ask for it.
	remove, buries bool
	// keeps tells why a record cannot be deleted now; nil means that it always can.
	keeps func(w *world, s *sequence, i int64) *format.Refusal
	// arrives allows /-/advance to create some.
	arrives bool
	// finals are the final states an edit may put a record into; nil when an edit
	// cannot change one.
	finals []string
	// rewrite is what an edit of a record's body sets; nil when it has none.
	rewrite func(w *world, s *sequence, i int64, body string) map[string]string
	// found finds a record by what stands for it in a path where that is not its
	// SID; the parent is the record the path names before it.
	found func(w *world, s *sequence, parent int64, name string) (int64, bool)
	// made is the status of the answer to a creation; 0 means 201.
	made int
	// retained kinds are kept for 400 days only, when the quirk retention is on.
	retained bool
}

// row is one record as read from the seed and its mark. load is cheap and may
// be called for many records in turn; append does the costly part.
type row interface {
	Load(w *world, s *sequence, i int64)
	Append(dst []byte, w *world) []byte
}

// maker is a row that looks different in the answer to its creation.
type maker interface{ Made() }

// listKey is the list's key.
func (k *kind) listKey() string {
	if k.key != "" {
		return k.key
	}
	return k.name
}

const (
	ownNumbers = 8
)
