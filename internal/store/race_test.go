// Under the race detector, which makes SQLite several times slower, the long
// walk is shorter; the figures are those of the build without it.

//go:build race

package store_test

const walked = 400

// crowded is the share of random histories near a limit.
const crowded = 25
