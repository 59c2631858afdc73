// Package index updates the indexes of terms and words with every save. It can also fill them again from the records, a
// few at a time, while the store is in use.
package index

import (
	"context"
	"database/sql/driver"
	"math"
	"sync/atomic"

	"understudy/internal/query"
	"understudy/internal/store/catalog"
	"understudy/internal/store/db"
	"understudy/internal/store/inverted"
	"understudy/internal/store/records"
	"understudy/internal/store/terms"
	"understudy/internal/store/wordrows"
	"understudy/internal/store/words"
)

// completeUpTo is, for each index, the number of the record up to which the index is complete. Records with higher numbers are
// added later.
type completeUpTo struct{ words, terms atomic.Int64 }

// Progress is, for each index, the number of the record up to which the index was complete at one moment.
type Progress struct{ Words, Terms int64 }

func (b *completeUpTo) load() Progress { return Progress{b.words.Load(), b.terms.Load()} }

func (b *completeUpTo) store(u Progress) {
	b.words.Store(u.Words)
	b.terms.Store(u.Terms)
}

// lowest returns the number of the record up to which both indexes are complete.
func (u Progress) lowest() int64 { return min(u.Words, u.Terms) }

// BuiltAll is the progress of a complete index.
const BuiltAll = math.MaxInt64

// buildSome is the number of rows of table held that are read in one transaction.
const buildSome = 512

var (
	selectBuilt   = &db.Statement{Head: "SELECT words, terms FROM built"}
	updateBuilt   = &db.Statement{Head: "UPDATE built SET words = ?, terms = ?"}
	updateWords   = &db.Statement{Head: "UPDATE kind SET words = ? WHERE number = ?"}
	updateTermsOf = &db.Statement{Head: "UPDATE kind SET terms = ? WHERE number = ?"}
)

// Index maintains the indexes of terms and words. CheckSearchable, ScheduleFlush, Ranges and Words are safe for
// concurrent use. Only the writing goroutine may use the rest.
type Index struct {
	pool    *db.Pool
	catalog *catalog.Catalog
	records *records.Opener
	Ranges  terms.Ranges
	Words   wordrows.Table // the rows of the index of words
	built   completeUpTo
	broken  atomic.Bool // damaged records stopped the filling of the indexes
	cutter  words.Cutter
	members []query.Member // a buffer for the members of the bodies of one transaction
	packed  []byte         // a buffer for the packed changes of one save

	flushTimer flushTimer
}

// New returns an index that stores words in a table. The caller must Load it.
func New(pool *db.Pool, catalog *catalog.Catalog, records *records.Opener, words wordrows.Table) *Index {
	return &Index{pool: pool, catalog: catalog, records: records, Words: words}
}

// Load reads the progress of the indexes when a file is opened. It empties the indexes for which the specs have
// changed.
func (x *Index) Load(ctx context.Context, c db.Conn) error {
	err := x.Ranges.Load(c)
	if err == nil {
		err = x.loadBuilt(c)
	}
	if err == nil {
		err = x.checkIndexes(ctx, c)
	}
	if err != nil {
		return err
	}
	pending, broken := ReadPending(c)
	for _, k := range x.catalog.Kinds() {
		k.Words.Load(pending.Words, broken)
	}
	return nil
}

// Reload reads again what another process may have changed: how far the indexes are filled, and the ranges of times.
func (x *Index) Reload(c db.Conn) error {
	if err := x.Ranges.Load(c); err != nil {
		return err
	}
	return x.loadBuilt(c)
}

// AllowAnyWord makes queries search every field, because another process writes words.
func (x *Index) AllowAnyWord() {
	for _, k := range x.catalog.Kinds() {
		k.Words.AllowAny()
	}
}

// Learn reads which words the fields of each kind may have. It runs after a file was opened, so that the first search
// need not read them.
func (x *Index) Learn(ctx context.Context) error {
	for _, k := range x.catalog.Kinds() {
		err := x.pool.Read(ctx, func(c db.Conn) error { return k.Words.Learn(&wordrows.Snapshot{C: c, Table: x.Words}) })
		if err != nil {
			return db.WrapError(false, err, "read the words that kinds have")
		}
	}
	return nil
}

// Progress returns up to which records the indexes are filled.
func (x *Index) Progress() Progress { return x.built.load() }

// termForm returns the fingerprint of a kind's terms by its spec, or the stored fingerprint if the kind has no spec.
func termForm(k *catalog.Kind) string {
	if k.Spec == nil {
		return k.TermForm
	}
	return terms.Fingerprint(k.Spec, k.Terms.Fields)
}

// checkIndexes empties the index of words if a spec has changed which fields are text. It empties the index of terms if
// a spec has changed which fields can be searched. It runs while the store opens. Build fills the indexes again.
func (x *Index) checkIndexes(ctx context.Context, c db.Conn) error {
	var newWords, newTerms []*catalog.Kind
	u := x.built.load()
	for _, k := range x.catalog.Kinds() {
		otherWords, otherTerms := k.WordForm != k.Words.Rule.Form(), k.TermForm != termForm(k)
		if !otherWords && !otherTerms {
			continue
		}
		records := int64(0)
		if _, err := db.QueryRow(c, selectKindRecords, []driver.Value{k.Number}, func(r []driver.Value) { records = r[0].(int64) }); err != nil {
			return err
		}
		if otherWords {
			if newWords = append(newWords, k); records > 0 {
				u.Words = 0
			}
		}
		if otherTerms {
			if newTerms = append(newTerms, k); records > 0 || k.TermForm == "" {
				u.Terms = 0
			}
		}
	}
	if len(newWords)+len(newTerms) == 0 {
		return nil
	}
	return x.setProgress(ctx, c, u, newWords, newTerms)
}

var selectKindRecords = &db.Statement{Head: "SELECT records FROM kind WHERE number = ?"}

// ReadProgress returns up to which records the indexes are filled according to the file.
func ReadProgress(c db.Conn) (u Progress, err error) {
	_, err = db.QueryRow(c, selectBuilt, nil, func(r []driver.Value) { u = Progress{r[0].(int64), r[1].(int64)} })
	return u, err
}

// loadBuilt reads from the file up to which records the indexes are filled.
func (x *Index) loadBuilt(c db.Conn) error {
	u, err := ReadProgress(c)
	x.built.store(u)
	return err
}

// setProgress stores up to which record each index is complete. It empties an index whose progress is 0. For newWords
// and newTerms, the kinds with a new rule of words or of terms, it also stores the new rule.
func (x *Index) setProgress(ctx context.Context, c db.Conn, u Progress, newWords, newTerms []*catalog.Kind) error {
	_, err := c.RunTransaction(ctx, func() error {
		for _, k := range newWords {
			if err := c.Execute(updateWords, 0, k.Words.Rule.Form(), k.Number); err != nil {
				return err
			}
		}
		for _, k := range newTerms {
			if err := c.Execute(updateTermsOf, 0, termForm(k), k.Number); err != nil {
				return err
			}
		}
		if err := x.clearPending(c, u); err != nil {
			return err
		}
		if u.Words == 0 {
			if err := x.Words.Clear(c); err != nil {
				return err
			}
		}
		if u.Terms == 0 {
			if err := inverted.Clear(c); err != nil {
				return err
			}
		}
		x.pool.MarkChanged(db.Indexes)
		return c.Execute(updateBuilt, 0, u.Words, u.Terms)
	})
	if err == nil {
		for _, k := range newWords {
			k.WordForm = k.Words.Rule.Form()
		}
		for _, k := range newTerms {
			k.TermForm = termForm(k)
		}
		x.built.store(u)
	}
	return err
}

// clearPending prepares the pending changes for an index that is then emptied. It deletes them if both indexes are
// emptied, otherwise it writes them.
func (x *Index) clearPending(c db.Conn, u Progress) error {
	if u.Words == 0 && u.Terms == 0 {
		return c.Execute(deletePending, 0)
	}
	return x.write(c, changes{})
}

// CountIndexed returns how many of the records are in the indexes. If done equals total, every kind of query works. It
// returns ErrDamaged if damaged data stopped the filling.
func (x *Index) CountIndexed(ctx context.Context) (done, total int64, err error) {
	at := x.built.load().lowest()
	err = x.pool.Read(ctx, func(c db.Conn) error {
		_, err := db.QueryRow(c, selectRecords, nil, func(r []driver.Value) { total = r[0].(int64) })
		if err == nil && at < total {
			err = x.checkBroken()
		}
		return err
	})
	return min(at, total), total, db.WrapError(false, err, "see what is indexed")
}
