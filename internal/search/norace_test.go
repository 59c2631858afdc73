// Norace: as many as set.

//go:build !race

package search

const raced = false
