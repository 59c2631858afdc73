//go:build !race

package sample

// UnderRace says whether the race detector is built in, under which SQLite is many times slower.
const UnderRace = false
