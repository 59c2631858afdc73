// Receipts: what was erased, when and why, and how much waits. They hold no text
// and no number.

package erase

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"time"
	"understudy"
	"understudy/internal/store/sqlite"
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

// Erasure is a receipt, or an erasure under way while Done is zero. It holds no
// text and no number.
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
	Records int64     `json:"records"`
	Since   time.Time `json:"since,omitzero"` // when the first of them was listed, in UTC; zero: none
}

// MaxErasures is the most receipts one call of Erasures returns.
const MaxErasures = 1000

var (
	selectWaiting = &sqlite.Statement{Head: "SELECT count(*), coalesce(min(at), 0) FROM erasing"}
	selectErasure = &sqlite.Statement{Head: `SELECT e.number, s.name, e.cause, e.hash, e.begun, e.done, e.records, e.versions, e.pages, e.files
		FROM erasure e JOIN source s ON s.number = e.source WHERE e.number > ? AND e.number <= ? ORDER BY e.number DESC LIMIT ?`}
)

// Waiting says how much was listed and is not erased yet.
func (r *Eraser) Waiting(ctx context.Context) (w Waiting, err error) {
	leave, err := r.pool.Begin()
	if err != nil {
		return w, err
	}
	defer leave()
	err = r.pool.Read(ctx, func(c *sqlite.Conn) error {
		_, err := c.One(selectWaiting, nil, func(row []driver.Value) {
			w.Records = row[0].(int64)
			if at := row[1].(int64); at != 0 {
				w.Since = time.Unix(0, at).UTC()
			}
		})
		return err
	})
	return w, sqlite.Failed(false, err, "count what is to be erased")
}

// Erasures returns receipts, the newest first, those with numbers below before
// (0: all), at most limit (and at most MaxErasures) of them.
func (r *Eraser) Erasures(ctx context.Context, before int64, limit int) (all []Erasure, err error) {
	leave, err := r.pool.Begin()
	if err != nil {
		return nil, err
	}
	defer leave()
	if before <= 0 {
		before = 1 << 62
	}
	err = r.pool.Read(ctx, func(c *sqlite.Conn) error {
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
	err = c.Query(selectErasure, 0, []driver.Value{after, last, int64(limit)}, func(row []driver.Value) error {
		e := Erasure{Number: row[0].(int64), Source: row[1].(string), Cause: Cause(row[2].(int64)),
			Hash:  hex.EncodeToString(row[3].([]byte)),
			Begun: time.Unix(0, row[4].(int64)).UTC(), Records: row[6].(int64), Versions: row[7].(int64),
			Pages: row[8].(int64), Files: row[9].(int64)}
		if done := row[5].(int64); done != 0 {
			e.Done = time.Unix(0, done).UTC()
		}
		all = append(all, e)
		return nil
	})
	return all, err
}

var (
	selectSeal = &sqlite.Statement{Head: "SELECT seal FROM counter"}
	updateSeal = &sqlite.Statement{Head: "UPDATE counter SET seal = ?"}
)

// sealKey is the key of the hashes in receipts, made when it is first needed.
func sealKey(c *sqlite.Conn) (key []byte, err error) {
	if _, err = c.One(selectSeal, nil, func(row []driver.Value) { key = row[0].([]byte) }); err != nil || len(key) > 0 {
		return key, err
	}
	key = newSeal()
	return key, c.Exec(updateSeal, 0, key)
}

func newSeal() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return key
}

// sealed is the keyed hash of what was asked for.
func sealed(key []byte, source, what string) []byte {
	if n := understudy.ReadPhone(what); n.Digits != "" {
		what = n.Digits
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(append(append([]byte(source), 0), bytes.ToLower([]byte(what))...))
	return mac.Sum(nil)[:16]
}
