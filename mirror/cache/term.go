// Terms: which of the ages is the fresh time of a page in memory.

package cache

// Term names which of the ages is a page's fresh time; what is held keeps the
// name, so that other ages hold for it too.
type Term uint8

const (
	TermOther Term = iota
	TermNewest
	TermOlder
	TermFinal
	TermNotFound
)
