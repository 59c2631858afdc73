//go:build race

package pages_test

const walked = 400 // records of the long walk; SQLite is several times slower under the race detector
