//go:build race

package jobs_test

// crowded is the share of random histories: SQLite is several times slower under the race detector.
const crowded = 25
