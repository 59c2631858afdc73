// Table: the columns of one kind, row by row, and who is told what changes in them.

// Package columns keeps a few fields of many records in memory, right while records come, change and go.
package columns

import (
	"iter"
	"math/bits"
	"sync"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// Watcher is told of the rows of a table, which is locked meanwhile.
type Watcher interface {
	// Leave says that a row has its present values no longer.
	Leave(row int32)
	// Enter says that a row has the values of a record from now on.
	Enter(row int32, r *understudy.Record)
}

// Follower is told of the changed records of a table, which is locked meanwhile: also of those without a row.
type Follower interface {
	// Changed says what a record is now; nil: it is deleted.
	Changed(record int64, r *understudy.Record)
}

// Watch is how far a watcher or a follower has come. Its table guards it.
type Watch struct {
	Ready bool // it is brought up to date from now on
	// Gone says that the table began anew, or that a test made of its cells is no longer right: nothing more is told.
	Gone     bool
	from     int64 // it is right up to this change
	watcher  Watcher
	follower Follower
}

// Table is the columns of a kind. A row is a record. Lock guards the columns and everything that reads them.
type Table struct {
	sync.Mutex
	Source string
	Kind   *spec.Kind

	columns  []*Column
	byField  map[string]*Column
	fields   query.Fields
	watchers map[*Watch]bool
	values   []query.Value // room for those of one record

	progress progress

	pages map[int64]*[perPage]int32 // row + 1, by the store's number of the record
	free  []int32
	live  []uint64 // the rows in use, a bit each
	// unreadable are, of each row, the columns that cannot keep its value, a bit each.
	unreadable []uint64
}

// progress is how far a table has come. The table guards it.
type progress struct {
	silent  int64 // of the store's edition
	change  int64 // every change up to this one is in the rows that are there
	whole   bool  // every record of the kind has a row
	full    bool  // there is no room for more rows
	version int64 // rises with every change of a row
	used    int64 // when the set used it last
	begun   bool  // change and silent are set
	working chan struct{}
	failed  error // of the work that ended last
}

// isOf reports whether the rows are those of a store's edition.
func (p *progress) isOf(silent int64) bool { return p.begun && p.silent == silent }

const (
	perPage    = 256
	maxColumns = 64
)

// newTable makes an empty table.
func newTable(source string, k *spec.Kind) *Table {
	t := &Table{Source: source, Kind: k, byField: map[string]*Column{}, watchers: map[*Watch]bool{},
		pages: map[int64]*[perPage]int32{}}
	for f, s := range sorts(k) {
		c := &Column{Field: f, Sort: s}
		t.columns = append(t.columns, c)
		t.byField[f.Name] = c
		t.fields.Add(query.FieldOf(f))
	}
	return t
}

// sorts are the fields of a kind that have a column.
func sorts(k *spec.Kind) iter.Seq2[*spec.Field, Sort] {
	return func(yield func(*spec.Field, Sort) bool) {
		n := 0
		for _, f := range k.Fields {
			if s, ok := sortOf(k, f); ok && n < maxColumns {
				if n++; !yield(f, s) {
					return
				}
			}
		}
	}
}

// empty takes all rows out.
func (t *Table) empty() {
	empty := newTable(t.Source, t.Kind)
	t.columns, t.byField = empty.columns, empty.byField
	t.pages, t.free, t.live, t.unreadable = empty.pages, nil, nil, nil
	t.progress.whole, t.progress.full = false, false
	t.progress.version++
	t.letGo(false)
}

// reset takes all rows out and begins anew with the changes.
func (t *Table) reset() {
	t.empty()
	t.progress.begun = false
	t.letGo(true)
}

// letGo ends the watches of rows, or all.
func (t *Table) letGo(all bool) {
	for w := range t.watchers {
		if all || w.watcher != nil {
			t.Unwatch(w)
		}
	}
}

// Watch tells a watcher of the changes of rows from now on. The table is locked.
func (t *Table) Watch(w Watcher) *Watch { return t.watch(&Watch{watcher: w}) }

// Follow tells a follower of the changes of records from now on. The table is locked.
func (t *Table) Follow(f Follower) *Watch { return t.watch(&Watch{follower: f}) }

func (t *Table) watch(w *Watch) *Watch {
	w.from = t.progress.change
	t.watchers[w] = true
	return w
}

// Unwatch ends what Watch or Follow began. The table is locked.
func (t *Table) Unwatch(w *Watch) {
	w.Gone = true
	delete(t.watchers, w)
}

// Column is the column of a field; nil when it has none.
func (t *Table) Column(field string) *Column { return t.byField[field] }

// Has is the sort of column that a field of a kind has; ok is false when it has none.
func Has(k *spec.Kind, field string) (s Sort, ok bool) {
	for f, s := range sorts(k) {
		if f.Name == field {
			return s, true
		}
	}
	return 0, false
}

// Version is a number that stays while no row changes. The table is locked.
func (t *Table) Version() int64 { return t.progress.version }

// Rows calls yield with every row in use, until it returns false.
func (t *Table) Rows(yield func(row int32) bool) {
	for i, word := range t.live {
		for word != 0 {
			if !yield(int32(i*64 + bits.TrailingZeros64(word))) {
				return
			}
			word &= word - 1
		}
	}
}

// Records calls yield with every record and its row, until it returns false. The table is locked.
func (t *Table) Records(yield func(record int64, row int32) bool) {
	for n, page := range t.pages {
		for i, row := range page {
			if row != 0 && !yield(n*perPage+int64(i), row-1) {
				return
			}
		}
	}
}

// Whole reports whether every record of the kind has a row. The table is locked.
func (t *Table) Whole() bool { return t.progress.whole }

// Row is the row of a record; ok is false when it has none.
func (t *Table) Row(record int64) (int32, bool) {
	page := t.pages[record/perPage]
	if page == nil || page[record%perPage] == 0 {
		return 0, false
	}
	return page[record%perPage] - 1, true
}

// Ensure is the row of a record, which it puts in when it has none. ok is false when there
// is no room for it. The table is locked.
func (t *Table) Ensure(r *understudy.Record) (row int32, ok bool) {
	if row, ok = t.Row(r.Number); !ok {
		t.apply(r.Number, r)
		row, ok = t.Row(r.Number)
	}
	return row, ok
}

// apply sets the row of a record, or takes it out when r is nil.
func (t *Table) apply(record int64, r *understudy.Record) {
	row, had := t.Row(record)
	if had {
		for w := range t.watchers {
			if w.watcher != nil {
				w.watcher.Leave(row)
			}
		}
		t.clear(row)
	}
	if r == nil {
		if had {
			t.remove(record, row)
			t.progress.version++
		}
		return
	}
	if !had {
		if t.progress.full {
			return
		}
		row = t.add(record)
	}
	t.progress.version++
	if t.fill(row, r) { // tests that were made of the cells may be wrong now
		t.letGo(false)
		return
	}
	for w := range t.watchers {
		if w.watcher != nil {
			w.watcher.Enter(row, r)
		}
	}
}

func (t *Table) clear(row int32) {
	for i, c := range t.columns {
		c.clear(row, t.unreadable[row]>>i&1 != 0)
	}
	t.unreadable[row] = 0
}

// fill sets the cells of a row. It reports whether a column has an unreadable value that had none.
func (t *Table) fill(row int32, r *understudy.Record) (worse bool) {
	doc, err := jsonspan.Parse(r.Body)
	if err != nil {
		doc = jsonspan.Value{}
	}
	t.values = t.fields.Read(t.values[:0], r.Body, doc)
	for i, c := range t.columns {
		sure := c.unreadable == 0
		if c.put(row, t.values[i]) {
			t.unreadable[row] |= 1 << i
			worse = worse || sure
		}
	}
	return worse
}

// add makes a row for a record.
func (t *Table) add(record int64) (row int32) {
	if last := len(t.free) - 1; last >= 0 {
		row = t.free[last]
		t.free = t.free[:last]
	} else {
		row = int32(len(t.unreadable))
		t.unreadable = append(t.unreadable, 0)
		for _, c := range t.columns {
			c.cells = append(c.cells, 0)
		}
		if int(row)/64 == len(t.live) {
			t.live = append(t.live, 0)
		}
	}
	t.live[row/64] |= 1 << (row % 64)
	page := t.pages[record/perPage]
	if page == nil {
		page = new([perPage]int32)
		t.pages[record/perPage] = page
	}
	page[record%perPage] = row + 1
	return row
}

func (t *Table) remove(record int64, row int32) {
	t.live[row/64] &^= 1 << (row % 64)
	t.free = append(t.free, row)
	t.pages[record/perPage][record%perPage] = 0
}

// bytes is about how many bytes the table takes.
func (t *Table) bytes() int64 {
	n := int64(len(t.pages))*(perPage*4+64) + int64(cap(t.unreadable))*8 + int64(cap(t.live))*8 + int64(cap(t.free))*4
	for _, c := range t.columns {
		n += int64(cap(c.cells))*4 + c.words.bytes + int64(len(c.odd))*96
	}
	return n
}
