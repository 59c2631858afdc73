// Cursor: where an answer ended, sealed, so that it tells nothing.

package search

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"understudy"
)

const (
	keySize = 32
	keyNote = "search/key"
)

// Key is the key kept in a store, made when there is none.
func Key(ctx context.Context, n Notes) ([]byte, error) {
	key, err := n.Note(ctx, keyNote)
	if err != nil && !errors.Is(err, understudy.ErrNotFound) {
		return nil, fmt.Errorf("search: read the key of cursors: %w", err)
	}
	if len(key) == keySize {
		return key, nil
	}
	key = make([]byte, keySize)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("search: make the key of cursors: %w", err)
	}
	if err := n.SetNote(ctx, keyNote, key); err != nil {
		return nil, fmt.Errorf("search: keep the key of cursors: %w", err)
	}
	return key, nil
}

// keyBytes is how much of a value two records are put in order by.
const keyBytes = 64

// mark is where an answer ended.
type mark struct {
	Now         int64            // when the search began, in Unix seconds: what -7d is counted from
	Place       understudy.Place // of the last record given out, or looked at
	Top, Bottom understudy.Place // of the window, when there is one; 0 = open
	Missing     bool             // the last one has no value to be put in order by
	Used        uint8            // bytes of Key
	Key         [keyBytes]byte
}

// cursorSize is what a cursor holds, in bytes: always the same.
const cursorSize = 8 + 4*8 + 2 + keyBytes

// maxCursor bounds what is looked at as a cursor, in bytes.
const maxCursor = (cursorSize + 28 + 2) * 4 / 3

// sum names an ask, so that its cursor is of no other.
func sum(a *understudy.SearchAsk) (short [8]byte) {
	full := sha256.Sum256([]byte(strings.Join(append([]string{a.Text, a.Source, a.Sort}, a.Kinds...), "\x00")))
	copy(short[:], full[:])
	return short
}

// seal is the cipher of a role's cursors.
func (s *Searcher) seal(c understudy.Caller) (cipher.AEAD, error) {
	own, err := hkdf.Key(sha256.New, s.o.Key, nil, "search cursor\x00"+c.Source+"\x00"+c.Role(), keySize)
	if err != nil {
		return nil, fmt.Errorf("search: derive a key: %w", err)
	}
	block, err := aes.NewCipher(own)
	if err != nil {
		return nil, fmt.Errorf("search: cipher: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// cursor writes where an answer ended.
func (s *Searcher) cursor(c understudy.Caller, a *understudy.SearchAsk, m mark) (string, error) {
	aead, err := s.seal(c)
	if err != nil {
		return "", err
	}
	id := sum(a)
	data := append(make([]byte, 0, cursorSize), id[:]...)
	if data, err = binary.Append(data, binary.BigEndian, m); err != nil {
		return "", fmt.Errorf("search: cursor: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, data, nil)), nil
}

// open reads a cursor of the same ask by the same role.
func (s *Searcher) open(c understudy.Caller, a *understudy.SearchAsk) (m mark, err error) {
	aead, err := s.seal(c)
	if err != nil {
		return m, err
	}
	other := invalid("cursor: that is none of this search for this role; begin without one")
	if len(a.Cursor) > maxCursor {
		return m, other
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(a.Cursor)
	if err != nil {
		return m, other
	}
	data, err := aead.Open(nil, nil, sealed, nil)
	if err != nil || len(data) != cursorSize {
		return m, other
	}
	if id := sum(a); string(data[:8]) != string(id[:]) {
		return m, other
	}
	if _, err := binary.Decode(data[8:], binary.BigEndian, &m); err != nil || int(m.Used) > keyBytes {
		return mark{}, other
	}
	return m, nil
}
