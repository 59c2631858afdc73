//go:build race

package sample

// UnderRace reports whether the race detector is on. SQLite is then many times slower.
const UnderRace = true
