// This file declares the state of a page while it is saved.

package store

import (
	"database/sql/driver"
	"math"

	"understudy"
	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/index"
	"understudy/internal/store/names"
	"understudy/internal/store/order"
	"understudy/internal/store/pages"
	"understudy/internal/store/postings"
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

// periodWrites are the periods that a save ends, and the clock entries that it adds.
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

// reads has the arguments of what a save reads, and announces them to a database for which each query costs a round trip.
type reads struct{ save *saving }

func (r reads) counterArgs() []driver.Value {
	source, _ := r.save.db.catalog.Source(r.save.p.Key.Source)
	if r.save.kind == nil {
		return []driver.Value{int64(0), source}
	}
	return []driver.Value{r.save.kind.Number, source}
}

// expect announces what the save will read, as far as the page tells. Then a distant database is asked once instead of
// ten times. A page whose records are stored already needs a little more.
func (r reads) expect() error {
	s := r.save
	err := s.c.Expect(selectCounters, 0, reads{s}.counterArgs()...)
	source, _ := s.db.catalog.Source(s.p.Key.Source)
	if err == nil && s.canStorePage() {
		err = s.c.Expect(selectOldPage, 0, pages.KeyHash(s.p.Key), source)
	}
	if err == nil && isRemoval(s.p) {
		return r.expectRemoval()
	}
	if err != nil || s.kind == nil || len(s.content.rows) == 0 || s.content.whole {
		return err
	}
	if s.db.counts.erased.Load() > 0 {
		err = reads{s}.visitErasedArgs(func(n int, args []driver.Value) error { return s.c.Expect(selectErased, n, args...) })
	}
	s.db.scratch.groupRows(s.kind.Prefix(), s.content.rows)
	if err == nil {
		err = reads{s}.visitHeldArgs(func(n int, args []driver.Value) error { return s.c.Expect(selectHeld, n, args...) })
	}
	if err == nil {
		err = r.expectPlaces(source)
	}
	if err == nil {
		err = s.db.Index.Expect(s.c, s.shape.Number)
	}
	return err
}

// expectRemoval announces what removing the record that the page names will read.
func (r reads) expectRemoval() error {
	s := r.save
	if err := s.c.Expect(selectWhole, 0, s.kind.Number); err != nil {
		return err
	}
	if err := names.ExpectRecord(s.c, s.kind.Number, db.AppendID(nil, s.kind.Prefix(), s.p.ID)); err != nil {
		return err
	}
	return s.db.Index.Expect(s.c, s.shape.Number)
}

// expectPlaces announces what placing the records will read if all are new.
func (r reads) expectPlaces(source int64) error {
	s := r.save
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for _, row := range s.content.rows {
		if second := order.NaturalSecond(s.kind.Spec, row.Clock, s.p.Body[row.Start:row.End]); second != order.NoSecond {
			low, _ := postings.SecondBounds(second)
			_, high := postings.SecondBounds(second)
			least, most = min(least, low), max(most, high)
		}
	}
	if err := order.NewAssigner(s.c, s.kind.Number, nil).Expect(least, most); err != nil || !s.p.List {
		return err
	}
	if f := order.ReadFollows(s.db.o.Specs[s.p.Key.Source], s.p.RequestKey()); f.ID != "" {
		if err := order.ExpectPosition(s.c, s.kind.Number, db.AppendID(nil, s.kind.Prefix(), f.ID)); err != nil {
			return err
		}
	}
	if s.p.Next.IsZero() {
		return nil
	}
	return s.db.pages.Expect(s.c, source, s.p.Next)
}

// expectVersions announces what comparing changed records with their earlier versions will read.
func (r reads) expectVersions(sights []observation) error {
	s := r.save
	blocks := map[int64]bool{}
	for i := range sights {
		g := &sights[i]
		if !g.stored.hasRow || g.stored.hash == s.content.hashes[g.lastRow] {
			continue
		}
		if err := s.c.Expect(selectTag, 0, reads{s}.tagArgs(g, g.lastRow)...); err != nil {
			return err
		}
		if block := g.stored.version / codec.PerBlock; !blocks[block] {
			blocks[block] = true
			if err := s.blocks.Expect(g.stored.version); err != nil {
				return err
			}
		}
	}
	return nil
}
