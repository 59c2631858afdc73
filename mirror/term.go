// Terms: which of the ages is the fresh time of a page in memory.

package mirror

// term names which of the ages is a page's fresh time; what is held keeps the
// name, so that other ages hold for it too.
type term uint8

const (
	termOther term = iota
	termNewest
	termOlder
	termFinal
	termNotFound
)
