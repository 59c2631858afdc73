// This file contains the table with the columns of one kind, and tells watchers about changed rows.

// Package columns keeps a few fields of many records in memory and updates them as records change.
package columns

import (
	"iter"
	"math/bits"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/kit/lockwatch"
	"understudy/spec"
)

// RowWatcher is notified of changes of a table's rows. The table is locked during the calls.
type RowWatcher interface {
	// RemoveRow is called before the values of a row change or the row is deleted.
	RemoveRow(row int32)
	// AddRow is called after a row received the values of a record.
	AddRow(row int32, r *understudy.Record)
}

// RecordFollower is notified of every changed record of a table's kind, also of records without a row. The table is
// locked during the calls.
type RecordFollower interface {
	// UpdateRecord is called with the current form of a record, or with nil if the record was deleted.
	UpdateRecord(record int64, r *understudy.Record)
}

// Watch is the progress of a watcher or follower. The lock of its table guards it.
type Watch struct {
	Ready bool // whether the watcher must be notified of every change from now on
	// Ended is true after the table was reset, or after tests compiled from its cells became invalid. The watcher
	// is then no longer notified.
	Ended     bool
	watermark int64 // the number of the last change that the watcher received
	watcher   RowWatcher
	follower  RecordFollower
}

// Table stores the columns of a kind, with one row per record. Its lock guards the columns and everything that reads them.
type Table struct {
	lockwatch.Mutex
	Source string
	Kind   *spec.Kind

	columns  []*Column
	byField  map[string]*Column
	fields   query.Fields
	watchers map[*Watch]bool
	values   []query.Value // a reused buffer for the values of one record

	progress progress

	pages    map[int64]*[recordsPerPage]int32 // the row of each record, plus 1, by the store's number of the record
	freeRows []int32
	usedRows []uint64 // a bit for each row, set if the row is in use
	// unreadable has, for each row, a bit for each column, set if the cell cannot represent the value.
	unreadable []uint64
}

// progress is how much of the store a table has read. The table's lock guards it.
type progress struct {
	silent   int64         // the number silent that the store's ReadEdition returned
	change   int64         // the number of the last change that the rows contain
	complete bool          // whether every record of the kind has a row
	full     bool          // whether there is no room for more rows
	version  int64         // a number that increases with every change of a row
	lastUsed int64         // the value of Set.useCount when the table was last used
	started  bool          // whether change and silent are set
	working  chan struct{} // closed when the running background work ends; nil if none runs
	err      error         // the error of the last background work
}

func (p *progress) hasEdition(silent int64) bool { return p.started && p.silent == silent }

const (
	recordsPerPage = 256
	maxColumns     = 64
)

func newTable(source string, k *spec.Kind) *Table {
	t := &Table{Source: source, Kind: k, byField: map[string]*Column{}, watchers: map[*Watch]bool{},
		pages: map[int64]*[recordsPerPage]int32{}}
	for f, s := range columnFields(k) {
		c := &Column{Field: f, Sort: s}
		t.columns = append(t.columns, c)
		t.byField[f.Name] = c
		t.fields.Add(query.FieldOf(f))
	}
	return t
}

// columnFields returns the fields of a kind that have a column, with the sort of each.
func columnFields(k *spec.Kind) iter.Seq2[*spec.Field, Sort] {
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

func (t *Table) removeAll() {
	empty := newTable(t.Source, t.Kind)
	t.columns, t.byField = empty.columns, empty.byField
	t.pages, t.freeRows, t.usedRows, t.unreadable = empty.pages, nil, nil, nil
	t.progress.complete, t.progress.full = false, false
	t.progress.version++
	t.endWatches(false)
}

// reset deletes all rows and forgets which changes were read.
func (t *Table) reset() {
	t.removeAll()
	t.progress.started = false
	t.endWatches(true)
}

// endWatches ends the watches of row watchers; if all is true, also those of followers.
func (t *Table) endWatches(all bool) {
	for w := range t.watchers {
		if all || w.watcher != nil {
			t.EndWatch(w)
		}
	}
}

// Watch begins to notify a watcher of changed rows. The caller must hold the table's lock.
func (t *Table) Watch(w RowWatcher) *Watch { return t.watch(&Watch{watcher: w}) }

// Follow begins to notify a follower of changed records. The caller must hold the table's lock.
func (t *Table) Follow(f RecordFollower) *Watch { return t.watch(&Watch{follower: f}) }

func (t *Table) watch(w *Watch) *Watch {
	w.watermark = t.progress.change
	t.watchers[w] = true
	return w
}

// EndWatch ends what Watch or Follow began. The caller must hold the table's lock.
func (t *Table) EndWatch(w *Watch) {
	w.Ended = true
	delete(t.watchers, w)
}

// Column returns the column of a field, or nil if the field has no column.
func (t *Table) Column(field string) *Column { return t.byField[field] }

// SortOfField returns the sort of a field's column. ok is false if the field has no column.
func SortOfField(k *spec.Kind, field string) (s Sort, ok bool) {
	for f, s := range columnFields(k) {
		if f.Name == field {
			return s, true
		}
	}
	return 0, false
}

// Version returns a number that increases when a row changes. The caller must hold the table's lock.
func (t *Table) Version() int64 { return t.progress.version }

// VisitRows calls yield with every row in use until yield returns false.
func (t *Table) VisitRows(yield func(row int32) bool) {
	for i, word := range t.usedRows {
		for word != 0 {
			if !yield(int32(i*64 + bits.TrailingZeros64(word))) {
				return
			}
			word &= word - 1
		}
	}
}

// VisitRecords calls yield with every record and its row until yield returns false. The caller must hold the table's lock.
func (t *Table) VisitRecords(yield func(record int64, row int32) bool) {
	for n, page := range t.pages {
		for i, row := range page {
			if row != 0 && !yield(n*recordsPerPage+int64(i), row-1) {
				return
			}
		}
	}
}

// IsComplete reports whether every record of the kind has a row. The caller must hold the table's lock.
func (t *Table) IsComplete() bool { return t.progress.complete }

// Row returns the row of a record. ok is false if the record has no row.
func (t *Table) Row(record int64) (int32, bool) {
	page := t.pages[record/recordsPerPage]
	if page == nil || page[record%recordsPerPage] == 0 {
		return 0, false
	}
	return page[record%recordsPerPage] - 1, true
}

// EnsureRow returns the row of a record and adds it if needed. ok is false if there is no room. The caller must
// hold the table's lock.
func (t *Table) EnsureRow(r *understudy.Record) (row int32, ok bool) {
	if row, ok = t.Row(r.Number); !ok {
		t.applyRecord(r.Number, r)
		row, ok = t.Row(r.Number)
	}
	return row, ok
}

// applyRecord sets the row of a record, or deletes the row if r is nil.
func (t *Table) applyRecord(record int64, r *understudy.Record) {
	row, had := t.Row(record)
	if had {
		for w := range t.watchers {
			if w.watcher != nil {
				w.watcher.RemoveRow(row)
			}
		}
		for i, c := range t.columns {
			c.clear(row, t.unreadable[row]>>i&1 != 0)
		}
		t.unreadable[row] = 0
	}
	if r == nil {
		if had {
			t.usedRows[row/64] &^= 1 << (row % 64)
			t.freeRows = append(t.freeRows, row)
			t.pages[record/recordsPerPage][record%recordsPerPage] = 0
			t.progress.version++
		}
		return
	}
	if !had {
		if t.progress.full {
			return
		}
		row = t.addRow(record)
	}
	t.progress.version++
	if t.fillRow(row, r) { // an unreadable value makes tests that were compiled from the cells wrong
		t.endWatches(false)
		return
	}
	for w := range t.watchers {
		if w.watcher != nil {
			w.watcher.AddRow(row, r)
		}
	}
}

// fillRow sets the cells of a row. It returns true if a column received its first unreadable value.
func (t *Table) fillRow(row int32, r *understudy.Record) (worse bool) {
	doc, err := jsonspan.Parse(r.Body)
	if err != nil {
		doc = jsonspan.Value{}
	}
	t.values = t.fields.Read(t.values[:0], r.Body, doc)
	for i, c := range t.columns {
		sure := c.unreadable == 0
		if c.putValue(row, t.values[i]) {
			t.unreadable[row] |= 1 << i
			worse = worse || sure
		}
	}
	return worse
}

// addRow reserves a row for a record.
func (t *Table) addRow(record int64) (row int32) {
	if last := len(t.freeRows) - 1; last >= 0 {
		row = t.freeRows[last]
		t.freeRows = t.freeRows[:last]
	} else {
		row = int32(len(t.unreadable))
		t.unreadable = append(t.unreadable, 0)
		for _, c := range t.columns {
			c.cells = append(c.cells, 0)
		}
		if int(row)/64 == len(t.usedRows) {
			t.usedRows = append(t.usedRows, 0)
		}
	}
	t.usedRows[row/64] |= 1 << (row % 64)
	page := t.pages[record/recordsPerPage]
	if page == nil {
		page = new([recordsPerPage]int32)
		t.pages[record/recordsPerPage] = page
	}
	page[record%recordsPerPage] = row + 1
	return row
}

// bytes returns an estimate of the table's memory in bytes.
func (t *Table) bytes() int64 {
	n := int64(len(t.pages))*(recordsPerPage*4+64) + int64(cap(t.unreadable))*8 + int64(cap(t.usedRows))*8 + int64(cap(t.freeRows))*4
	for _, c := range t.columns {
		n += int64(cap(c.cells))*4 + c.words.bytes + int64(len(c.large))*96
	}
	return n
}
