// This file encrypts the position where a page of hits ended into a cursor.

package search

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"understudy"
	"understudy/internal/jsonapi"
	"understudy/internal/query"
)

// Key returns the key that encrypts cursors. It is created once and kept in kv.
func Key(ctx context.Context, kv understudy.KV) ([]byte, error) {
	return jsonapi.LoadSealingKey(ctx, kv, "search")
}

// keyBytes is the maximum number of bytes of a sort value that are compared and stored in a cursor.
const keyBytes = 64

// position is the place where a page of hits ended.
type position struct {
	SearchedAt  int64          // when the search began, in Unix seconds; relative times such as -7d are counted from this time
	Place       query.OrderKey // the place of the last record that was shown or read
	Top, Bottom query.OrderKey // the order keys of the newest and the oldest record of the sorted window; 0 means no limit
	ShownByID   bool           // whether the record whose id is the search text was already shown
	Missing     bool           // whether the last record has no value to sort by
	KeyLen      uint8          // the number of bytes in use of Key
	Key         [keyBytes]byte
}

// cursorSize is the fixed size of a cursor before its encryption, in bytes.
const cursorSize = 8 + 4*8 + 3 + keyBytes

// requestHash returns a hash that binds a cursor to its request.
func requestHash(a *query.SearchRequest) (short [8]byte) {
	parts := append([]string{a.Text, a.Number, fmt.Sprintf("%#v", a.Where), a.Source, a.Sort}, a.Kinds...)
	full := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	copy(short[:], full[:])
	return short
}

// sealCursor encrypts a position into a cursor for this request and role.
func (s *Searcher) sealCursor(c understudy.Caller, a *query.SearchRequest, m position) (string, error) {
	own, err := jsonapi.NewCursorSealer(s.o.Key, "search", c.Source, c.Role())
	if err != nil {
		return "", err
	}
	id := requestHash(a)
	data := append(make([]byte, 0, cursorSize), id[:]...)
	if data, err = binary.Append(data, binary.BigEndian, m); err != nil {
		return "", fmt.Errorf("search: cursor: %w", err)
	}
	return string(own.Append(nil, data)), nil
}

// openCursor decrypts a cursor. It returns ErrInvalid for a cursor of another request or role.
func (s *Searcher) openCursor(c understudy.Caller, a *query.SearchRequest) (m position, err error) {
	own, err := jsonapi.NewCursorSealer(s.o.Key, "search", c.Source, c.Role())
	if err != nil {
		return m, err
	}
	other := newInvalid("cursor: it does not belong to this search and role; start without a cursor")
	data, err := own.Open(a.Cursor, cursorSize)
	if err != nil {
		return m, other
	}
	if id := requestHash(a); string(data[:8]) != string(id[:]) {
		return m, other
	}
	if _, err := binary.Decode(data[8:], binary.BigEndian, &m); err != nil || int(m.KeyLen) > keyBytes {
		return position{}, other
	}
	return m, nil
}
