// Seconds: where the records of a time stand.

package postings

// A position is a second and a place within it:
//
//	second << 20 | within
const (
	withinBits = 20
	// Within is how many positions a second has.
	Within = 1 << withinBits

	// LeastSecond and MostSecond bound the times that records stand at; others count as none.
	LeastSecond = -1 << 31
	MostSecond  = 1 << 32
)

// Second is the second of a position.
func Second(position int64) int64 { return position >> withinBits }

// SecondBounds are the first and the last position of a second.
func SecondBounds(second int64) (first, last int64) {
	return second << withinBits, second<<withinBits + Within - 1
}
