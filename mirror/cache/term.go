// Terms: which fresh time applies to a page in memory.

package cache

// Term names the fresh time that applies to a page. Entries store the name and not the duration, so that
// changed settings also apply to them.
type Term uint8

const (
	TermOther Term = iota
	TermNewest
	TermOlder
	TermFinal
	TermNotFound
)
