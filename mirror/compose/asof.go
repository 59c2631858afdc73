// Lists as they looked at an earlier time, composed from stored versions of records.

package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/request"
	"understudy/spec"
)

// Snapshots reads records as they looked at an earlier time. If the version of that time is not stored, it returns
// the next version, whose Since is after that time.
type Snapshots interface {
	// RecordAt returns a record as it looked at a time. It returns ErrNotFound if the record did not exist then.
	RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error)
	// ScanRecordsAt calls yield with each record of a range as it looked at a time. It keeps the order of the range
	// and stops when yield returns false.
	ScanRecordsAt(ctx context.Context, w query.RangeScan, at time.Time, yield func(rec *understudy.Record, clock int64) bool) error
}

// KeptVersions leaves out records whose version of the requested time is not stored.
type KeptVersions struct{ Snapshots }

// RecordAt returns a record as it looked at a time. It returns ErrNotFound if the record did not exist then or if
// that version is not stored.
func (u KeptVersions) RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error) {
	rec, err := u.Snapshots.RecordAt(ctx, source, kind, shape, id, at)
	if err == nil && rec.Since.After(at) {
		return nil, understudy.ErrNotFound
	}
	return rec, err
}

// ScanRecordsAt calls yield with the records whose version of the requested time is stored.
func (u KeptVersions) ScanRecordsAt(
	ctx context.Context, w query.RangeScan, at time.Time, yield func(*understudy.Record, int64) bool,
) error {
	return u.Snapshots.ScanRecordsAt(ctx, w, at, func(rec *understudy.Record, clock int64) bool {
		return rec.Since.After(at) || yield(rec, clock)
	})
}

// ComposePageAt returns the answer to a request for a list or a record as it looked at a time.
func ComposePageAt(ctx context.Context, history Snapshots, s *spec.Source, a *request.Request, at time.Time) (*understudy.Page, error) {
	if !a.FillGaps {
		history = KeptVersions{Snapshots: history}
	}
	if a.Target.List != nil {
		return ComposeListAt(ctx, history, s, a.Target, a.Local, at)
	}
	return composeInstanceAt(ctx, history, s, a.Target, at)
}

// composeInstanceAt returns one record as it looked at a time.
func composeInstanceAt(ctx context.Context, history Snapshots, s *spec.Source, t *spec.Target, at time.Time) (*understudy.Page, error) {
	if t.ID == "" {
		return nil, fmt.Errorf("%w: no history is kept for this path", understudy.ErrInvalid)
	}
	rec, err := history.RecordAt(ctx, s.Name, t.Kind.Name, t.StorageShape(s.User), t.ID, at)
	if err != nil {
		return nil, err
	}
	if !IsUnderTarget(t, rec.Body) {
		return nil, understudy.ErrNotFound
	}
	p := InstancePage(s, t, rec)
	p.At = at
	return p, nil
}

// ComposeListAt returns a page of a list as it looked at a time.
func ComposeListAt(
	ctx context.Context, history Snapshots, s *spec.Source, t *spec.Target, localQuery *request.LocalQuery, at time.Time,
) (*understudy.Page, error) {
	p := historyReader{ctx: ctx, history: history, source: s, spec: t.Spec, at: at}
	list, err := New(p.source, t, Options{
		Now: func() time.Time { return at }, FindRecord: p.findRecord, ListedOnly: true, OwnTokens: true, NewestFirstOnly: true,
		Local: localQuery,
	})
	if refused, ok := errors.AsType[*Refusal](err); ok {
		return nil, fmt.Errorf("%w: %s", understudy.ErrInvalid, refused.Message)
	}
	if err = cmp.Or(err, p.failed); err != nil {
		return nil, err
	}
	if id, _ := list.Start(); id != "" {
		rec, err := history.RecordAt(ctx, s.Name, t.Kind.Name, t.List.Shape, id, at)
		if errors.Is(err, understudy.ErrNotFound) {
			return nil, fmt.Errorf("%w: the page token names a record that did not exist at that time", understudy.ErrInvalid)
		}
		if err != nil {
			return nil, err
		}
		list.SetStart(placeAt(Place(t.Kind, rec.Body), rec.Number))
	}
	if err := p.fill(list, t); err != nil {
		return nil, err
	}
	return list.BuildPage(at)
}

// historyReader reads earlier versions of records, in the order of their clock fields.
type historyReader struct {
	ctx     context.Context
	history Snapshots
	source  *spec.Source
	spec    *spec.Spec
	at      time.Time
	failed  error // the first error that findRecord has met
}

// findRecord returns a record as it looked at the requested time. It returns nil if it did not exist then.
func (p *historyReader) findRecord(kind, id string) *understudy.Record {
	k := p.spec.Kind(kind)
	if k == nil || p.failed != nil {
		return nil
	}
	tried := ""
	for _, l := range k.Lists {
		if l.Shape == tried {
			continue
		}
		tried = l.Shape
		rec, err := p.history.RecordAt(p.ctx, p.source.Name, kind, l.Shape, id, p.at)
		if err == nil {
			return rec
		}
		if !errors.Is(err, understudy.ErrNotFound) {
			p.failed = err
			return nil
		}
	}
	return nil
}

// The order of a list's pages at an earlier time is not stored. So a record's place then consists of its clock value
// and, in the lower numberBits bits, of its record number.
const numberBits = 30

func placeAt(clock, number int64) query.OrderKey {
	return query.OrderKey(clock<<numberBits | number&(1<<numberBits-1))
}

// maxUnclocked is the maximum number of records without a clock value that are in memory for one page.
const maxUnclocked = 100_000

// fill passes the records to a list in the list's order. Records with a clock value come in the order of the history.
// Records without one are inserted by their kind's order field.
func (p *historyReader) fill(list *List, t *spec.Target) error {
	q := list.Seek()
	w := query.RangeScan{Source: q.Source, Kind: t.Kind.Name, Shape: q.Shape, Parent: q.Parent}
	if q.Below != 0 {
		w.Below.Clock, w.Below.Record = int64(q.Below)>>numberBits, int64(q.Below)&(1<<numberBits-1)
	}
	clocked := false
	for _, term := range q.Predicates {
		if term.Field == t.Kind.Clock && term.Field != "" && len(term.Any) == 0 {
			clocked = true
			w.From = max(w.From, term.From)
			if term.To != 0 && (w.To == 0 || term.To < w.To) {
				w.To = term.To
			}
		}
	}
	var loose []query.Hit
	var err error
	if !clocked {
		if loose, err = p.findUnclocked(list, w, q.Below, t.Kind); err != nil {
			return err
		}
	}
	more := true
	err = p.history.ScanRecordsAt(p.ctx, w, p.at, func(rec *understudy.Record, clock int64) bool {
		f := query.Hit{Record: rec, Clock: clock, Order: placeAt(clock, rec.Number)}
		for len(loose) > 0 && loose[0].Order > f.Order {
			if more = list.Take(loose[0]); !more {
				return false
			}
			loose = loose[1:]
		}
		more = list.Take(f)
		return more
	})
	for ; err == nil && more && len(loose) > 0; loose = loose[1:] {
		more = list.Take(loose[0])
	}
	return err
}

// findUnclocked returns the records without a clock value that come after a place in the list, in order. It returns
// at most as many as the page needs.
func (p *historyReader) findUnclocked(list *List, w query.RangeScan, below query.OrderKey, k *spec.Kind) ([]query.Hit, error) {
	w.NoClock, w.Below.Clock, w.Below.Record = true, 0, 0
	var loose []query.Hit
	most := list.place.skip + list.place.size + 1
	if list.place.stop != 0 {
		most = 0 // all are needed
	}
	full := false
	err := p.history.ScanRecordsAt(p.ctx, w, p.at, func(rec *understudy.Record, _ int64) bool {
		at := Place(k, rec.Body)
		f := query.Hit{Record: rec, Order: placeAt(at, rec.Number)}
		if below != 0 && f.Order >= below || !list.HasRecord(f) {
			return true
		}
		i, _ := slices.BinarySearchFunc(loose, f, func(a, b query.Hit) int { return cmp.Compare(b.Order, a.Order) })
		loose = slices.Insert(loose, i, f)
		if most > 0 && int64(len(loose)) > most {
			loose = loose[:most]
		}
		full = len(loose) > maxUnclocked
		return !full
	})
	if full {
		return nil, fmt.Errorf("%w: too many records have no time; add a filter on time", understudy.ErrInvalid)
	}
	return loose, err
}
