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
	sources []*spec.Source
	db      *store.DB
	log     *slog.Logger
	numbers map[string]*atomic.Pointer[map[string]bool] // by source
	stale   chan struct{}                               // told when they may have changed
}

// ownEvery is how often own numbers are read without being told to.
const ownEvery = time.Minute

// lookTime bounds one look into the store for a row rule.
const lookTime = 5 * time.Second

func New(sources []*spec.Source, log *slog.Logger) *Lookups {
	l := &Lookups{sources: sources, log: log, numbers: map[string]*atomic.Pointer[map[string]bool]{}, stale: make(chan struct{}, 1)}
	for _, src := range sources {
		l.numbers[src.Name] = &atomic.Pointer[map[string]bool]{}
	}
	return l
}

// IsOwn reports whether a number, as access.Number writes it, is one of the
// account's own.
func (l *Lookups) IsOwn(source, number string) bool {
	if set := l.numbers[source]; set != nil {
		if all := set.Load(); all != nil {
			return (*all)[number]
		}
	}
	return false
}

// Open reads the numbers from the store.
func (l *Lookups) Open(ctx context.Context, db *store.DB) error {
	l.db = db
	return l.readOwn(ctx)
}

// Saved notes a page that shows own numbers.
func (l *Lookups) Saved(page *understudy.Page) {
	if k := l.kindOf(page.Key.Source, page.Kind); k != nil && k.Own != "" {
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
	for _, src := range l.sources {
		all := map[string]bool{}
		for _, k := range src.Spec.Kinds {
			if k.Own == "" {
				continue
			}
			for _, shape := range k.Shapes() {
				w := query.RangeScan{Source: src.Name, Kind: k.Name, Shape: shape}
				for _, w.Unclocked = range []bool{false, true} {
					err := l.db.RecordsAt(ctx, w, time.Time{}, func(rec *understudy.Record, _ int64) bool {
						if n := fieldOf(rec.Body, k.Own); n != "" {
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
		l.numbers[src.Name].Store(&all)
	}
	return nil
}

// fieldOf is the text of a field of a record, "" when it has none.
func fieldOf(body []byte, name string) string {
	doc, err := jsonspan.Document(body)
	if err != nil {
		return ""
	}
	v, ok := jsonspan.Find(body, doc, name)
	if !ok || v.Kind != jsonspan.String {
		return ""
	}
	return jsonspan.Text(body, v)
}

// kindOf is a kind of a source, nil when there is none of the name.
func (l *Lookups) kindOf(source, kind string) *spec.Kind {
	for _, src := range l.sources {
		if src.Name == source {
			return src.Spec.Kind(kind)
		}
	}
	return nil
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

// Addressed is the id of the record whose own address a path is; "" when none is held, or
// when the store cannot be read.
func (l *Lookups) Addressed(t *spec.Target) string {
	if l.db == nil || !t.Addressed() {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	for _, src := range l.sources {
		if src.Name == t.Key.Source {
			return compose.IDAt(ctx, src, t, l.db)
		}
	}
	return ""
}
