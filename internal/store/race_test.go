// Under the race detector, which makes SQLite several times slower, the long
// walk is shorter; the figures are those of the build without it.

//go:build race

package store_test

const walked = 3_000
