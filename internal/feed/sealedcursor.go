// Cursor: a position in the feed that reveals no number, for roles that may not count
// changes.

package feed

import (
	"encoding/binary"
	"fmt"

	"understudy"
	"understudy/kit/token"
)

// places is what cursors are made with.
type places struct {
	key  []byte // cursors are sealed with keys made of it
	runs runs
}

// cursors turns numbers into cursors and back, for one source and role alone. One
// position has a new cursor each time: a cursor that stays the same would show that
// nothing hidden happened.
type cursors struct{ sealer *token.Sealer }

// cursorSize is how many bytes are sealed: a number and the run that told it.
const cursorSize = 16

// append writes the cursor of a number.
func (s *cursors) append(dst []byte, n, run int64) []byte {
	var place [cursorSize]byte
	binary.BigEndian.PutUint64(place[:8], uint64(n))
	binary.BigEndian.PutUint64(place[8:], uint64(run))
	return s.sealer.Append(dst, place[:])
}

// maxCursor bounds a text that may be a cursor, in bytes.
const maxCursor = 64

// open returns the number of a cursor, and the run that told it.
func (s *cursors) open(cursor string) (n, run int64, err error) {
	place, err := s.sealer.Open(cursor, cursorSize)
	if err != nil {
		return 0, 0, fmt.Errorf("feed: %w: that is no cursor of this feed for this role; begin with after=now or after=0",
			understudy.ErrInvalid)
	}
	return int64(binary.BigEndian.Uint64(place[:8])), int64(binary.BigEndian.Uint64(place[8:])), nil
}
