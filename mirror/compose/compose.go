// Composing: a list's answer made from records.

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

// Options are what composing needs besides the request. With the zero value no record is stored.
type Options struct {
	// Now returns the time, for requests that upstream refuses depending on the time. If it is nil, such
	// lists are not composed.
	Now func() time.Time
	// Local is a query beyond upstream's own parameters, or nil.
	Local *request.LocalQuery
	// FindRecord returns a stored record of a kind in any shape, or nil. A list under a record, or under
	// another account, is composed only if that record is stored, because upstream answers 404 without it.
	// New calls it at most a few times. If it is nil, no record counts as stored.
	FindRecord func(kind, id string) *understudy.Record
	// FindListed returns a record as this list last showed it. It returns nil if the list never did, or if
	// the record has changed since; the argument is the record in another list's shape. If it is nil, lists
	// whose rows contain more than those of other lists are not composed.
	FindListed func(*understudy.Record) *understudy.Record
	// ListedOnly uses only records in the list's own shape, even if the spec says how to convert those of
	// another list.
	ListedOnly bool
	// OwnTokens allows page tokens in our own format if the spec has no rule. Upstream refuses them, so such
	// a list must be composed to its end.
	OwnTokens bool
	// NewestFirstOnly says that records can only be read newest first.
	NewestFirstOnly bool
}

// List is one page of a list while it is composed. Only one goroutine may use it.
type List struct {
	req   listRequest
	place position
	tests []query.Condition
	match *query.Matcher // the matcher compiled from tests
	seek  query.RecordQuery

	isEmpty   bool // upstream shows nothing here, or no record can match
	rewritten bool // the rows are in the list's shape
	hasMore   bool // rows follow after the last one
	seen      rowCount

	// The rows so far, and whether Take accepts more:
	rows  []query.Hit
	bytes int64
	done  bool
	pass  pass
}

// listRequest is a request for a list, with its part of the spec.
type listRequest struct {
	src     *spec.Source
	target  *spec.Target
	paging  *spec.Paging
	options Options
}

// position is where the page begins and ends in its list.
type position struct {
	size, page int64
	skip       int64  // number of rows before the page, if it is named only by a number
	token      string // the page token of the request
	start      string // the record that the token names
	backward   bool   // the page ends before that record
	upward     bool   // the list continues above that record (paging.Rules.Back)
	trimmed    bool   // an upward page that is read downward has rows before its first one
	form       paging.TokenForm
	stop       query.OrderKey
}

// pass is the purpose for which records are read.
type pass uint8

const (
	passRows pass = iota
	passMore      // find out whether a record follows the last row of a page read backward
)

// MaxBytes is the maximum size of the rows of one page.
const MaxBytes = 64 << 20

// New parses the path and query of a list request. It returns a *Refusal if upstream itself refuses the
// request. It returns ErrInvalid with a reason if the list cannot be composed. Examples are a kind without
// records, an unknown parameter, or a value for which upstream's answer is unknown.
func New(src *spec.Source, t *spec.Target, o Options) (*List, error) {
	if t.HasKeyHeader() {
		return nil, fmt.Errorf("%w: records are kept as they are without the header %s", understudy.ErrInvalid, t.Header[0].Name)
	}
	if t.List != nil && !t.IsNewestFirst() {
		return nil, fmt.Errorf("%w: records are kept newest first, and this list has another order", understudy.ErrInvalid)
	}
	if t.List == nil || t.Kind == nil || len(t.Kind.ID) == 0 {
		return nil, fmt.Errorf("%w: this list is kept as whole pages, not as records", understudy.ErrInvalid)
	}
	l := &List{req: listRequest{src: src, target: t, paging: t.Spec.PagingOf(t.List), options: o}}
	if l.req.paging.Template == "" {
		return nil, fmt.Errorf("%w: the spec does not say how this list is written", understudy.ErrInvalid)
	}
	l.place.form = l.req.paging.TokenForm(t.Kind)
	l.seek = query.RecordQuery{Source: src.Name, Kinds: []string{t.Kind.Name}, Shape: l.req.shape()}
	if w := o.Local; w != nil {
		l.seek.OldestFirst, l.seek.Since, l.seek.Text = w.OldestFirst, w.Since, w.Text
		if w.OldestFirst && o.NewestFirstOnly {
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
	for _, f := range t.Kind.Fields { // a fixed order, unlike that of the map
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
		l.isEmpty = l.isEmpty || w.Text != nil && w.Text.Op == query.TextNone
	}
	l.begin()
	return l, nil
}

// begin prepares the list for the first record.
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

// Seek returns the query for the records to pass to Take. Records beyond the query do no harm.
func (l *List) Seek() query.RecordQuery { return l.seek }

// Start returns the record after which the page begins, or before which it ends if back is true; "" if there
// is none. The caller must pass its place to SetStart before the first Take.
func (l *List) Start() (id string, back bool) { return l.place.start, l.place.backward }

// SetStart sets the place of the record that Start names, whether or not that record still exists.
func (l *List) SetStart(p query.OrderKey) {
	if l.place.backward && l.req.options.NewestFirstOnly {
		l.place.stop = p
		return
	}
	l.seek.Below = p
}

// HasRecord reports whether the list contains a record, on any page.
func (l *List) HasRecord(f query.Hit) bool { return !l.isEmpty && l.matchRecord(f) }

// MaxRecords returns how many records of the list, counted from the start of Seek, determine the page. It
// returns 0 if all do.
func (l *List) MaxRecords() int64 {
	if l.place.stop != 0 {
		return 0
	}
	return l.place.skip + l.place.size + 1
}

// Take adds one record, in the order of Seek. It returns false if no more records are needed. The list keeps
// the bodies.
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
	case l.place.stop != 0 && int64(len(l.rows)) == l.place.size: // downward to a token: the last rows count
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

// hasNextPage reports whether the list continues after this page in reading direction.
func (l *List) hasNextPage() bool {
	if l.place.upward && l.req.options.NewestFirstOnly {
		return l.place.trimmed
	}
	return l.hasMore
}

// HasNumberedPages reports whether this page or the next is named only by a number. Next to a page that
// upstream gave at another time, rows could be missing or repeated.
func (l *List) HasNumberedPages() bool {
	return l.req.paging.IsSliding() && (l.place.page > 0 || l.hasNextPage())
}

// NeedAnotherPass reports whether Seek has a new query after all its records were passed. A page before a
// token is read backward first. A second pass finds out whether records follow it.
func (l *List) NeedAnotherPass() bool {
	if !l.place.backward || l.req.options.NewestFirstOnly || l.pass == passMore || l.isEmpty {
		return false
	}
	slices.Reverse(l.rows)
	if l.place.upward {
		return false // the rows found are those that the answer reports
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
	// Seek passes records in the order of their places to yield, until yield returns false.
	Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error
	// FindPlace returns the place of a record, also of a deleted one. It returns ErrNotFound if the record was
	// never seen.
	FindPlace(ctx context.Context, source, kind, id string) (query.OrderKey, error)
}

// Fill reads the page's records from a store. It returns ErrInvalid if the token names a record that was
// never seen; then upstream must be asked (see RefuseToken).
func (l *List) Fill(ctx context.Context, s Store) error {
	if l.isEmpty {
		return nil
	}
	if l.place.start != "" {
		place, err := s.FindPlace(ctx, l.req.src.Name, l.req.target.Kind.Name, l.place.start)
		switch {
		case errors.Is(err, understudy.ErrNotFound):
			return fmt.Errorf("%w: the page token names a record that nobody has seen", understudy.ErrInvalid)
		case err != nil:
			return err
		}
		l.SetStart(place)
	}
	for ok := true; ok; ok = l.NeedAnotherPass() {
		if err := s.Seek(ctx, l.seek, l.Take); err != nil {
			return err
		}
	}
	return nil
}
