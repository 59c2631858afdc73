// Wall: how much memory the process may take, and what follows from it.

package main

import (
	"runtime/debug"
)

// setWall makes the collector work harder near the wall. It is soft: nothing
// fails when it is passed. An operator who sets GOMEMLIMIT knows better.
func setWall(wall int64, env func(string) (string, bool)) {
	if _, set := env("GOMEMLIMIT"); !set && wall > 0 {
		debug.SetMemoryLimit(wall)
	}
}
