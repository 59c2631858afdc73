// Race: fewer random searches under the race detector.

//go:build race

package search

// raced: the race detector slows searches down tenfold and more.
const raced = true
