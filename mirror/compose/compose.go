// Composing: a page of a list is made from stored records.

// Package compose makes answers for lists from stored records, in upstream's own format.
//
// The request says which records belong to the list and where its page begins. The store passes the records
// in the order of their places. The page equals upstream's answer byte for byte. If an API leaves details
// open, the spec describes them (docs/reference/specs.md). This package sends no requests.
package compose

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/paging"
)

// Options are what New needs besides the request. The zero value works as if no record were stored.
type Options struct {
	// Now returns the time. It is needed for requests that upstream refuses or not depending on the time. If it is
	// nil, such lists are not composed.
	Now func() time.Time
	// Local is a query that upstream's own parameters cannot express. It may be nil.
	Local *request.LocalQuery
	// FindRecord returns a stored record of a kind in any shape, or nil. A list under a record, or under
	// another account, is composed only if that record is stored, because upstream answers 404 without it.
	// New calls it at most a few times. If it is nil, no record counts as stored.
	FindRecord func(kind, id string) *understudy.Record
	// FindListed returns a record in the form in which this list last showed it. Its argument is the record in the
	// form of another list. It returns nil if this list has never shown the record, or if the record has changed
	// since. If FindListed is nil, lists are not composed if their rows have more fields than those of other lists.
	FindListed func(*understudy.Record) *understudy.Record
	// ListedOnly leaves out records in the form of another list, even if the spec says how to convert them.
	ListedOnly bool
	// OwnTokens permits page tokens in Understudy's format if the spec does not describe upstream's. Upstream refuses
	// our tokens, so all later pages of the list must be composed too.
	OwnTokens bool
	// NewestFirstOnly means that records can be read only from the newest to the oldest.
	NewestFirstOnly bool
}

// List composes one page of a list. Only one goroutine may use it.
type List struct {
	req   listRequest
	place position
	tests []query.Condition
	match *query.Matcher // the conditions for records of the list in compiled form
	seek  query.RecordQuery

	isEmpty   bool // whether the list is empty, because upstream shows nothing here or no record can match
	rewritten bool // whether the rows are already in the form in which this list shows records
	hasMore   bool // whether the list has more rows after the last row of the page
	seen      rowCount

	// The rows of the page so far, their size in bytes, and whether Take accepts more records.
	rows  []query.Hit
	bytes int64
	done  bool
	pass  pass
}

// listRequest is the parsed request for a list, and the part of the spec that describes it.
type listRequest struct {
	src     *spec.Source
	target  *spec.Target
	paging  *spec.Paging
	options Options
}

// position says which part of the list the page shows.
type position struct {
	size, page int64
	skip       int64  // the number of rows before the page, if the request names the page only by a number
	token      string // the page token in the request
	start      string // the id of the record that the page token names
	backward   bool   // whether the page ends before the record that the token names, instead of beginning after it
	upward     bool   // whether the list continues above the record that the token names (paging.Rules.Back)
	trimmed    bool   // whether an upward page that is read downward has rows before its first row
	form       paging.TokenForm
	stop       query.OrderKey
}

// pass says why the records are read: for the rows of the page, or to find out if there are more.
type pass uint8

const (
	passRows pass = iota
	passMore      // records are read to find out whether any follows a page that was read backward
)

// MaxBytes is the maximum size of the rows of one page.
const MaxBytes = 64 << 20

// New parses the path and the query of a request for a list. It returns a *Refusal if upstream would refuse the
// request. It returns ErrInvalid with the reason if the list cannot be composed. Examples are a kind without records,
// an unknown parameter, or a value for which upstream's answer is not known.
func New(src *spec.Source, t *spec.Target, o Options) (*List, error) {
	if t.HasKeyHeader() {
		return nil, fmt.Errorf("%w: records are stored as they look without the header %s", understudy.ErrInvalid, t.Header[0].Name)
	}
	if t.List != nil && !t.IsNewestFirst() {
		return nil, fmt.Errorf("%w: records are stored newest first, and this list has another order", understudy.ErrInvalid)
	}
	if t.List == nil || t.Kind == nil || len(t.Kind.ID) == 0 {
		return nil, fmt.Errorf("%w: this list is stored as whole pages, not as records", understudy.ErrInvalid)
	}
	l := &List{req: listRequest{src: src, target: t, paging: t.Spec.PagingOf(t.List), options: o}}
	if l.req.paging.Template == "" {
		return nil, fmt.Errorf("%w: the spec does not describe the format of this list", understudy.ErrInvalid)
	}
	l.place.form = l.req.paging.TokenForm(t.Kind)
	l.seek = query.RecordQuery{Source: src.Name, Kinds: []string{t.Kind.Name}, Shape: l.req.shape()}
	if w := o.Local; w != nil {
		l.seek.OldestFirst, l.seek.Since, l.seek.Text = w.OldestFirst, w.Since, w.Text
		if w.Near != nil {
			l.seek.Numbers = w.Near.Numbers
		}
		if (w.OldestFirst || w.Near != nil) && o.NewestFirstOnly {
			return nil, fmt.Errorf("%w: this list can only be read newest first", understudy.ErrInvalid)
		}
	}
	if err := l.req.checkParams(); err != nil {
		return nil, err
	}
	for i := range t.Vars {
		if err := l.narrowToVar(i); err != nil {
			return nil, err
		}
	}
	for _, f := range t.Kind.Fields { // sorted, because the order of a Go map changes from run to run
		if value, ok := t.List.FixedValues[f.Name]; ok {
			l.addEqual(f.Name, value)
		}
	}
	for _, f := range t.List.Filters {
		if err := l.addFilter(f); err != nil {
			return nil, err
		}
	}
	if err := l.readPlace(); err != nil {
		return nil, err
	}
	if w := o.Local; w != nil {
		l.seek.From = max(l.seek.From, w.From)
		l.seek.Rule = w.Predicates
		noneNear := w.Near != nil && w.Near.Numbers != nil && len(w.Near.Numbers) == 0
		l.isEmpty = l.isEmpty || noneNear || w.Text != nil && w.Text.Op == query.TextNone
	}
	l.begin()
	return l, nil
}

// begin prepares the list for the first call of Take.
func (l *List) begin() {
	l.match = query.Compile(l.tests, query.Options{})
	if l.place.backward && !l.req.options.NewestFirstOnly {
		l.seek.OldestFirst = !l.seek.OldestFirst
	}
	if back := l.place.backward && l.req.options.NewestFirstOnly; !back {
		l.seek.ExpectedRows = int(min(l.place.skip+l.place.size+1, math.MaxInt32))
	}
	if len(l.tests) == 0 && l.req.localFilter() == nil && !l.req.options.NewestFirstOnly {
		l.seek.Limit = l.seek.ExpectedRows
	}
	l.done = l.isEmpty
	if !l.isEmpty {
		l.rows = make([]query.Hit, 0, min(l.place.size, 64))
	}
}

func (l *listRequest) localFilter() func(*understudy.Record) bool {
	if l.options.Local == nil {
		return nil
	}
	return l.options.Local.CanFind
}

// Seek returns the query for the records that the caller must pass to Take. More records than these do no harm.
func (l *List) Seek() query.RecordQuery { return l.seek }

// Start returns the record after which the page begins, or if back is true, before which the page ends. id is "" if there is no
// such record. Otherwise the caller must pass the record's place to SetStart before the first call of Take.
func (l *List) Start() (id string, back bool) { return l.place.start, l.place.backward }

// SetStart sets the place of the record that Start returned. The record itself may have been deleted.
func (l *List) SetStart(p query.OrderKey) {
	if l.place.backward && l.req.options.NewestFirstOnly {
		l.place.stop = p
		return
	}
	l.seek.Below = p
}

// HasRecord reports whether any page of the list shows a record.
func (l *List) HasRecord(f query.Hit) bool { return !l.isEmpty && l.matchRecord(f) }

// Take adds one record. Records must come in the order of Seek. It returns false if the page needs no more. The list
// keeps a reference to the record's body.
func (l *List) Take(f query.Hit) bool {
	if l.done || !l.matchRecord(f) {
		return !l.done
	}
	l.seen.add(f.Order)
	switch {
	case l.pass == passMore, l.place.stop != 0 && f.Order <= l.place.stop:
		l.done, l.hasMore = true, true
		return false
	case l.place.skip > 0:
		l.place.skip--
		return true
	// a page that is read downward to its token shows the last rows before the token
	case l.place.stop != 0 && int64(len(l.rows)) == l.place.size:
		l.bytes -= int64(len(l.rows[0].Record.Body))
		l.rows, l.place.trimmed = slices.Delete(l.rows, 0, 1), true
	}
	if int64(len(l.rows)) == l.place.size || l.bytes+int64(len(f.Record.Body)) > MaxBytes {
		l.done, l.hasMore = true, true
		return false
	}
	l.rows = append(l.rows, f)
	l.bytes += int64(len(f.Record.Body))
	return true
}

// hasNextPage reports whether the list has rows after this page, in the direction in which the client reads.
func (l *List) hasNextPage() bool {
	if l.place.upward && l.req.options.NewestFirstOnly {
		return l.place.trimmed
	}
	return l.hasMore
}

// HasNumberedPages reports whether this page or the next is named only by a number. Such a page must not stand beside
// a page that upstream gave at another time: rows could be missing or occur twice.
func (l *List) HasNumberedPages() bool {
	return l.req.paging.IsSliding() && (l.place.page > 0 || l.hasNextPage())
}

// NeedAnotherPass reports whether all records must be read a second time, with the new query that Seek returns. A
// page before a token is read backward first. The second pass finds out whether rows follow the page.
func (l *List) NeedAnotherPass() bool {
	if !l.place.backward || l.req.options.NewestFirstOnly || l.pass == passMore || l.isEmpty {
		return false
	}
	slices.Reverse(l.rows)
	if l.place.upward {
		return false // an upward page needs no other pass, because it has been read in the direction of the list
	}
	l.pass, l.done, l.hasMore = passMore, false, false
	l.seek.OldestFirst = !l.seek.OldestFirst
	if len(l.rows) == 0 {
		return false
	}
	l.seek.Below = l.rows[len(l.rows)-1].Order
	l.seek.Limit, l.seek.ExpectedRows = min(l.seek.Limit, 1), 1
	return true
}

// Store is where records are read from.
type Store interface {
	// Seek calls yield with records in the order of their places until yield returns false.
	Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error
	// FindPlace returns the place of a record in lists, even if the record has been deleted. It returns ErrNotFound
	// if the record has never been stored.
	FindPlace(ctx context.Context, source, kind, id string) (query.OrderKey, error)
}

// Fill reads the records of the page from a store. It returns ErrInvalid if the page token names a record that has
// never been stored. The caller must then ask upstream (see RefuseToken).
func (l *List) Fill(ctx context.Context, s Store) error {
	if l.isEmpty {
		return nil
	}
	if l.place.start != "" {
		place, err := s.FindPlace(ctx, l.req.src.Name, l.req.target.Kind.Name, l.place.start)
		switch {
		case errors.Is(err, understudy.ErrNotFound):
			return fmt.Errorf("%w: the page token names an unknown record", understudy.ErrInvalid)
		case err != nil:
			return err
		}
		l.SetStart(place)
	}
	if w := l.req.options.Local; w != nil && w.Near != nil {
		n := &byDistance{store: s, list: l, near: w.Near}
		defer func() { l.seen = rowCount{rows: int64(len(n.found)), all: true} }() // it reads the whole list
		s = n
	}
	for ok := true; ok; ok = l.NeedAnotherPass() {
		if err := s.Seek(ctx, l.seek, l.Take); err != nil {
			return err
		}
	}
	return nil
}
