// Built: how far each index of a kind has come.

package store

import (
	"context"
	"database/sql/driver"
	"math"
	"sync/atomic"

	"understudy/internal/store/catalog"
	"understudy/internal/store/fts5"
	"understudy/internal/store/inverted"
	"understudy/internal/store/sqlite"
	"understudy/internal/store/terms"
)

// built is up to which record each of the indexes has what it is to have:
// records with higher numbers come later, and are left out until then.
type built struct{ words, terms atomic.Int64 }

// upto is built at one moment.
type upto struct{ words, terms int64 }

func (b *built) load() upto { return upto{b.words.Load(), b.terms.Load()} }

func (b *built) store(u upto) {
	b.words.Store(u.words)
	b.terms.Store(u.terms)
}

// least is up to which record everything is there.
func (u upto) least() int64 { return min(u.words, u.terms) }

// builtAll is up to which record a whole index is built.
const builtAll = math.MaxInt64

// buildSome is how many held rows are looked at in one transaction.
const buildSome = 512

var (
	selectBuilt   = &sqlite.Statement{Head: "SELECT words, terms FROM built"}
	updateBuilt   = &sqlite.Statement{Head: "UPDATE built SET words = ?, terms = ?"}
	updateWords   = &sqlite.Statement{Head: "UPDATE kind SET words = ? WHERE number = ?"}
	updateTermsOf = &sqlite.Statement{Head: "UPDATE kind SET terms = ? WHERE number = ?"}
)

// indexer fills the indexes of terms and words and keeps them right.
type indexer struct{ *DB }

// checkIndexes is part of opening: it empties the index of words when a spec has
// changed which fields are text, and that of terms when it has changed which
// fields can be asked for. Index fills them.
func (db indexer) checkIndexes(ctx context.Context, c *sqlite.Conn) error {
	var newWords, newTerms []*catalog.Kind
	u := db.built.load()
	for _, k := range db.catalog.Kinds() {
		otherWords, otherTerms := k.WordForm != k.Words.Rule.Form(), k.TermForm != terms.Fingerprint(k.Terms.Fields)
		if !otherWords && !otherTerms {
			continue
		}
		records := int64(0)
		if _, err := c.One(selectKindRecords, []driver.Value{k.Number}, func(r []driver.Value) { records = r[0].(int64) }); err != nil {
			return err
		}
		if otherWords {
			if newWords = append(newWords, k); records > 0 {
				u.words = 0
			}
		}
		if otherTerms {
			if newTerms = append(newTerms, k); records > 0 || k.TermForm == "" {
				u.terms = 0
			}
		}
	}
	if len(newWords)+len(newTerms) == 0 {
		return nil
	}
	return db.setBuilt(ctx, c, u, newWords, newTerms)
}

var selectKindRecords = &sqlite.Statement{Head: "SELECT records FROM kind WHERE number = ?"}

// builtNow is how far the indexes are by what the file says.
func builtNow(c *sqlite.Conn) (u upto, err error) {
	_, err = c.One(selectBuilt, nil, func(r []driver.Value) { u = upto{r[0].(int64), r[1].(int64)} })
	return u, err
}

// learnBuilt reads how far the indexes are.
func (db indexer) learnBuilt(c *sqlite.Conn) error {
	u, err := builtNow(c)
	db.built.store(u)
	return err
}

// setBuilt says up to which record the indexes are right from now on; one that
// begins anew is emptied. The kinds given are those whose words, and whose terms,
// are found in a new way.
func (db indexer) setBuilt(ctx context.Context, c *sqlite.Conn, u upto, newWords, newTerms []*catalog.Kind) error {
	_, err := c.Transaction(ctx, sqlite.BeginWrite, func() error {
		for _, k := range newWords {
			if err := c.Exec(updateWords, 0, k.Words.Rule.Form(), k.Number); err != nil {
				return err
			}
		}
		for _, k := range newTerms {
			if err := c.Exec(updateTermsOf, 0, terms.Fingerprint(k.Terms.Fields), k.Number); err != nil {
				return err
			}
		}
		if u.words == 0 {
			if err := fts5.Clear(c); err != nil {
				return err
			}
		}
		if u.terms == 0 {
			if err := inverted.Clear(c); err != nil {
				return err
			}
		}
		return c.Exec(updateBuilt, 0, u.words, u.terms)
	})
	if err == nil {
		for _, k := range newWords {
			k.WordForm = k.Words.Rule.Form()
		}
		for _, k := range newTerms {
			k.TermForm = terms.Fingerprint(k.Terms.Fields)
		}
		db.built.store(u)
	}
	return err
}

// Indexed says how many of how many records the indexes have; when they are as
// many, questions of every sort are answered.
func (db *DB) Indexed(ctx context.Context) (done, total int64, err error) {
	at := db.built.load().least()
	leave, err := db.pool.Begin()
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	err = db.pool.Read(ctx, func(c *sqlite.Conn) error {
		_, err := c.One(selectRecords, nil, func(r []driver.Value) { total = r[0].(int64) })
		return err
	})
	return min(at, total), total, sqlite.Failed(false, err, "see what is indexed")
}
