// The walk of the design is over this many records.

//go:build !race

package store_test

const walked = 10_000

const crowded = 1
