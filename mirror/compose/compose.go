// Compose: a list answer made from records.

// Package compose makes list answers from records, in upstream's own envelope.
//
// The request says which records belong to the list and where its page begins.
// The store hands the records in, in the order of their places. The page is what
// upstream would have answered, byte for byte. What upstream
// does where it leaves things open is said by the spec (docs/reference/specs.md). Nothing
// here asks upstream anything.
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

// Options are what composing needs to know besides the request. The zero value
// works: then nothing is held.
type Options struct {
	// Now is the time, for what upstream refuses by it; nil: lists whose answer
	// depends on it are not composed.
	Now func() time.Time
	// Wish is asked beyond what upstream's own parameters say; nil: nothing.
	Local *request.LocalQuery
	// Held is the record of a kind that is present, in any shape, or nil. A list
	// under a record (or under another account) is composed only when that
	// record is held: upstream says 404 where it is not. It is called a few
	// times at most, during New. nil: nothing is held.
	Held func(kind, id string) *understudy.Record
	// Own is a record of the list as the list itself last showed it, nil when
	// it never did or when the record, which is given as another list shows it,
	// has changed since. nil: lists whose rows say more than any other list does
	// are not composed.
	Own func(*understudy.Record) *understudy.Record
	// AsShown: only what the list itself showed is looked at, also where the spec
	// says how its rows come of those of another.
	AsShown bool
	// OwnTokens allows page tokens of our own form where the spec gives no rule.
	// Upstream refuses them: a list that has them must be composed to its end.
	OwnTokens bool
	// Downward says that records can only be handed in newest first.
	Downward bool
}

// List is one page of a list on its way. It is used by one goroutine.
type List struct {
	req   listRequest
	place position
	tests []query.Condition
	match *query.Matcher // of tests
	seek  query.RecordQuery

	none bool // upstream shows nothing here, or no record can match
	told bool // the rows are as the list shows them
	more bool // rows come after the last one
	seen rowCount

	// What Take has taken, and whether it takes more:
	rows   []query.Hit
	bytes  int64
	done   bool
	asking pass
}

// listRequest is a list request, with the part of the spec it belongs to.
type listRequest struct {
	src    *spec.Source
	target *spec.Target
	paging *spec.Paging
	o      Options
}

// position is where in its list the page begins and ends.
type position struct {
	size, page int64
	skip       int64  // rows of earlier pages, when they are named by a number alone
	token      string // as the request gave it
	start      string // the record the token names
	back       bool   // the page ends before it
	upward     bool   // and the list goes on above it (paging.Rules.Back)
	cut        bool   // of an upward page read downward: rows come before the first one
	form       paging.TokenForm
	stop       query.OrderKey
}

// pass is what the records handed in are for.
type pass uint8

const (
	forRows pass = iota
	forMore      // whether any comes after the last row of a page read backwards
)

// MaxBytes bounds the rows of one page.
const MaxBytes = 64 << 20

// New reads what a list's path and query ask for. A *Refusal: upstream itself
// refuses the request, with that answer. ErrInvalid: the list is not composed,
// with the reason in words: a kind without records, a parameter the spec does
// not name, a value or a parent of which it is not known what upstream says.
func New(src *spec.Source, t *spec.Target, o Options) (*List, error) {
	if t.Apart() {
		return nil, fmt.Errorf("%w: records are kept as they are without the header %s", understudy.ErrInvalid, t.Header[0].Name)
	}
	if t.List != nil && !t.NewestFirst() {
		return nil, fmt.Errorf("%w: records are kept newest first, and this list has another order", understudy.ErrInvalid)
	}
	if t.List == nil || t.Kind == nil || len(t.Kind.ID) == 0 {
		return nil, fmt.Errorf("%w: this list is kept as whole pages, not as records", understudy.ErrInvalid)
	}
	l := &List{req: listRequest{src: src, target: t, paging: t.Spec.PagingOf(t.List), o: o}}
	if l.req.paging.Template == "" {
		return nil, fmt.Errorf("%w: the spec does not say how this list is written", understudy.ErrInvalid)
	}
	l.place.form = l.req.paging.TokenForm(t.Kind)
	l.seek = query.RecordQuery{Source: src.Name, Kinds: []string{t.Kind.Name}, Shape: l.req.shape()}
	if w := o.Local; w != nil {
		l.seek.Up, l.seek.Since, l.seek.Text = w.Up, w.Since, w.Text
		if w.Up && o.Downward {
			return nil, fmt.Errorf("%w: this list can only be read newest first", understudy.ErrInvalid)
		}
	}
	if err := l.req.known(); err != nil {
		return nil, err
	}
	for i := range t.Vars {
		if err := l.under(i); err != nil {
			return nil, err
		}
	}
	for _, f := range t.Kind.Fields { // in a fixed order, which a map has not
		if value, ok := t.List.Only[f.Name]; ok {
			l.is(f.Name, value)
		}
	}
	for _, f := range t.List.Filters {
		if err := l.filter(f); err != nil {
			return nil, err
		}
	}
	if err := l.readPlace(); err != nil {
		return nil, err
	}
	if w := o.Local; w != nil {
		l.seek.From = max(l.seek.From, w.From)
		l.seek.Rule = w.Predicates
		l.none = l.none || w.Text != nil && w.Text.Op == query.TextNone
	}
	l.begin()
	return l, nil
}

// begin makes ready for the first record.
func (l *List) begin() {
	l.match = query.Compile(l.tests, query.Options{})
	if l.place.back && !l.req.o.Downward {
		l.seek.Up = !l.seek.Up
	}
	if back := l.place.back && l.req.o.Downward; !back {
		l.seek.Want = int(min(l.place.skip+l.place.size+1, math.MaxInt32))
	}
	if len(l.tests) == 0 && l.req.only() == nil && !l.req.o.Downward {
		l.seek.Limit = l.seek.Want
	}
	l.done = l.none
	if !l.none {
		l.rows = make([]query.Hit, 0, min(l.place.size, 64))
	}
}

func (l *listRequest) only() func(*understudy.Record) bool {
	if l.o.Local == nil {
		return nil
	}
	return l.o.Local.Only
}

// Seek is what records to hand in, as narrow as it can be said; more of them do
// no harm.
func (l *List) Seek() query.RecordQuery { return l.seek }

// Start is the record the page begins after (back: ends before), "" for none.
// Its place must be told to Below before the first Take.
func (l *List) Start() (id string, back bool) { return l.place.start, l.place.back }

// Below tells the place of the record that Start names, present or gone.
func (l *List) Below(p query.OrderKey) {
	if l.place.back && l.req.o.Downward {
		l.place.stop = p
		return
	}
	l.seek.Below = p
}

// Belongs reports whether a record is one of the list's, wherever it stands.
func (l *List) Belongs(f query.Hit) bool { return !l.none && l.passes(f) }

// Most is how many of the list's records decide what the page is, counted from
// where Seek begins; 0: as many as there are.
func (l *List) Most() int64 {
	if l.place.stop != 0 {
		return 0
	}
	return l.place.skip + l.place.size + 1
}

// Take is told one record after the other, in the order of Seek. It returns
// false when it needs no more. Bodies are not kept longer than the list.
func (l *List) Take(f query.Hit) bool {
	if l.done || !l.passes(f) {
		return !l.done
	}
	l.seen.add(f.Order)
	switch {
	case l.asking == forMore, l.place.stop != 0 && f.Order <= l.place.stop:
		l.done, l.more = true, true
		return false
	case l.place.skip > 0:
		l.place.skip--
		return true
	case l.place.stop != 0 && int64(len(l.rows)) == l.place.size: // downwards to a token: the last ones count
		l.bytes -= int64(len(l.rows[0].Record.Body))
		l.rows, l.place.cut = slices.Delete(l.rows, 0, 1), true
	}
	if int64(len(l.rows)) == l.place.size || l.bytes+int64(len(f.Record.Body)) > MaxBytes {
		l.done, l.more = true, true
		return false
	}
	l.rows = append(l.rows, f)
	l.bytes += int64(len(f.Record.Body))
	return true
}

// goesOn reports whether the list goes on behind this page, the way it is walked.
func (l *List) goesOn() bool {
	if l.place.upward && l.req.o.Downward {
		return l.place.cut
	}
	return l.more
}

// Slides reports whether the page, or the one after it, is named by a number alone: beside a
// page that upstream gave at another moment it would leave a hole, or have rows twice.
func (l *List) Slides() bool { return l.req.paging.Slides() && (l.place.page > 0 || l.goesOn()) }

// Again reports whether Seek asks something else now that all of it was handed
// in: a page before a token is read backwards, and then whether any record
// comes after it must be found out.
func (l *List) Again() bool {
	if !l.place.back || l.req.o.Downward || l.asking == forMore || l.none {
		return false
	}
	slices.Reverse(l.rows)
	if l.place.upward {
		return false // what was found is what the answer tells of
	}
	l.asking, l.done, l.more = forMore, false, false
	l.seek.Up = !l.seek.Up
	if len(l.rows) == 0 {
		return false
	}
	l.seek.Below = l.rows[len(l.rows)-1].Order
	l.seek.Limit, l.seek.Want = min(l.seek.Limit, 1), 1
	return true
}

// Store is where records are.
type Store interface {
	// Seek hands out records in the order of their places until yield returns
	// false.
	Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error
	// FindPlace is the place of a record, also of one that is gone; ErrNotFound:
	// it was never seen.
	FindPlace(ctx context.Context, source, kind, id string) (query.OrderKey, error)
}

// Fill reads the page's records from a store. ErrInvalid: the token names a
// record that was never seen, so that upstream must be asked (see Astray).
func (l *List) Fill(ctx context.Context, s Store) error {
	if l.none {
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
		l.Below(place)
	}
	for ok := true; ok; ok = l.Again() {
		if err := s.Seek(ctx, l.seek, l.Take); err != nil {
			return err
		}
	}
	return nil
}
