//go:build race

package history_test

const changed = 500 // calls that change; SQLite is several times slower under the race detector
