// This file decides which records are written, by the package that logs them.

package logline

import (
	"log/slog"
	"maps"
	"runtime"
	"strings"
	"sync/atomic"
)

// Levels are the lowest levels of the records that are written, by package. The zero value is slog.LevelInfo for every
// package. It is safe for concurrent use.
type Levels struct{ rules atomic.Pointer[rules] }

type rules struct {
	level, lowest slog.Level // the level of packages that are not named, and the lowest level of all
	packages      map[string]slog.Level
}

func (l *Levels) loadRules() rules {
	if r := l.rules.Load(); r != nil {
		return *r
	}
	return rules{}
}

// Set sets the level, and the levels of packages. A name consists of whole elements of an import path, such as store or
// store/files, and includes the packages below. If several names apply to a package, the longest decides.
func (l *Levels) Set(level slog.Level, packages map[string]slog.Level) {
	r := &rules{level: level, lowest: level, packages: maps.Clone(packages)}
	for _, other := range packages {
		r.lowest = min(r.lowest, other)
	}
	l.rules.Store(r)
}

// levelOf returns the level of the package of a function, which is named with its import path.
func (r *rules) levelOf(function string) slog.Level {
	folder := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[folder:], ".")
	path, level, longest := "/"+function[:folder]+name+"/", r.level, ""
	for name, other := range r.packages {
		if strings.Contains(path, "/"+name+"/") && (len(name) > len(longest) || len(name) == len(longest) && name > longest) {
			level, longest = other, name
		}
	}
	return level
}

// allow reports whether a record is written that the place pc in the program logs. 0 is an unknown place.
func (l *Levels) allow(pc uintptr, level slog.Level) bool {
	r := l.rules.Load()
	switch {
	case r == nil:
		return level >= slog.LevelInfo
	case len(r.packages) == 0 || pc == 0:
		return level >= r.level
	}
	return level >= r.levelOf(runtime.FuncForPC(pc-1).Name())
}
