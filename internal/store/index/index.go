// Package index keeps the indexes of terms and words right with every save, and fills
// them anew from the records, a few at a time, beside everything else.
package index

import (
	"context"
	"database/sql/driver"
	"math"
	"sync/atomic"

	"understudy/internal/query"
	"understudy/internal/store/catalog"
	"understudy/internal/store/fts5"
	"understudy/internal/store/inverted"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/terms"
	"understudy/internal/store/words"
)

// built is up to which record each of the indexes has what it is to have:
// records with higher numbers come later, and are left out until then.
type built struct{ words, terms atomic.Int64 }

// Progress is built at one moment.
type Progress struct{ Words, Terms int64 }

func (b *built) load() Progress { return Progress{b.words.Load(), b.terms.Load()} }

func (b *built) store(u Progress) {
	b.words.Store(u.Words)
	b.terms.Store(u.Terms)
}

// least is up to which record everything is there.
func (u Progress) least() int64 { return min(u.Words, u.Terms) }

// BuiltAll is up to which record a whole index is built.
const BuiltAll = math.MaxInt64

// buildSome is how many held rows are looked at in one transaction.
const buildSome = 512

var (
	selectBuilt   = &sqlite.Statement{Head: "SELECT words, terms FROM built"}
	updateBuilt   = &sqlite.Statement{Head: "UPDATE built SET words = ?, terms = ?"}
	updateWords   = &sqlite.Statement{Head: "UPDATE kind SET words = ? WHERE number = ?"}
	updateTermsOf = &sqlite.Statement{Head: "UPDATE kind SET terms = ? WHERE number = ?"}
)

// Index fills the indexes of terms and words and keeps them right. Searchable, Settle and
// the ranges may be used by many goroutines at once, the rest by the one that writes.
type Index struct {
	pool    *sqlite.Pool
	catalog *catalog.Catalog
	records *records.Opener
	Ranges  terms.Ranges
	built   built
	broken  atomic.Bool // the records could not be read to fill the indexes
	cutter  words.Cutter
	members []query.Member // of the bodies of a transaction
	packed  []byte         // what a save leaves

	settling settling
}

// New makes one of a file that Load then reads.
func New(pool *sqlite.Pool, catalog *catalog.Catalog, records *records.Opener) *Index {
	return &Index{pool: pool, catalog: catalog, records: records}
}

// Load reads how far the indexes are, and empties those that the specs have made to others, when a file is opened.
func (x *Index) Load(ctx context.Context, c *sqlite.Conn) error {
	err := x.Ranges.Load(c)
	if err == nil {
		err = x.learnBuilt(c)
	}
	if err == nil {
		err = x.checkIndexes(ctx, c)
	}
	if err != nil {
		return err
	}
	pending, broken := PendingOf(c)
	for _, k := range x.catalog.Kinds() {
		k.Words.Load(pending.Words, broken)
	}
	return nil
}

// Learn reads which words each kind may have, once a file is open: the first search by words need not.
func (x *Index) Learn(ctx context.Context) error {
	leave, err := x.pool.Begin()
	if err != nil {
		return err
	}
	defer leave()
	for _, k := range x.catalog.Kinds() {
		if err := x.pool.Read(ctx, k.Words.Learn); err != nil {
			return sqlite.Failed(false, err, "read the words that kinds have")
		}
	}
	return nil
}

// Built is up to which records the indexes are built.
func (x *Index) Built() Progress { return x.built.load() }

// termForm says what tokens a kind's records have: by the spec or, when the program was not
// told it, as they were made.
func termForm(k *catalog.Kind) string {
	if k.Spec == nil {
		return k.TermForm
	}
	return terms.Fingerprint(k.Spec, k.Terms.Fields)
}

// checkIndexes is part of opening: it empties the index of words when a spec has changed which fields are text, and
// that of terms when it has changed which fields can be asked for. Index fills them.
func (x *Index) checkIndexes(ctx context.Context, c *sqlite.Conn) error {
	var newWords, newTerms []*catalog.Kind
	u := x.built.load()
	for _, k := range x.catalog.Kinds() {
		otherWords, otherTerms := k.WordForm != k.Words.Rule.Form(), k.TermForm != termForm(k)
		if !otherWords && !otherTerms {
			continue
		}
		records := int64(0)
		if _, err := c.One(selectKindRecords, []driver.Value{k.Number}, func(r []driver.Value) { records = r[0].(int64) }); err != nil {
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
	return x.setBuilt(ctx, c, u, newWords, newTerms)
}

var selectKindRecords = &sqlite.Statement{Head: "SELECT records FROM kind WHERE number = ?"}

// BuiltNow is how far the indexes are by what the file says.
func BuiltNow(c *sqlite.Conn) (u Progress, err error) {
	_, err = c.One(selectBuilt, nil, func(r []driver.Value) { u = Progress{r[0].(int64), r[1].(int64)} })
	return u, err
}

// learnBuilt reads how far the indexes are.
func (x *Index) learnBuilt(c *sqlite.Conn) error {
	u, err := BuiltNow(c)
	x.built.store(u)
	return err
}

// setBuilt says up to which record the indexes are right from now on; one that begins anew is emptied. The kinds
// given are those whose words, and whose terms, are found in a new way.
func (x *Index) setBuilt(ctx context.Context, c *sqlite.Conn, u Progress, newWords, newTerms []*catalog.Kind) error {
	_, err := c.Transaction(ctx, sqlite.BeginWrite, func() error {
		for _, k := range newWords {
			if err := c.Exec(updateWords, 0, k.Words.Rule.Form(), k.Number); err != nil {
				return err
			}
		}
		for _, k := range newTerms {
			if err := c.Exec(updateTermsOf, 0, termForm(k), k.Number); err != nil {
				return err
			}
		}
		if err := x.emptyPending(c, u); err != nil {
			return err
		}
		if u.Words == 0 {
			if err := fts5.Clear(c); err != nil {
				return err
			}
		}
		if u.Terms == 0 {
			if err := inverted.Clear(c); err != nil {
				return err
			}
		}
		return c.Exec(updateBuilt, 0, u.Words, u.Terms)
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

// emptyPending leaves nothing pending before an index is emptied: what both are to have is made anew.
func (x *Index) emptyPending(c *sqlite.Conn, u Progress) error {
	if u.Words == 0 && u.Terms == 0 {
		return c.Exec(deletePending, 0)
	}
	return x.write(c, changes{})
}

// Indexed returns how many of how many records the indexes have; when they are as
// many, questions of every sort are answered. ErrDamaged: they could not be filled.
func (x *Index) Indexed(ctx context.Context) (done, total int64, err error) {
	at := x.built.load().least()
	leave, err := x.pool.Begin()
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	err = x.pool.Read(ctx, func(c *sqlite.Conn) error {
		_, err := c.One(selectRecords, nil, func(r []driver.Value) { total = r[0].(int64) })
		if err == nil && at < total {
			err = x.brokenError()
		}
		return err
	})
	return min(at, total), total, sqlite.Failed(false, err, "see what is indexed")
}
