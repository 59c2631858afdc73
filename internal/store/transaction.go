// This file declares the state of a page while it is saved.

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
	kind   *catalog.Kind  // nil for a page without a kind
	shape  *catalog.Shape // nil for a page without a kind
	blocks *records.Blocks
	at     int64 // when the page was complete, in Unix nanoseconds

	content  content
	writes   blockWrites
	periods  periodWrites
	indexes  indexWrites
	counters counters
	outcome  outcome
}

// content is what the page contains, computed before anything is written.
type content struct {
	sum     [16]byte
	rows    []understudy.Row // the records of the page; Record and Version are filled in
	hashes  []int64          // hashes of the rows' bodies
	outside []byte           // the bytes of the body outside the rows
	gaps    []int
	refused string // why the page is not stored, such as an erased record in it
	whole   bool   // the page is stored whole, without its records (Page.Whole)
}

// blockWrites are new versions, and replaced versions that become deltas against them.
type blockWrites struct {
	fresh    []codec.Entry
	firstNew int64           // the number of the first new version, or 0
	firstRow map[rowBody]int // the first row of each body, for records in several rows
	deltas   []pendingDelta
	patches  []byte // the buffer that the deltas' patches are parts of
}

// periodWrites are periods that end, and new clock entries.
type periodWrites struct {
	number int64 // the number for periods without a new version, or 0 before it is assigned
	past   []driver.Value
	clocks []driver.Value
}

// indexWrites are the index edits of a save.
type indexWrites struct {
	edits     []index.Edit
	edited    map[int64]bool // records of the page that have an edit
	postponed bool           // the edits are written to the indexes later
}

// outcome is the result of the save.
type outcome struct {
	changes   []understudy.Change
	version   int64 // the version of the page
	pageRow   int64 // the number of the page's row
	erasing   bool  // a record was listed for erasing
	undoReads func()
}

// counters are the last numbers in use. A save reads them first and writes them last.
type counters struct {
	source, change, page             int64
	record, block                    int64
	records, kindChanges, generation int64 // the kind's present records, all its changes so far, and its generation
	changed                          changedCounters
}

// changedCounters says which counters must be written.
type changedCounters struct{ source, store, kind bool }

// scratch is memory that consecutive saves reuse. The goroutine with the writing connection owns it.
type scratch struct {
	names     names.Table
	args      []driver.Value
	ids       []byte
	raw       []byte
	packed    []byte
	entries   []codec.Entry
	sights    []observation
	sightOf   []int32          // the index in sights for each row of the page
	pageOrder []int            // indexes in sights, in the order of the page
	byID      map[string]int32 // the index in sights by stored id
}

// maxScratch is how many bytes of memory a large page may leave in scratch.
const maxScratch = 1 << 20

// trim forgets the saved page, and drops buffers that only a large page needed.
func (x *scratch) trim() {
	clear(x.args)
	clear(x.entries[:cap(x.entries)])
	clear(x.byID)
	if cap(x.raw) > maxScratch || cap(x.packed) > maxScratch || cap(x.ids) > maxScratch || cap(x.entries) > 2000 {
		*x = scratch{names: x.names}
	}
}
