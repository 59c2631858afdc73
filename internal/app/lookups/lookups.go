// Package lookups tells row rules which phone numbers belong to the account, and what the newest version of a record is.
package lookups

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/kit/jsonspan"
	"understudy/mirror/compose"
	"understudy/spec"
)

// Lookups answers the questions of row rules. It keeps the account's own phone numbers of every source in memory.
type Lookups struct {
	sources map[string]*source
	db      *store.DB
	log     *slog.Logger
	stale   chan struct{} // receives a value when the account's own numbers may have changed
}

// source is a source with the account's own numbers. own is nil before the numbers were first read.
type source struct {
	spec *spec.Source
	own  atomic.Pointer[map[string]bool]
}

// ownInterval is the time after which own numbers are read again even if no page that shows them was saved.
const ownInterval = time.Minute

// lookupTimeout is the maximum time of one read of the store for a row rule.
const lookupTimeout = 5 * time.Second

// New returns the lookups of the given sources. Call Open before asking about records.
func New(sources []*spec.Source, log *slog.Logger) *Lookups {
	l := &Lookups{sources: map[string]*source{}, log: log, stale: make(chan struct{}, 1)}
	for _, src := range sources {
		l.sources[src.Name] = &source{spec: src}
	}
	return l
}

// IsOwn reports whether a phone number, in the form of access.Number, belongs to the account.
func (l *Lookups) IsOwn(source, number string) bool {
	src := l.sources[source]
	if src == nil {
		return false
	}
	all := src.own.Load()
	return all != nil && (*all)[number]
}

// Open reads the account's own numbers from the store.
func (l *Lookups) Open(ctx context.Context, db *store.DB) error {
	l.db = db
	return l.readOwn(ctx)
}

// NoteSaved makes Run read the own numbers again if a saved page may show them.
func (l *Lookups) NoteSaved(page *understudy.Page) {
	src := l.sources[page.Key.Source]
	if src == nil {
		return
	}
	if k := src.spec.Spec.Kind(page.Kind); k != nil && k.OwnNumber != "" {
		understudy.Wake(l.stale)
	}
}

// Run reads own numbers again when they may have changed, until ctx ends.
func (l *Lookups) Run(ctx context.Context) error {
	every := time.NewTicker(ownInterval)
	defer every.Stop()
	for {
		select {
		case <-l.stale:
		case <-every.C:
		case <-ctx.Done():
			return nil
		}
		if err := l.readOwn(ctx); err != nil && ctx.Err() == nil {
			l.log.Error("the account's own numbers cannot be read; row rules use the numbers read before", "err", err)
		}
	}
}

// readOwn reads the account's own numbers in every source.
func (l *Lookups) readOwn(ctx context.Context) error {
	for name, src := range l.sources {
		all := map[string]bool{}
		for _, k := range src.spec.Spec.Kinds {
			if k.OwnNumber == "" {
				continue
			}
			for _, shape := range k.Shapes() {
				w := query.RangeScan{Source: name, Kind: k.Name, Shape: shape}
				for _, w.NoClock = range []bool{false, true} {
					err := l.db.ScanRecordsAt(ctx, w, time.Time{}, func(rec *understudy.Record, _ int64) bool {
						if n := readField(rec.Body, k.OwnNumber); n != "" {
							all[access.Number(n)] = true
						}
						return true
					})
					if err != nil {
						return err
					}
				}
			}
		}
		src.own.Store(&all)
	}
	return nil
}

// readField returns the text of a record's field, or "" if the record has no such field.
func readField(body []byte, name string) string {
	doc, err := jsonspan.Parse(body)
	if err != nil {
		return ""
	}
	v, ok := jsonspan.Find(body, doc, name)
	if !ok || v.Kind != jsonspan.String {
		return ""
	}
	return jsonspan.Text(body, v)
}

// Newest returns the version of a record that the upstream showed last, in any shape. For an id that is not stored
// it returns another record, so that an unknown id takes as many reads as a hidden one. It returns nil if the kind
// has no record or the store can't be read; then no caller finds the record.
func (l *Lookups) Newest(source, kind, id string) *understudy.Record {
	return l.newestOrNext(source, kind, id, false)
}

// NewestOrDeleted does what Newest does, but also returns the last version of a deleted record.
func (l *Lookups) NewestOrDeleted(source, kind, id string) *understudy.Record {
	return l.newestOrNext(source, kind, id, true)
}

func (l *Lookups) newestOrNext(source, kind, id string, gone bool) *understudy.Record {
	if l.db == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	rec, err := l.db.FindNewestOrNext(ctx, source, kind, id, gone)
	if err != nil {
		l.log.Error("a record could not be looked up for a row rule", "kind", kind, "err", err)
		return nil
	}
	return rec
}

// AddressedID returns the id of the record whose own address is the path. It returns "" if no such record is stored
// or the store can't be read.
func (l *Lookups) AddressedID(t *spec.Target) string {
	src := l.sources[t.Key.Source]
	if l.db == nil || src == nil || !t.IsAddressed() {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	return compose.IDAt(ctx, src.spec, t, l.db)
}
