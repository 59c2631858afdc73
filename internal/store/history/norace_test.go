//go:build !race

package history_test

const changed = 5_000
