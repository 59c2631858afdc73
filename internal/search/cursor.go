// Cursor: the position where an answer ended, sealed.

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

// Key returns the key that cursors are sealed with, as a store keeps it.
func Key(ctx context.Context, kv understudy.KV) ([]byte, error) {
	return jsonapi.SealingKey(ctx, kv, "search")
}

// keyBytes is how many bytes of a value decide the order of two records.
const keyBytes = 64

// position is where an answer ended.
type position struct {
	Now         int64          // when the search began, in Unix seconds: what -7d is counted from
	Place       query.OrderKey // of the last record shown or read
	Top, Bottom query.OrderKey // of the window, when there is one; 0 = open
	Met         bool           // the record whose id is the whole text was shown
	Missing     bool           // the last record has no value to sort by
	Used        uint8          // bytes of Key
	Key         [keyBytes]byte
}

// cursorSize is what a cursor holds, in bytes: always the same.
const cursorSize = 8 + 4*8 + 3 + keyBytes

// sum identifies a request: a cursor is valid for its own request only.
func sum(a *query.SearchRequest) (short [8]byte) {
	parts := append([]string{a.Text, a.Number, fmt.Sprintf("%#v", a.Where), a.Source, a.Sort}, a.Kinds...)
	full := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	copy(short[:], full[:])
	return short
}

// cursor is a position as a sealed text.
func (s *Searcher) cursor(c understudy.Caller, a *query.SearchRequest, m position) (string, error) {
	own, err := jsonapi.Cursors(s.o.Key, "search", c.Source, c.Role())
	if err != nil {
		return "", err
	}
	id := sum(a)
	data := append(make([]byte, 0, cursorSize), id[:]...)
	if data, err = binary.Append(data, binary.BigEndian, m); err != nil {
		return "", fmt.Errorf("search: cursor: %w", err)
	}
	return string(own.Append(nil, data)), nil
}

// open reads a cursor of the same request by the same role.
func (s *Searcher) open(c understudy.Caller, a *query.SearchRequest) (m position, err error) {
	own, err := jsonapi.Cursors(s.o.Key, "search", c.Source, c.Role())
	if err != nil {
		return m, err
	}
	other := invalid("cursor: that is none of this search for this role; begin without one")
	data, err := own.Open(a.Cursor, cursorSize)
	if err != nil {
		return m, other
	}
	if id := sum(a); string(data[:8]) != string(id[:]) {
		return m, other
	}
	if _, err := binary.Decode(data[8:], binary.BigEndian, &m); err != nil || int(m.Used) > keyBytes {
		return position{}, other
	}
	return m, nil
}
