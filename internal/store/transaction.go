// This file declares the state of a page while it is saved.

package store

import (
	"database/sql/driver"

	"understudy"
	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/index"
	"understudy/internal/store/names"
	"understudy/internal/store/records"
)

// saving is one page on its way into the database.
type saving struct {
	db     *DB
	c      db.Conn
	p      *understudy.Page
	kind   *catalog.Kind  // the page's kind, or nil if the page has none
	shape  *catalog.Shape // the shape of the page's records, or nil if the page has no kind
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

// blockWrites are the new versions of a save, and the replaced versions that are then stored as deltas against them.
type blockWrites struct {
	fresh    []codec.Entry
	firstNew int64           // the number of the first version that this save creates, or 0 if it creates none
	firstRow map[rowBody]int // the first row of the page that shows each body, for records with several rows
	deltas   []pendingDelta
	patches  []byte // the buffer that contains the patches of all deltas
}

// periodWrites are periods that end, and new clock entries.
type periodWrites struct {
	number int64 // the number for new periods without a new version, or 0 until it is assigned
	past   []driver.Value
	clocks []driver.Value
}

// indexWrites are the index edits of a save.
type indexWrites struct {
	edits     []index.Edit
	edited    map[int64]bool // the records of the page for which an index edit was added
	postponed bool           // the index edits are stored as pending and written to the indexes later
}

// outcome is the result of the save.
type outcome struct {
	changes   []understudy.Change
	version   int64 // the version number of the saved page
	pageRow   int64 // the number of the saved page's row
	erasing   bool  // the save listed a record for erasing
	undoReads func()
}

// counters are the last numbers in use. A save reads them first and writes them last.
type counters struct {
	source, change, page             int64
	record, block                    int64
	records, kindChanges, generation int64 // the kind's number of present records, its number of changes so far, and its generation
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
	sightOf   []int32          // for each row of the page, the index of its record in sights
	pageOrder []int            // the indexes in sights in the order in which the page shows the records
	byID      map[string]int32 // the index in sights by the record's stored id
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
