// This file writes receipts of erasures: what was erased, when and why. It also counts the records that are waiting. A
// receipt contains no text and no phone number.

package erase

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"time"

	"understudy"
	"understudy/internal/store/db"
)

// Cause is the reason why something is erased.
type Cause uint8

// The causes of erasures.
const (
	CauseDeleted  Cause = iota + 1 // the upstream reported that the record is gone
	CauseRedacted                  // the upstream emptied a field of the record, so its earlier versions are erased
	CauseAsked                     // a person asked to erase a phone number or a record
	CauseAged                      // the record was older than the retention of its kind
)

// String returns "deleted", "redacted", "asked" or "aged".
func (c Cause) String() string {
	if c >= CauseDeleted && c <= CauseAged {
		return [...]string{"deleted", "redacted", "asked", "aged"}[c-CauseDeleted]
	}
	return "unknown"
}

// Erasure is a receipt or, while Done is zero, an erasure in progress. It contains no text and no number.
type Erasure struct {
	Number int64 // the number of the receipt, by which people refer to it
	Source string
	Cause  Cause
	// Hash is a keyed hash of the number that a person asked to erase, in hexadecimal. It is "" for every other cause.
	Hash     string
	Begun    time.Time
	Done     time.Time // when the erasure was finished; zero while it is in progress
	Records  int64
	Versions int64 // the number of erased bodies
	Pages    int64
	Files    int64 // the number of erased contents, such as audio and images
}

// Waiting says how many records are listed and not erased yet.
type Waiting struct {
	Records int64     `json:"records"`
	Since   time.Time `json:"since,omitzero"` // when the first waiting record was listed, in UTC; zero if none is waiting
}

// MaxErasures is the maximum number of receipts that one call of ReadErasures returns.
const MaxErasures = 1000

var (
	selectWaiting = &db.Statement{Head: "SELECT count(*), coalesce(min(at), 0) FROM erasing"}
	selectErasure = &db.Statement{Head: `SELECT e.number, s.name, e.cause, e.hash, e.begun, e.done, e.records, e.versions, e.pages, e.files
		FROM erasure e JOIN source s ON s.number = e.source WHERE e.number > ? AND e.number <= ? ORDER BY e.number DESC LIMIT ?`}
)

// CountWaiting returns how many records are listed and not erased yet.
func (r *Eraser) CountWaiting(ctx context.Context) (w Waiting, err error) {
	err = r.pool.Read(ctx, func(c db.Conn) error {
		_, err := db.QueryRow(c, selectWaiting, nil, func(row []driver.Value) {
			w.Records, w.Since = row[0].(int64), db.Time(row[1].(int64))
		})
		return err
	})
	return w, db.WrapError(false, err, "count what is to be erased")
}

// ReadErasures returns the receipts with numbers below before, newest first; 0 means all receipts. It returns at most
// limit and at most MaxErasures.
func (r *Eraser) ReadErasures(ctx context.Context, before int64, limit int) (all []Erasure, err error) {
	before = cmp.Or(max(before, 0), 1<<62)
	err = r.pool.Read(ctx, func(c db.Conn) error {
		all, err = readErasures(c, 0, before-1, min(limit, MaxErasures))
		return err
	})
	return all, db.WrapError(false, err, "read the receipts")
}

// Residue is a place where bytes of erased records may still be.
type Residue = db.Residue

// ListResidue returns where bytes of erased records may still be.
func (r *Eraser) ListResidue(ctx context.Context) (all []Residue, err error) {
	err = r.pool.Read(ctx, func(c db.Conn) error {
		all, err = r.pool.Engine.ListResidue(c)
		return err
	})
	return all, db.WrapError(false, err, "read where erased bytes remain")
}

// readErasures returns the receipts with numbers above after, up to and including last.
func readErasures(c db.Conn, after, last int64, limit int) (all []Erasure, err error) {
	if limit <= 0 {
		return nil, nil
	}
	err = db.VisitRows(c, selectErasure, []driver.Value{after, last, int64(limit)}, func(row []driver.Value) {
		e := Erasure{Number: row[0].(int64), Source: row[1].(string), Cause: Cause(row[2].(int64)),
			Hash:  hex.EncodeToString(row[3].([]byte)),
			Begun: time.Unix(0, row[4].(int64)).UTC(), Records: row[6].(int64), Versions: row[7].(int64),
			Pages: row[8].(int64), Files: row[9].(int64)}
		if done := row[5].(int64); done != 0 {
			e.Done = time.Unix(0, done).UTC()
		}
		all = append(all, e)
	})
	return all, err
}

var (
	selectSeal = &db.Statement{Head: "SELECT seal FROM counter"}
	updateSeal = &db.Statement{Head: "UPDATE counter SET seal = ?"}
)

// readSealKey returns the key for the hashes in receipts. It creates and stores the key when it is first needed.
func readSealKey(c db.Conn) (key []byte, err error) {
	if _, err = db.QueryRow(c, selectSeal, nil, func(row []driver.Value) { key = row[0].([]byte) }); err != nil || len(key) > 0 {
		return key, err
	}
	key = make([]byte, sha256.Size)
	_, _ = rand.Read(key) // rand.Read never fails
	return key, c.Execute(updateSeal, 0, key)
}

// sealHash returns the keyed hash of the number or record that a person asked to erase.
func sealHash(key []byte, source, what string) []byte {
	if n := understudy.ParsePhone(what); n.Digits != "" {
		what = n.Digits
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(append(append([]byte(source), 0), bytes.ToLower([]byte(what))...))
	return mac.Sum(nil)[:16]
}
