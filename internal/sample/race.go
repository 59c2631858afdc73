//go:build race

package sample

// UnderRace is true if the race detector is on. SQLite is many times slower then.
const UnderRace = true
