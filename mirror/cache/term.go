// Terms: which of the fresh times in the settings applies to a page.

package cache

// Term names one of the fresh times in the settings. Entries have the name and not the duration, so that a changed
// setting also applies to pages already in memory.
type Term uint8

const (
	TermOther Term = iota
	TermNewest
	TermOlder
	TermFinal
	TermNotFound
)
