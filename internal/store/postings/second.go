// This file converts between times and positions.

package postings

// A position is a second and a place within it:
//
//	second << 20 | within
const (
	withinBits = 20
	// Within is the number of positions in a second.
	Within = 1 << withinBits

	// MinSecond and MaxSecond limit the times of records. A time outside counts as none.
	MinSecond = -1 << 31
	MaxSecond = 1 << 32
)

// PositionSecond returns the second of a position.
func PositionSecond(position int64) int64 { return position >> withinBits }

// SecondBounds returns the first and the last position of a second.
func SecondBounds(second int64) (first, last int64) {
	return second << withinBits, second<<withinBits + Within - 1
}
