// Saving: what is known of a page while it is saved.

package store

import (
	"database/sql/driver"

	"understudy"
	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/index"
	"understudy/internal/store/names"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
)

// saving is one page on its way into the database.
type saving struct {
	db     *DB
	c      *sqlite.Conn
	p      *understudy.Page
	kind   *catalog.Kind  // nil: a page without a kind
	shape  *catalog.Shape // nil likewise
	blocks *records.Blocks
	at     int64 // Unix nanoseconds

	content  content
	writes   blockWrites
	periods  periodWrites
	indexes  indexWrites
	counters counters
	outcome  outcome
}

// content is the page as it is read before anything is written.
type content struct {
	sum     [16]byte
	rows    []understudy.Row // the records of the page; their numbers are filled in
	hashes  []int64          // of the rows' bodies
	outside []byte           // of the body, outside rows
	gaps    []int
	refused string // why the page is not kept: it shows what was erased
	whole   bool   // its records are not kept (Page.Whole)
}

// blockWrites are versions that are new, and those that rest on them.
type blockWrites struct {
	fresh    []codec.Entry
	firstNew int64           // the number of the first of them
	twice    map[rowBody]int // the first row of each
	deltas   []pendingDelta
	patches  []byte // of the deltas
}

// periodWrites are periods that end, and clocks that records are to be found by.
type periodWrites struct {
	mark   int64 // a number for periods without a new version; 0: not given yet
	past   []driver.Value
	clocks []driver.Value
}

// indexWrites are what the indexes are told.
type indexWrites struct {
	edits  []index.Edit
	edited map[int64]bool // the records of the page among edits
	left   bool           // the indexes are written later
}

// outcome is what the save has come to.
type outcome struct {
	changes   []understudy.Change
	version   int64 // the page's
	number    int64 // of the page's row
	erasing   bool  // something was listed for erasing
	undoReads func()
}

// counters are the numbers given last, read first and written last.
type counters struct {
	source, change, page       int64
	record, block              int64
	records, kinds, generation int64 // of the kind: held records, changes ever
	given                      counted
}

// counted says which counters moved.
type counted struct{ source, store, kind bool }

// scratch is memory that one save after another uses, with the writing connection held.
type scratch struct {
	names    names.Table
	args     []driver.Value
	ids      []byte
	raw      []byte
	packed   []byte
	entries  []codec.Entry
	sights   []observation
	of       []int32
	standing []int // the observations in the order they stand in the page
	byID     map[string]int32
}

// maxScratch is how much memory one large page may leave behind.
const maxScratch = 1 << 20

// trim lets go of the page that was saved, and of memory only it needed.
func (x *scratch) trim() {
	clear(x.args)
	clear(x.entries[:cap(x.entries)])
	clear(x.byID)
	if cap(x.raw) > maxScratch || cap(x.packed) > maxScratch || cap(x.ids) > maxScratch || cap(x.entries) > 2000 {
		*x = scratch{names: x.names}
	}
}
