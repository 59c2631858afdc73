// Erase: what is to be taken out of every file for good, listed with its cause.
//
//	a cause (upstream said 404, a field was emptied, a number, age)
//	   |   in one transaction
//	rows of erasing: so that a crash cannot lose it
//	   |   CarryOut, in small transactions (erase_work.go)
//	bodies, pages, files
//	   |   Pool.Sanitize
//	free places, gaps and the log of the file
//	   |   in one transaction
//	the receipt: a row of erasure that is done

package store

import (
	"context"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/sqlite"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// Cause is why something is erased.
type Cause uint8

// The causes.
const (
	CauseDeleted  Cause = iota + 1 // upstream said that the record is no more
	CauseRedacted                  // upstream emptied a field: versions from before go
	CauseAsked                     // a person's number, or one record
	CauseAged                      // older than the retention of its kind
)

// String is "deleted", "redacted", "asked" or "aged".
func (c Cause) String() string {
	if c >= CauseDeleted && c <= CauseAged {
		return [...]string{"deleted", "redacted", "asked", "aged"}[c-CauseDeleted]
	}
	return "unknown"
}

// Erasure is a receipt, or, while Done is zero, an errand under way. It holds
// no text and no number.
type Erasure struct {
	Number int64 // of the receipt
	Source string
	Cause  Cause
	// Hash is a keyed hash of the number that was asked for, in hex; "" for
	// every other cause.
	Hash     string
	Begun    time.Time
	Done     time.Time // zero: not yet
	Records  int64
	Versions int64 // bodies
	Pages    int64
	Files    int64 // contents
}

// Waiting says what was listed and is not erased yet.
type Waiting struct {
	Records int64
	Since   time.Time // when the first of them was listed; zero: none
}

// MaxErasures is the most receipts one call of Erasures returns.
const MaxErasures = 1000

var (
	insertErasing = &sqlite.Statement{Head: "INSERT INTO erasing (erasure, source, kind, record, cause, bound, fields, at) " +
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?)"}
	selectWaiting = &sqlite.Statement{Head: "SELECT count(*), coalesce(min(at), 0) FROM erasing"}
	selectErasure = &sqlite.Statement{Head: `SELECT e.number, s.name, e.cause, e.hash, e.begun, e.done, e.records, e.versions, e.pages, e.files
		FROM erasure e JOIN source s ON s.number = e.source WHERE e.number > ? AND e.number <= ? ORDER BY e.number DESC LIMIT ?`}
)

// listGone lists a record that went for erasing, in the save's transaction.
func (s *saving) listGone(record int64) error {
	s.erasing = true
	return s.c.Exec(insertErasing, 0, int64(0), s.counters.source, s.kind.number, record, int64(CauseDeleted), int64(0), "", s.at)
}

// listLate lists what a sight that lost its race has brought back: of a record
// that went, or of one that was redacted since.
func (s *saving) listLate(g *observation, body []byte) error {
	if g.number == 0 || g.fresh {
		return nil
	}
	if !g.present() {
		return s.listGone(g.number)
	}
	if !g.held || g.state&stateForgotten != 0 || !redactable(s.kind.spec) {
		return nil
	}
	e, err := s.db.blocks(s.c).entry(g.version)
	if err != nil {
		return err
	}
	return s.listRedacted(g.number, e.Body)
}

// listRedacted lists a record for erasing when body, just seen of it, has a
// field that upstream empties to take back what it said. Whether there is
// anything to erase is found out later.
func (s *saving) listRedacted(record int64, body []byte) error {
	fields := emptied(s.kind.spec, body)
	if len(fields) == 0 {
		return nil
	}
	s.erasing = true
	bound := (s.counters.block + 1) * codec.PerBlock
	return s.c.Exec(insertErasing, 0, int64(0), s.counters.source, s.kind.number, record, int64(CauseRedacted), bound,
		strings.Join(fields, "\n"), s.at)
}

// redactable reports whether upstream takes anything back by emptying a field.
func redactable(k *spec.Kind) bool {
	if k == nil {
		return false
	}
	for _, f := range k.Fields {
		if f.Redacts {
			return true
		}
	}
	return false
}

// emptied are the fields that redact and are there, empty or null.
func emptied(k *spec.Kind, body []byte) (names []string) {
	if !redactable(k) {
		return nil
	}
	doc, err := jsonspan.Document(body)
	if err != nil || doc.Kind != jsonspan.Object {
		return nil
	}
	for _, f := range k.Fields {
		if v, ok := jsonspan.Find(body, doc, f.Name); f.Redacts && ok && emptyValue(v) {
			names = append(names, f.Name)
		}
	}
	return names
}

// emptyValue reports whether a value says nothing: null, "", {} or [].
func emptyValue(v jsonspan.Value) bool {
	switch v.Kind {
	case jsonspan.Null:
		return true
	case jsonspan.String, jsonspan.Object, jsonspan.Array:
		return v.End-v.Start == 2
	}
	return false
}

// says reports whether one of the fields is there and not empty.
func says(body []byte, fields []string) bool {
	doc, err := jsonspan.Document(body)
	if err != nil || doc.Kind != jsonspan.Object {
		return true // what cannot be read may say anything
	}
	for _, name := range fields {
		if v, ok := jsonspan.Find(body, doc, name); ok && !emptyValue(v) {
			return true
		}
	}
	return false
}

// Waiting says how much was listed and is not erased yet.
func (db *DB) Waiting(ctx context.Context) (w Waiting, err error) {
	leave, err := db.pool.Begin()
	if err != nil {
		return w, err
	}
	defer leave()
	err = db.pool.Read(ctx, func(c *sqlite.Conn) error {
		_, err := c.One(selectWaiting, nil, func(r []driver.Value) {
			w.Records = r[0].(int64)
			if at := r[1].(int64); at != 0 {
				w.Since = time.Unix(0, at).UTC()
			}
		})
		return err
	})
	return w, sqlite.Failed(false, err, "count what is to be erased")
}

// Erasures returns receipts, the newest first, those with numbers below before
// (0: all), at most limit (and at most MaxErasures) of them.
func (db *DB) Erasures(ctx context.Context, before int64, limit int) (all []Erasure, err error) {
	leave, err := db.pool.Begin()
	if err != nil {
		return nil, err
	}
	defer leave()
	if before <= 0 {
		before = 1 << 62
	}
	err = db.pool.Read(ctx, func(c *sqlite.Conn) error {
		all, err = erasuresBetween(c, 0, before-1, min(limit, MaxErasures))
		return err
	})
	return all, sqlite.Failed(false, err, "read the receipts")
}

// erasuresBetween reads those with numbers above after and up to last.
func erasuresBetween(c *sqlite.Conn, after, last int64, limit int) (all []Erasure, err error) {
	if limit <= 0 {
		return nil, nil
	}
	err = c.Query(selectErasure, 0, []driver.Value{after, last, int64(limit)}, func(r []driver.Value) error {
		e := Erasure{Number: r[0].(int64), Source: r[1].(string), Cause: Cause(r[2].(int64)), Hash: hex.EncodeToString(r[3].([]byte)),
			Begun: time.Unix(0, r[4].(int64)).UTC(), Records: r[6].(int64), Versions: r[7].(int64), Pages: r[8].(int64), Files: r[9].(int64)}
		if done := r[5].(int64); done != 0 {
			e.Done = time.Unix(0, done).UTC()
		}
		all = append(all, e)
		return nil
	})
	return all, err
}

// errNoSource: the source was never heard of.
func errNoSource(name string) error {
	return fmt.Errorf("%w: nothing is held of a source %q", understudy.ErrInvalid, name)
}
