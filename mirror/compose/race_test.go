//go:build race

package compose_test

// raced: the race detector slows a store on disk down tenfold and more.
const raced = true
