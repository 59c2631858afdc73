// This file encrypts positions in the feed into cursors, for roles that must not count changes.

package feed

import (
	"encoding/binary"
	"fmt"

	"understudy"
	"understudy/kit/token"
)

// places contains what is needed to make cursors.
type places struct {
	key  []byte // the secret from which the keys of cursors are derived
	runs runs
}

// cursors encrypts numbers into cursors and decrypts them, for one source and role. Each cursor of a position is
// different. If it stayed the same, it would reveal that no hidden change happened.
type cursors struct{ sealer *token.Sealer }

// cursorSize is the number of bytes that a cursor encrypts: a number and its run.
const cursorSize = 16

// append appends the cursor for a number and its run.
func (s *cursors) append(dst []byte, n, run int64) []byte {
	var place [cursorSize]byte
	binary.BigEndian.PutUint64(place[:8], uint64(n))
	binary.BigEndian.PutUint64(place[8:], uint64(run))
	return s.sealer.Append(dst, place[:])
}

// maxCursorBytes is the maximum length of a cursor's text, in bytes.
const maxCursorBytes = 64

// open decrypts a cursor into its number and run.
func (s *cursors) open(cursor string) (n, run int64, err error) {
	place, err := s.sealer.Open(cursor, cursorSize)
	if err != nil {
		return 0, 0, fmt.Errorf("feed: %w: this cursor is not of this feed and role; start with after=now or after=0",
			understudy.ErrInvalid)
	}
	return int64(binary.BigEndian.Uint64(place[:8])), int64(binary.BigEndian.Uint64(place[8:])), nil
}
