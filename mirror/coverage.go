// Coverage: which records are known to be held, filled by internal/crawl.

package mirror

import "understudy/request"

// Coverage is what the mirror needs of the crawler. It is the counterpart of
// crawl.Source.
type Coverage interface {
	// Covered says whether every record upstream has of a kind with a clock in
	// [from, to), 0 = open, is held, under one record or (parent "") under any;
	// of an empty one (from = to), whether what has no clock is.
	// It is called for every list that may be composed and must be cheap.
	Covered(source, kind, parent string, from, to int64) (request.Coverage, bool)
	// Recheck says that records with a clock in [from, to), 0 = open, may not be
	// what was walked. It returns at once.
	Recheck(source, kind string, from, to int64)
}

// SetCoverage sets Options.Coverage when the crawler is made after the mirror. It
// is called before the first request.
func (m *Mirror) SetCoverage(c Coverage) { m.coverage = c }
