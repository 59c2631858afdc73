// Doors for the tests.

package jobs

// FilterOf reads the query of GET /-/jobs.
var FilterOf = filterOf
