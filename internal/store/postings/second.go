// This file converts between times in seconds and positions.

package postings

// A position consists of a second and a number that distinguishes records of the same second:
//
//	second << 20 | number
const (
	withinBits = 20
	// Within is the number of positions of one second.
	Within = 1 << withinBits

	// MinSecond and MaxSecond limit the times of records. A record whose time is outside counts as a record without a
	// time.
	MinSecond = -1 << 31
	MaxSecond = 1 << 32
)

// PositionSecond returns the second of a position.
func PositionSecond(position int64) int64 { return position >> withinBits }

// SecondBounds returns the first and the last position of a second.
func SecondBounds(second int64) (first, last int64) {
	return second << withinBits, second<<withinBits + Within - 1
}
