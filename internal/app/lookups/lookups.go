// Lookups: own numbers in memory, records from the store.

// Package lookups answers what row rules ask: which numbers are our own, and the newest version of a record.
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

// Lookups answers the questions of row rules. The own numbers of every source are
// in memory.
type Lookups struct {
	sources map[string]*source
	db      *store.DB
	log     *slog.Logger
	stale   chan struct{} // own numbers may have changed
}

// source is a source with its own numbers; nil: they were not read yet.
type source struct {
	spec *spec.Source
	own  atomic.Pointer[map[string]bool]
}

// ownEvery is how often own numbers are read when no page that shows them is saved.
const ownEvery = time.Minute

// lookTime bounds one look into the store for a row rule.
const lookTime = 5 * time.Second

// New returns the lookups of sources. Open comes before any question about records.
func New(sources []*spec.Source, log *slog.Logger) *Lookups {
	l := &Lookups{sources: map[string]*source{}, log: log, stale: make(chan struct{}, 1)}
	for _, src := range sources {
		l.sources[src.Name] = &source{spec: src}
	}
	return l
}

// IsOwn reports whether a number, as access.Number writes it, is one of the
// account's own.
func (l *Lookups) IsOwn(source, number string) bool {
	src := l.sources[source]
	if src == nil {
		return false
	}
	all := src.own.Load()
	return all != nil && (*all)[number]
}

// Open reads the numbers from the store.
func (l *Lookups) Open(ctx context.Context, db *store.DB) error {
	l.db = db
	return l.readOwn(ctx)
}

// Saved notes that a page was saved, which may show own numbers.
func (l *Lookups) Saved(page *understudy.Page) {
	src := l.sources[page.Key.Source]
	if src == nil {
		return
	}
	if k := src.spec.Spec.Kind(page.Kind); k != nil && k.Own != "" {
		select {
		case l.stale <- struct{}{}:
		default:
		}
	}
}

// Run reads them again when they may have changed, until ctx ends.
func (l *Lookups) Run(ctx context.Context) error {
	every := time.NewTicker(ownEvery)
	defer every.Stop()
	for {
		select {
		case <-l.stale:
		case <-every.C:
		case <-ctx.Done():
			return nil
		}
		if err := l.readOwn(ctx); err != nil && ctx.Err() == nil {
			l.log.Error("own numbers cannot be read; row rules go by the former ones", "err", err)
		}
	}
}

// readOwn reads the numbers of every source.
func (l *Lookups) readOwn(ctx context.Context) error {
	for name, src := range l.sources {
		all := map[string]bool{}
		for _, k := range src.spec.Spec.Kinds {
			if k.Own == "" {
				continue
			}
			for _, shape := range k.Shapes() {
				w := query.RangeScan{Source: name, Kind: k.Name, Shape: shape}
				for _, w.Unclocked = range []bool{false, true} {
					err := l.db.ScanRecordsAt(ctx, w, time.Time{}, func(rec *understudy.Record, _ int64) bool {
						if n := readField(rec.Body, k.Own); n != "" {
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

// readField returns the text of a field of a record, "" when it has none.
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

// Newest returns the version of a record that upstream showed last, in whichever shape.
// For an id that is not held it returns another record: a hidden id and one that never was
// take the same reads. It returns nil when the kind has no record or the store cannot be
// read: what cannot be looked up is found by no caller.
func (l *Lookups) Newest(source, kind, id string) *understudy.Record {
	return l.newestOrNext(source, kind, id, false)
}

// Last is like Newest, and includes the last version of a record that is gone.
func (l *Lookups) Last(source, kind, id string) *understudy.Record {
	return l.newestOrNext(source, kind, id, true)
}

func (l *Lookups) newestOrNext(source, kind, id string, gone bool) *understudy.Record {
	if l.db == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	rec, err := l.db.NewestOrNext(ctx, source, kind, id, gone)
	if err != nil {
		l.log.Error("a record could not be looked up for a row rule", "kind", kind, "err", err)
		return nil
	}
	return rec
}

// Addressed returns the id of the record whose own address a path is; "" when none is held, or
// when the store cannot be read.
func (l *Lookups) Addressed(t *spec.Target) string {
	src := l.sources[t.Key.Source]
	if l.db == nil || src == nil || !t.Addressed() {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	return compose.IDAt(ctx, src.spec, t, l.db)
}
